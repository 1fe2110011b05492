//! Errors of steps, input requests and timers.

use std::fmt;

use outlive_tasks::JournalError;
use outlive_wire::RawJson;

use outlive_schema::forms::FormError;

/// Reason why a step, an input request or a timer has no value.
///
/// Handlers receive it as an [`Error`](crate::server::Error); [`Error::durable_error`] returns it.
///
/// [`Error::durable_error`]: crate::server::Error::durable_error
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DurableError {
    /// The handler used the journal incorrectly.
    Journal(JournalError),
    /// The user declined the elicitation.
    Declined {
        /// Key of the input request.
        key: String,
    },
    /// The user cancelled the elicitation, neither accepting nor declining it.
    Cancelled {
        /// Key of the input request.
        key: String,
    },
    /// The input request timed out.
    TimedOut {
        /// Key of the input request.
        key: String,
    },
    /// The client replied to the input request with an error.
    ClientError {
        /// Key of the input request.
        key: String,
        /// Error code that the client sent.
        code: i32,
        /// Error message that the client sent.
        message: String,
    },
    /// The client did not declare the capability for this input request. If the handler returns
    /// this error, the protocol error names the capability.
    MissingCapability {
        /// Key of the input request.
        key: String,
        /// Required capabilities, as a JSON object.
        required: RawJson,
    },
    /// The call exceeded its maximum number of input rounds.
    TooManyRounds {
        /// Number of rounds.
        rounds: u32,
    },
    /// No input response was valid within the maximum number of reissues.
    InvalidResponse {
        /// Key of the input request.
        key: String,
    },
    /// The journal entry does not match its type. The handler has changed since it was recorded.
    IncompatibleEntry {
        /// Key of the step or input request.
        key: String,
        /// Decoding error.
        reason: String,
    },
    /// The input request is invalid.
    InvalidInputRequest {
        /// Key of the input request.
        key: String,
        /// Reason why the input request is invalid.
        reason: String,
    },
    /// The step must not run twice, and it was in progress when its worker crashed. It may have
    /// taken effect.
    Ambiguous {
        /// Key of the step.
        key: String,
    },
    /// The task was cancelled, so no further step starts. Return this error; the task ends as
    /// `cancelled`.
    TaskCancelled {
        /// Key of the operation that did not start or stopped waiting.
        key: String,
    },
    /// The operation needs a task, and this call cannot become one.
    TaskRequired {
        /// Key of the external event or input request.
        key: String,
    },
    /// All permits of a capacity are in use, and this call is not a task that could wait for one.
    NoCapacity {
        /// Name of the capacity.
        capacity: String,
    },
    /// The step needs a store, and the server has none.
    StoreRequired {
        /// Key of the step.
        key: String,
    },
}

impl DurableError {
    pub(crate) fn form(key: &str, error: &FormError) -> Self {
        Self::InvalidInputRequest { key: key.to_owned(), reason: error.to_string() }
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(misuse) => misuse.fmt(f),
            Self::Declined { key } => write!(f, "the user declined the input request `{key}`"),
            Self::Cancelled { key } => write!(f, "the user cancelled the input request `{key}`"),
            Self::TimedOut { key } => write!(f, "input request `{key}` timed out"),
            Self::ClientError { key, code, message } => {
                write!(f, "the client rejected the input request `{key}`: {message} ({code})")
            }
            Self::MissingCapability { key, required } => write!(
                f,
                "the client does not support the input request `{key}`; it must declare {}",
                required.get()
            ),
            Self::TooManyRounds { rounds } => {
                write!(f, "no result after {rounds} input rounds")
            }
            Self::InvalidResponse { key } => {
                write!(
                    f,
                    "no input response to `{key}` was valid after the maximum number of attempts"
                )
            }
            Self::IncompatibleEntry { key, reason } => write!(
                f,
                "journal entry `{key}` does not match its type: {reason}; start a new call"
            ),
            Self::InvalidInputRequest { key, reason } => {
                write!(f, "input request `{key}` is invalid: {reason}")
            }
            Self::Ambiguous { key } => write!(
                f,
                "step `{key}` was in progress when its worker crashed; check whether it took effect"
            ),
            Self::TaskCancelled { key } => {
                write!(f, "the task was cancelled before `{key}` completed")
            }
            Self::TaskRequired { key } => write!(
                f,
                "`{key}` needs a task; set a task policy on the tool, and call it from a client that supports tasks"
            ),
            Self::NoCapacity { capacity } => {
                write!(f, "all permits of `{capacity}` are in use; retry later")
            }
            Self::StoreRequired { key } => {
                write!(
                    f,
                    "step `{key}` may run only once and needs a store to record that; configure one with `.tasks(…)`"
                )
            }
        }
    }
}

impl std::error::Error for DurableError {}

impl From<JournalError> for DurableError {
    fn from(misuse: JournalError) -> Self {
        Self::Journal(misuse)
    }
}
