//! Everything a running server consists of. Handlers reach it through their `Cx`, transports
//! through [`Service`].

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    future::Future,
    net::{IpAddr, Ipv6Addr},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{
    Call, CallFuture, ClientNotification, CompletionOutcome, ExternalEvents, Profile,
    ProtocolError, Service, Session, SessionEvents, SessionStore, era::LIST_ALL_TASKS,
};
use outlive_wire::{CacheHints, JsonObject, RawJson};

use super::{
    RateLimit,
    custom::{CustomMethod, NoticeHandler},
    durable::{Rehearsed, Token, UsedRounds},
    extract::HandlerRequirements,
    layer::CallStack,
    metrics::Counters,
    prompt::PromptEntry,
    registry::Registry,
    resource::{ResourceEntry, TemplateEntry},
    router,
    skills::Catalog,
    tasks::Tasks,
    throttle::{Permit, Throttle},
    tool::ToolEntry,
};

/// A server at work.
pub(super) struct Core {
    pub(super) profile: Arc<Profile>,
    pub(super) instructions: Option<String>,
    pub(super) tools: Registry<ToolEntry>,
    pub(super) resources: Registry<ResourceEntry>,
    pub(super) templates: Registry<TemplateEntry>,
    pub(super) prompts: Registry<PromptEntry>,
    /// The files of skills, which can be read and are not listed.
    pub(super) skills: Option<Arc<Catalog>>,
    pub(super) offers: Offers,
    pub(super) logging: bool,
    pub(super) extensions: JsonObject,
    pub(super) experimental: JsonObject,
    pub(super) cache: CacheHints,
    pub(super) methods: HashMap<Box<str>, CustomMethod>,
    pub(super) notices: HashMap<Box<str>, NoticeHandler>,
    pub(super) states: States,
    pub(super) layers: Option<CallStack>,
    pub(super) callers: Option<Arc<Throttle>>,
    /// Counts the rounds of callers who bring no answer, or a state that is none.
    pub(super) in_vain: Arc<Throttle>,
    /// The rounds that have been used, if they are to be remembered.
    pub(super) used_rounds: Option<UsedRounds>,
    /// Whether handlers run again at every question, as an author wants it while testing.
    pub(super) replays: bool,
    /// What an author's test wants to happen, and to know.
    pub(super) rehearsal: Option<Arc<Rehearsed>>,
    pub(super) tasks: Option<Tasks>,
    pub(super) counters: Counters,
    /// How many transports serve it that will say when they stop.
    pub(super) transports: AtomicUsize,
    pub(super) on_open: Vec<SessionHook>,
    pub(super) on_close: Vec<SessionHook>,
}

/// Runs when a legacy session opens or closes.
pub(super) type SessionHook = Box<dyn Fn(&Arc<Session>) + Send + Sync>;

/// Shared state by type.
pub(super) type States = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Which features are offered though nothing is registered for them yet, because that may change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offers {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) subscriptions: bool,
}

impl Core {
    /// Shared state of type `T`.
    pub(super) fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.states.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// Whether everything is there that a handler's arguments need.
    pub(super) fn check_needs(&self, needs: &HandlerRequirements) -> Result<(), String> {
        match needs.states.iter().find(|(id, _)| !self.states.contains_key(id)) {
            None => Ok(()),
            Some((_, name)) => Err(format!(
                "its handler takes State<{name}>, which the builder was not given; call `.state(…)` with one"
            )),
        }
    }

    /// Counts a call of a tool against its limits; nothing is made where there are none.
    pub(super) fn enter(
        &self,
        tool: &ToolEntry,
        call: &Call,
    ) -> Result<Option<Vec<Permit>>, ProtocolError> {
        let limits =
            [(&self.callers, true), (tool.limit_of_all(), false), (tool.limit_of_each(), true)];
        if limits.iter().all(|(throttle, _)| throttle.is_none()) {
            return Ok(None);
        }
        let now = self.profile.clock.now();
        let mut permits = Vec::new();
        for (throttle, per_caller) in limits {
            let Some(throttle) = throttle else { continue };
            let key = if per_caller { caller_key(call) } else { String::new() };
            let permit = throttle.enter(&key, now).map_err(|busy| ProtocolError::OverLimit {
                limit: busy.what.name(per_caller).into(),
                retry_after: busy.retry_after,
            })?;
            permits.push(permit);
        }
        Ok(Some(permits))
    }
}

/// Whom a limit counts: the principal, and for callers without a name their address.
pub(super) fn caller_key(call: &Call) -> String {
    match (call.principal().is_anonymous(), call.peer_addr()) {
        (true, Some(peer)) => network(peer),
        _ => call.principal().key().to_owned(),
    }
}

/// What is counted as one address: of IPv6 the first half, because whoever has one has all of them
/// that begin so.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// How often and how many calls at once each caller may make, of all tools together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallerLimits {
    pub(super) rate: Option<RateLimit>,
    pub(super) concurrent: Option<u32>,
}

impl CallerLimits {
    pub(super) fn throttle(self) -> Option<Arc<Throttle>> {
        (self.rate.is_some() || self.concurrent.is_some())
            .then(|| Arc::new(Throttle::new(self.rate, self.concurrent)))
    }
}

/// How long changes of a list are gathered before clients are told.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(50);

impl Service for Core {
    fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    fn knows_method(&self, name: &str) -> bool {
        self.methods.contains_key(name) || (self.tasks.is_some() && name == LIST_ALL_TASKS)
    }

    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture {
        match &self.layers {
            None => router::route(&self, call),
            Some(layers) => layers.start(call),
        }
    }

    fn notified(&self, notice: ClientNotification<'_>) {
        if let Some(handler) = self.notices.get(notice.name) {
            contain("a handler of notifications", || handler(&notice));
        }
    }

    fn shut_down(self: Arc<Self>, patience: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let less = |serving: usize| serving.checked_sub(1);
        let before = self.transports.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        Box::pin(async move {
            if before.unwrap_or(0) <= 1 {
                self.drain(patience).await;
            }
        })
    }
}

impl SessionEvents for Core {
    fn session_opened(&self, session: &Arc<Session>) {
        self.counters.sessions_opened.add(1);
        self.on_open.iter().for_each(|hook| contain("a hook of sessions", || hook(session)));
    }

    fn session_closed(&self, session: &Arc<Session>) {
        self.counters.sessions_closed.add(1);
        self.on_close.iter().for_each(|hook| contain("a hook of sessions", || hook(session)));
    }

    fn keeper(&self) -> Option<&dyn SessionStore> {
        self.session_notes().map(|notes| notes as &dyn SessionStore)
    }
}

impl ExternalEvents for Core {
    fn knows_token(&self, token: &str) -> bool {
        Token::open(self, token).is_some()
    }

    fn complete(
        self: Arc<Self>,
        token: &str,
        value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>> {
        let token = Token::open(&self, token);
        Box::pin(async move {
            match token {
                Some(token) => self.answer_from_outside(token, value).await,
                None => CompletionOutcome::Unknown,
            }
        })
    }
}

/// Runs code of the application's that nobody waits for: a panic in it must not end a connection.
fn contain(what: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("{what} panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn half_of_a_long_address_counts() {
        for (address, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ] {
            assert_eq!(network(address.parse().unwrap()), counted);
        }
    }
}
