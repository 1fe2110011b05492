//! Policy of the tools of an upstream: tasks, timeouts, access and approval.

use std::{fmt, sync::Arc, time::Duration};

use outlive::server::{
    approve::Approve,
    hosts::{AnswerBy, Repeat},
    tasks::{OnCrash, TaskPolicy},
};
use serde_json::value::RawValue;

/// Returns the tags of a task from the arguments of its call.
pub(crate) type Tags = Arc<dyn Fn(&RawValue) -> Vec<String> + Send + Sync>;

/// Policy of tools. A member that is not set has the value of the upstream, or the default.
#[derive(Clone, Default)]
#[must_use]
pub struct Policy {
    pub(crate) task: Option<TaskPolicy>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) always_listed: Option<bool>,
    pub(crate) approve: Option<Approve>,
    pub(crate) repeat: Option<Repeat>,
    pub(crate) max_inline: Option<usize>,
    pub(crate) answers: Option<Vec<AnswerBy>>,
    pub(crate) tags: Option<Tags>,
}

/// Timeout of a call, if none is set.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Attempts of a call that is rerun, if none are set.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("task", &self.task)
            .field("timeout", &self.timeout)
            .field("on_crash", &self.on_crash)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// Creates a policy without settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which calls become tasks. The default is [`TaskPolicy::auto`].
    pub fn task(mut self, task: TaskPolicy) -> Self {
        self.task = Some(task);
        self
    }

    /// Sets the timeout of a call. The default is one hour. The clock stops while an input request
    /// is open.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets what happens to a call whose upstream exits, or whose server is interrupted, before the
    /// result. The default is a rerun for tools that declare themselves read-only or idempotent, and
    /// for upstreams with idempotency keys, and a failure for others.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = Some(on_crash);
        self
    }

    /// Sets how often a call is sent, with its reruns. The default is 3.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts.max(1));
        self
    }

    /// Sets the scopes that a principal needs.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether lists have the tool for principals without its scopes.
    pub fn always_listed(mut self, listed: bool) -> Self {
        self.always_listed = Some(listed);
        self
    }

    /// Sets which calls wait for the approval of people.
    pub fn approve(mut self, approve: Approve) -> Self {
        self.approve = Some(approve);
        self
    }

    /// Sets whether a repeated call joins its run.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = Some(repeat);
        self
    }

    /// Sets the bytes of a result that is delivered uncut.
    pub fn max_inline(mut self, bytes: usize) -> Self {
        self.max_inline = Some(bytes);
        self
    }

    /// Sets how users of clients without elicitation can respond to input requests.
    pub fn answers(mut self, answers: impl IntoIterator<Item = AnswerBy>) -> Self {
        self.answers = Some(answers.into_iter().collect());
        self
    }

    /// Sets a function that returns the tags of a task from the arguments of its call.
    pub fn tags(mut self, tags: impl Fn(&RawValue) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.tags = Some(Arc::new(tags));
        self
    }

    /// Returns this policy with the members of `base` where it has none.
    pub(crate) fn over(&self, base: &Self) -> Self {
        Self {
            task: self.task.or(base.task),
            timeout: self.timeout.or(base.timeout),
            on_crash: self.on_crash.or(base.on_crash),
            max_attempts: self.max_attempts.or(base.max_attempts),
            scopes: self.scopes.clone().or_else(|| base.scopes.clone()),
            always_listed: self.always_listed.or(base.always_listed),
            approve: self.approve.clone().or_else(|| base.approve.clone()),
            repeat: self.repeat.or(base.repeat),
            max_inline: self.max_inline.or(base.max_inline),
            answers: self.answers.clone().or_else(|| base.answers.clone()),
            tags: self.tags.clone().or_else(|| base.tags.clone()),
        }
    }
}
