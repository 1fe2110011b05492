//! Which calls of a tool become tasks, and what a crash does to them.

use std::time::Duration;

/// Whether the calls of a tool become tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth way")]
pub enum TaskPolicy {
    /// Never: a call is answered when it is done.
    #[default]
    Never,
    /// A call that is not done after this time, counted from the first time it has to wait, becomes
    /// a task if its caller can hold one. It is not begun again.
    Auto {
        /// How long the caller waits.
        after: Duration,
    },
    /// Always: callers that cannot hold a task are refused.
    Always,
}

impl TaskPolicy {
    /// How long a caller waits if nothing else is said: two seconds. Most calls are done by then, and
    /// a person who looks on has not given up yet.
    pub const DEFAULT_AFTER: Duration = Duration::from_secs(2);

    /// [`TaskPolicy::Auto`] after [`TaskPolicy::DEFAULT_AFTER`]; what `#[tool(task = "auto")]` stands for.
    pub const fn auto() -> Self {
        Self::Auto { after: Self::DEFAULT_AFTER }
    }
}

/// What becomes of a task whose worker was lost while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum OnCrash {
    /// Its handler runs again, from the top. What has been recorded is not done again.
    Rerun,
    /// It fails, and says that its worker was lost.
    Fail,
}
