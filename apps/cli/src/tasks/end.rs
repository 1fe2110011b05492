//! Final states of cancelled tasks, and the exit code.

use crate::error::Kind;
use std::process::ExitCode;

/// Final state of a task.
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

/// Returns the exit code for several tasks: that of a failure, else that of a cancellation.
pub(crate) fn exit_code(ends: &[End]) -> ExitCode {
    let has = |end: End| ends.contains(&end);
    match (has(End::Failed), has(End::Cancelled)) {
        (true, _) => ExitCode::from(Kind::Failed as u8),
        (_, true) => ExitCode::from(Kind::Cancelled as u8),
        _ => ExitCode::SUCCESS,
    }
}
