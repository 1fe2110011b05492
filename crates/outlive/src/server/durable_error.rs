//! What can go wrong between a handler, its journal and its client.

use std::fmt;

use outlive_tasks::JournalError;
use outlive_wire::RawJson;

use outlive_schema::forms::FormError;

/// Why a step, a question or a timer has no value.
///
/// Handlers meet it as an [`Error`](crate::server::Error); [`Error::durable_error`] shows it again.
///
/// [`Error::durable_error`]: crate::server::Error::durable_error
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DurableError {
    /// The journal was used in a way that cannot work.
    Journal(JournalError),
    /// The user said no.
    Declined {
        /// The question.
        key: String,
    },
    /// The user closed the question without a word.
    Cancelled {
        /// The question.
        key: String,
    },
    /// Nobody answered in time.
    TimedOut {
        /// The question.
        key: String,
    },
    /// The client did not ask, or failed to.
    ClientError {
        /// The question.
        key: String,
        /// The code of its error.
        code: i32,
        /// Its words.
        message: String,
    },
    /// The client did not declare that it can be asked this. Returned from a handler it refuses
    /// the call, and the client learns what to declare.
    MissingCapability {
        /// The question.
        key: String,
        /// The capabilities, as an object.
        required: RawJson,
    },
    /// The call has been asked enough.
    TooManyRounds {
        /// After so many rounds.
        rounds: u32,
    },
    /// The answer never fitted, however often it was asked for.
    InvalidResponse {
        /// The question.
        key: String,
    },
    /// What is recorded does not fit the type any more: the handler has changed.
    IncompatibleEntry {
        /// The step or question.
        key: String,
        /// Why.
        reason: String,
    },
    /// The question itself cannot be asked.
    InvalidInputRequest {
        /// The question.
        key: String,
        /// Why.
        reason: String,
    },
    /// It must not be done twice, was begun before, and nobody knows how far it came.
    Ambiguous {
        /// The step.
        key: String,
    },
    /// The task was cancelled: nothing more of it begins. Return it; the task ends as `cancelled`.
    TaskCancelled {
        /// What was not begun, or is not waited for any more.
        key: String,
    },
    /// It needs a task, and this call is none and cannot become one.
    TaskRequired {
        /// What waits for something outside.
        key: String,
    },
    /// All permits of a capacity are held, and this call is no task that could wait for one.
    NoCapacity {
        /// The name of the capacity.
        capacity: String,
    },
    /// It needs a store, and the server has none.
    StoreRequired {
        /// The step.
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
            Self::Declined { key } => write!(f, "the user declined to answer `{key}`"),
            Self::Cancelled { key } => write!(f, "the user dismissed the question `{key}`"),
            Self::TimedOut { key } => write!(f, "nobody answered `{key}` in time"),
            Self::ClientError { key, code, message } => {
                write!(f, "the client did not answer `{key}`: {message} ({code})")
            }
            Self::MissingCapability { key, required } => write!(
                f,
                "the client cannot be asked `{key}`; it would have to declare {}",
                required.get()
            ),
            Self::TooManyRounds { rounds } => {
                write!(f, "gave up after {rounds} rounds of questions")
            }
            Self::InvalidResponse { key } => {
                write!(f, "`{key}` was asked too often, and no answer fitted")
            }
            Self::IncompatibleEntry { key, reason } => write!(
                f,
                "what is recorded for `{key}` does not fit its type any more: {reason}; call again from the start"
            ),
            Self::InvalidInputRequest { key, reason } => {
                write!(f, "`{key}` cannot be asked: {reason}")
            }
            Self::Ambiguous { key } => write!(
                f,
                "`{key}` may be done once only, and was begun when its worker was lost; look whether it was done"
            ),
            Self::TaskCancelled { key } => {
                write!(f, "the task was cancelled before `{key}` was done")
            }
            Self::TaskRequired { key } => write!(
                f,
                "`{key}` waits for something outside, which only a task can; give the tool a task policy, and call it from a client that holds tasks"
            ),
            Self::NoCapacity { capacity } => {
                write!(f, "the limit `{capacity}` is used up; try again later")
            }
            Self::StoreRequired { key } => {
                write!(f, "`{key}` may be done once only, which needs a store that remembers it")
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
