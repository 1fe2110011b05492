//! The operator's policy of one tool, which overrides the declaration of its author.

use std::{fmt, sync::Arc, time::Duration};

use outlive::server::{
    Tool,
    tasks::{OnCrash, TaskPolicy},
};

/// Changes a tool before it is registered.
type Change = Arc<dyn Fn(Tool) -> Tool + Send + Sync>;

/// Policy of one tool. A member that is not set is as the tool worker declares it.
#[derive(Clone, Default)]
#[must_use]
pub struct ToolPolicy {
    pub(crate) task: Option<TaskPolicy>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) change: Option<Change>,
}

impl ToolPolicy {
    /// Creates a policy without settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which calls become tasks.
    pub fn task(mut self, task: TaskPolicy) -> Self {
        self.task = Some(task);
        self
    }

    /// Sets the scopes that a principal needs, in place of the declared ones.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the timeout of a run. The default is one hour. The clock stops while the run waits for
    /// input, a timer or an external event.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets what happens to a call of a function that is not durable, after its process was lost.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = Some(on_crash);
        self
    }

    /// Sets how many processes in a row a call may lose without recording a step. The default is 5.
    /// Then its task is quarantined, or the call fails.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts.max(1));
        self
    }

    /// Sets a function that changes the tool in any other way, such as its approval.
    ///
    /// ```
    /// use outlive::server::tasks::TaskPolicy;
    /// use outlive_workers::ToolPolicy;
    ///
    /// let policy = ToolPolicy::new()
    ///     .task(TaskPolicy::Always)
    ///     .scopes(["shop:operate"])
    ///     .change(|tool| tool.always_listed());
    /// # drop(policy);
    /// ```
    pub fn change(mut self, change: impl Fn(Tool) -> Tool + Send + Sync + 'static) -> Self {
        self.change = Some(Arc::new(change));
        self
    }
}

impl fmt::Debug for ToolPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolPolicy")
            .field("task", &self.task)
            .field("scopes", &self.scopes)
            .field("timeout", &self.timeout)
            .field("on_crash", &self.on_crash)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}
