//! Policies of a tool: which calls become tasks, and what a crash does to a task.

use std::time::Duration;

/// Policy that decides which calls of a tool become tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these three policies are complete")]
pub enum TaskPolicy {
    /// Calls never become tasks.
    #[default]
    Never,
    /// A call that runs longer than `after` becomes a task if its client supports tasks. The time
    /// starts when the handler first waits. The handler is not restarted.
    Auto {
        /// Time after which a running call becomes a task.
        after: Duration,
    },
    /// Every call becomes a task. Calls from clients without task support wait for it on a server with
    /// [`TaskConfig::hosts`](crate::server::tasks::TaskConfig::hosts), and are rejected on others.
    Always,
}

impl TaskPolicy {
    /// Default time after which a running call becomes a task: two seconds. Most calls end earlier,
    /// and a user still waits that long.
    pub const DEFAULT_AFTER: Duration = Duration::from_secs(2);

    /// Returns [`TaskPolicy::Auto`] after [`TaskPolicy::DEFAULT_AFTER`], as `#[tool(task =
    /// "auto")]` does.
    pub const fn auto() -> Self {
        Self::Auto { after: Self::DEFAULT_AFTER }
    }
}

/// Policy for a task whose worker crashed during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these two policies are complete")]
pub enum OnCrash {
    /// The handler runs again. Recorded steps are not executed again.
    Rerun,
    /// The task fails with an error that names the crash.
    Fail,
}
