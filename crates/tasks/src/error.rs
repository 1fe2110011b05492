//! What an author can do wrong with a journal, as errors that say what to do instead.

use std::fmt;

/// A step, question or timer that the journal refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalError {
    /// The key has been used in this run.
    DuplicateKey(String),
    /// Steps, questions and timers do not go into the body of a step.
    InsideStep(String),
    /// The run that this context belongs to is not the one that is being polled.
    OutsideRun(String),
    /// The run is over.
    RunEnded(String),
    /// The journal would be larger than it may be.
    TooLarge {
        /// What was to be recorded.
        key: String,
        /// How large the journal would be.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// More blocks are emitted than may be.
    TooManySegments {
        /// How many may be.
        limit: usize,
    },
    /// A block is larger than it may be.
    SegmentTooLarge {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The caller has as many bytes stored as it may, so this was not stored. The run can end, and
    /// records nothing any more.
    BytesExceeded {
        /// The name of the limit.
        limit: &'static str,
    },
    /// The value holds a secret, and this journal leaves the server.
    SecretNotAllowed(String),
    /// More questions are open than may be.
    TooManyInputRequests {
        /// The question that was too much.
        key: String,
        /// How many may be open.
        limit: usize,
    },
    /// Under this key the journal holds something else: the handler has changed.
    KindMismatch(String),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateKey(key) => write!(
                f,
                "the key `{key}` is used twice in one run; name each step, as in `(\"push\", region)`, or use a scope"
            ),
            Self::InsideStep(key) => write!(
                f,
                "`{key}` is inside of a step; steps, questions and timers stand between steps, not in them"
            ),
            Self::OutsideRun(key) => write!(
                f,
                "`{key}` is used outside of its own run; join futures inside the handler instead of spawning them"
            ),
            Self::RunEnded(key) => write!(f, "`{key}` comes after the end of its run"),
            Self::TooLarge { key, bytes, limit } => write!(
                f,
                "recording `{key}` makes the journal {bytes} bytes long, and it may have {limit}; record less, such as an id of what is stored elsewhere"
            ),
            Self::TooManySegments { limit } => write!(
                f,
                "a call emits at most {limit} blocks; put more into each of them, or raise `max_segments`"
            ),
            Self::SegmentTooLarge { bytes, limit } => write!(
                f,
                "a block of {bytes} bytes is emitted, and it may have {limit}; emit it in pieces or as a link to a resource, or raise `max_segment_bytes`"
            ),
            Self::BytesExceeded { limit } => write!(
                f,
                "the store takes nothing more: the limit `{limit}` is used up; record less, wait until older tasks of the caller have expired, or raise the limit"
            ),
            Self::SecretNotAllowed(key) => write!(
                f,
                "`{key}` holds a secret, and without a store the journal of this call travels through its client"
            ),
            Self::TooManyInputRequests { key, limit } => {
                write!(f, "with `{key}` more than {limit} questions are open at once")
            }
            Self::KindMismatch(key) => write!(
                f,
                "under `{key}` an earlier version of this handler recorded something else; give the new thing a new key"
            ),
        }
    }
}

impl std::error::Error for JournalError {}
