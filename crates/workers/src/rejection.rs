//! Kinds of rejections.

use outlive::server::{
    Error,
    durable::{DurableError, JournalError},
};

/// Returns the kind of a rejection.
pub(crate) fn kind_of(error: &Error) -> &'static str {
    match error.durable_error() {
        Some(DurableError::Journal(error)) => kind_in_journal(error),
        Some(DurableError::TimedOut { .. }) => "timed_out",
        Some(DurableError::ClientError { .. }) => "client_error",
        Some(DurableError::MissingCapability { .. }) => "missing_capability",
        Some(DurableError::TooManyRounds { .. }) => "too_many_rounds",
        Some(DurableError::InvalidResponse { .. }) => "invalid_response",
        Some(DurableError::IncompatibleEntry { .. }) => "kind_mismatch",
        Some(DurableError::Ambiguous { .. }) => "ambiguous",
        Some(DurableError::TaskCancelled { .. }) => "cancelled",
        Some(DurableError::TaskRequired { .. }) => "task_required",
        Some(DurableError::StoreRequired { .. }) => "store_required",
        _ => INVALID,
    }
}

/// Kind of a request with an invalid key, form or block.
pub(crate) const INVALID: &str = "invalid";

/// Kind of a request above a limit of sizes.
pub(crate) const TOO_LARGE: &str = "too_large";

/// Kind of a request above a limit of counts.
pub(crate) const TOO_MANY: &str = "too_many";

fn kind_in_journal(error: &JournalError) -> &'static str {
    match error {
        JournalError::DuplicateKey(_) => "duplicate_key",
        JournalError::InsideStep(_) => "inside_step",
        JournalError::OutsideRun(_) | JournalError::RunEnded(_) => "run_ended",
        JournalError::TooLarge { .. } | JournalError::SegmentTooLarge { .. } => TOO_LARGE,
        JournalError::TooManySegments { .. } | JournalError::TooManyInputRequests { .. } => {
            TOO_MANY
        }
        JournalError::BytesExceeded { .. } => "bytes_exceeded",
        JournalError::SecretNotAllowed(_) => "secret_not_allowed",
        JournalError::KindMismatch(_) => "kind_mismatch",
        _ => INVALID,
    }
}

/// Returns whether the journal has another kind of entry under a key.
pub(crate) fn is_mismatch(error: &Error) -> bool {
    let journal = match error.durable_error() {
        Some(DurableError::Journal(error)) => error,
        _ => return false,
    };
    matches!(journal, JournalError::KindMismatch(_))
}
