//! Approval of calls: which calls of a tool wait for a decision, and who decides.
//!
//! ```
//! use std::time::Duration;
//! use outlive::server::{Args, Server, Tool, approve::Approve, tasks::TaskConfig};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Refund { order: u32, amount: f64 }
//!
//! async fn refund(Args(refund): Args<Refund>) -> String {
//!     format!("refunded {} of order {}", refund.amount, refund.order)
//! }
//!
//! let approve = Approve::scope("refund:approve")
//!     .when(|refund: &Refund| refund.amount > 100.0)
//!     .decision_timeout(Duration::from_secs(8 * 3_600));
//! let server = Server::builder("shop", "1")
//!     .tasks(TaskConfig::in_memory())
//!     .tool(Tool::new("refund", refund).approve(approve))
//!     .build()?;
//! # Ok::<(), outlive::server::BuildError>(())
//! ```

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use outlive_tasks::store::Audience;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::server::time::millis;

/// Rule for the approval of a tool's calls: who decides, about which calls, and within which time.
///
/// A call that the rule covers is a stored task from the start. Its handler starts only after
/// enough people have approved exactly this call. The vote of the caller never counts, except with
/// [`Approve::caller`].
#[derive(Clone)]
#[must_use]
pub struct Approve {
    pub(crate) audience: Audience,
    pub(crate) count: u32,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) decision_timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) denial_ttl: Duration,
    pub(crate) max_open: usize,
    pub(crate) message: Option<String>,
    pub(crate) links: bool,
}

/// Condition on the arguments of a call.
#[derive(Clone)]
pub(crate) enum Condition {
    /// The argument has one of these values.
    Argument { name: String, values: Vec<Value> },
    /// The function returns `true` for the arguments.
    Typed(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Approve {
    /// Default time in which people decide.
    const DECISION_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

    /// Default time in which a caller that can only call again returns after the approval.
    pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(600);

    /// Default time for which a denial stands.
    const DENIAL_TTL: Duration = Duration::from_secs(600);

    /// Default number of undecided calls of one caller.
    const MAX_OPEN: usize = 20;

    fn new(audience: Audience) -> Self {
        Self {
            audience,
            count: 1,
            conditions: Vec::new(),
            decision_timeout: Self::DECISION_TIMEOUT,
            start_timeout: Self::START_TIMEOUT,
            denial_ttl: Self::DENIAL_TTL,
            max_open: Self::MAX_OPEN,
            message: None,
            links: false,
        }
    }

    /// The caller decides: the client asks its user, or the user decides in the console.
    ///
    /// This protects against mistakes, not against an agent that has the credential of the caller.
    pub fn caller() -> Self {
        Self::new(Audience::Caller)
    }

    /// People with these names decide.
    pub fn by<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::new(Audience::Names(names.into_iter().map(Into::into).collect()))
    }

    /// People whose credential has this scope decide.
    pub fn scope(scope: impl Into<String>) -> Self {
        Self::new(Audience::Scope(scope.into()))
    }

    /// Lets people whose credential has this scope decide too.
    pub fn or_scope(mut self, scope: impl Into<String>) -> Self {
        self.audience = match self.audience {
            Audience::Names(names) | Audience::NamesOrScope(names, _) => {
                Audience::NamesOrScope(names, scope.into())
            }
            _ => Audience::Scope(scope.into()),
        };
        self
    }

    /// Sets the number of different people who must approve a call; one by default. The first
    /// denial always decides.
    pub fn count(mut self, people: u32) -> Self {
        self.count = people;
        self
    }

    /// Covers only calls for whose arguments `condition` returns `true`. A call also needs approval
    /// if its arguments do not decode as `T`. Several conditions must all hold.
    pub fn when<T: DeserializeOwned + 'static>(
        mut self,
        condition: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let holds = move |arguments: &str| match serde_json::from_str(arguments) {
            Ok(arguments) => condition(&arguments),
            Err(_) => true,
        };
        self.conditions.push(Condition::Typed(Arc::new(holds)));
        self
    }

    /// Covers only calls whose argument has one of these values, after the default of the input
    /// schema is filled in. Several conditions must all hold.
    pub fn when_argument<V: Into<Value>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.conditions.push(Condition::Argument { name: name.into(), values });
        self
    }

    /// Sets the time in which people decide; one day by default, and at most
    /// [`TaskConfig::max_ttl`](crate::server::tasks::TaskConfig::max_ttl). The call then ends with
    /// an error.
    pub fn decision_timeout(mut self, timeout: Duration) -> Self {
        self.decision_timeout = timeout;
        self
    }

    /// Sets the time in which a caller that can only call again returns after the approval; ten
    /// minutes by default. The call then ends with an error, and nothing has run.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the time for which equal calls of the same person get a denial without a new request;
    /// ten minutes by default.
    pub fn denial_ttl(mut self, ttl: Duration) -> Self {
        self.denial_ttl = ttl;
        self
    }

    /// Limits the undecided calls of one caller; 20 by default. The next call gets 429.
    pub fn max_open(mut self, calls: usize) -> Self {
        self.max_open = calls;
        self
    }

    /// Sets the text that people read above the call.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets whether notifications contain links that vote without sign-in; off by default. The
    /// holder of such a link votes as the person that it was made for.
    pub fn links(mut self, links: bool) -> Self {
        self.links = links;
        self
    }

    /// Checks that a call can be approved under the rule, whatever tool has it.
    ///
    /// # Errors
    ///
    /// Returns the reason why no call could be approved, or why the settings contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (names, scope) = self.audience.addressees();
        let distinct = names.iter().collect::<BTreeSet<_>>().len();
        let is_caller = self.audience == Audience::Caller;
        if self.count == 0 {
            return Err("`approve` has the count 0; write at least 1".to_owned());
        }
        if is_caller && self.count > 1 {
            return Err("the caller alone decides; remove the count of `approve`".to_owned());
        }
        if !is_caller && scope.is_none() && distinct < self.count as usize {
            return Err(format!(
                "`approve` needs {} people and names {distinct}; name more people, or lower the count",
                self.count
            ));
        }
        if scope.is_some_and(str::is_empty) || names.iter().any(String::is_empty) {
            return Err("`approve` has an empty name or scope; remove it".to_owned());
        }
        if self.links && self.count > 1 && names.is_empty() {
            return Err(
                "`approve` has links and a count above 1, but a link for a scope names no person; \
                 name the people, or remove one of the two"
                    .to_owned(),
            );
        }
        if self.decision_timeout.is_zero() || self.max_open == 0 {
            return Err("`approve` leaves no time or no call to decide about; set \
                        `decision_timeout` and `max_open` above 0"
                .to_owned());
        }
        Ok(())
    }

    /// Returns all settings as text, for the hash of a tool's definition.
    pub(crate) fn describe(&self) -> String {
        let (names, scope) = self.audience.addressees();
        let conditions = self.conditions.iter().map(|condition| match condition {
            Condition::Argument { name, values } => json!({ "argument": name, "values": values }),
            // The code of a function has no hash; `handler_revision` covers it.
            Condition::Typed(_) => json!("function"),
        });
        let settings = json!({
            "audience": self.audience.as_str(),
            "names": names,
            "scope": scope,
            "count": self.count,
            "when": conditions.collect::<Vec<_>>(),
            "decision_timeout": millis(self.decision_timeout),
            "start_timeout": millis(self.start_timeout),
            "denial_ttl": millis(self.denial_ttl),
            "max_open": self.max_open,
            "message": self.message,
            "links": self.links,
        });
        settings.to_string()
    }
}

// Destructures every setting, so that a new setting does not compile until it has a field here. A
// test compares `docs/limits.md` with this output.
impl fmt::Debug for Approve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            audience,
            count,
            conditions,
            decision_timeout,
            start_timeout,
            denial_ttl,
            max_open,
            message,
            links,
        } = self;
        f.debug_struct("Approve")
            .field("audience", audience)
            .field("count", count)
            .field("when", &format_args!("{} conditions", conditions.len()))
            .field("decision_timeout", decision_timeout)
            .field("start_timeout", start_timeout)
            .field("denial_ttl", denial_ttl)
            .field("max_open", max_open)
            .field("message", message)
            .field("links", links)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Approve;

    #[track_caller]
    fn check(approve: &Approve, reason: &str) {
        assert!(approve.check().unwrap_err().contains(reason), "{approve:?}");
    }

    #[test]
    fn contradicting_settings_are_rejected_with_reason() {
        check(&Approve::by(["ada", "ada"]).count(2), "needs 2 people and names 1");
        check(&Approve::by(Vec::<String>::new()), "names 0");
        check(&Approve::caller().count(2), "the caller alone decides");
        check(&Approve::by(["ada"]).count(0), "the count 0");
        check(&Approve::scope("x").links(true).count(2), "names no person");
        check(&Approve::scope(""), "empty name or scope");
        check(&Approve::by(["ada"]).max_open(0), "above 0");
        for good in [
            Approve::caller(),
            Approve::by(["ada", "ben"]).count(2).links(true),
            Approve::scope("x").count(3),
            Approve::by(["ada"]).or_scope("x").count(2),
        ] {
            good.check().unwrap();
        }
    }

    #[test]
    fn description_contains_every_setting() {
        let base = Approve::by(["ada"]);
        let changed = [
            base.clone().or_scope("x"),
            base.clone().when_argument("env", ["prod"]),
            base.clone().when_argument("env", ["test"]),
            base.clone().message("Sure?"),
            base.clone().links(true),
            base.clone().max_open(1),
            Approve::by(["ben"]),
            Approve::caller(),
        ];
        for approve in changed {
            assert_ne!(approve.describe(), base.describe(), "{approve:?}");
        }
    }
}
