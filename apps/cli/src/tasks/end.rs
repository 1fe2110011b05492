//! How a cancelled task has ended, and the exit code for that.

use crate::error::Kind;
use std::process::ExitCode;

/// How a task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Cancelled,
    Completed,
    Failed,
}

impl End {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The exit code for several: that of a failure, else that something was cancelled.
pub(crate) fn exit_code(ends: &[End]) -> ExitCode {
    let has = |end: End| ends.contains(&end);
    match (has(End::Failed), has(End::Cancelled)) {
        (true, _) => ExitCode::from(Kind::Failed as u8),
        (_, true) => ExitCode::from(Kind::Cancelled as u8),
        _ => ExitCode::SUCCESS,
    }
}
