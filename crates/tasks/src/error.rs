//! [`JournalError`]: mistakes of an author in the use of a journal. Each message names the remedy.

use std::fmt;

/// A step, input request, timer or segment that the journal rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalError {
    /// The run has already used the key.
    DuplicateKey(String),
    /// A step, input request or timer was started in the body of a step.
    InsideStep(String),
    /// The current thread does not poll the run that this context belongs to.
    OutsideRun(String),
    /// The run has ended.
    RunEnded(String),
    /// The journal would exceed its maximum size.
    TooLarge {
        /// The key to record.
        key: String,
        /// Size of the journal with the new record.
        bytes: usize,
        /// Maximum size of the journal.
        limit: usize,
    },
    /// The call has emitted the maximum number of segments.
    TooManySegments {
        /// Maximum number of segments.
        limit: usize,
    },
    /// A segment exceeds the maximum size.
    SegmentTooLarge {
        /// Size of the segment.
        bytes: usize,
        /// Maximum size of a segment.
        limit: usize,
    },
    /// The caller has reached its limit of stored bytes, so the write was rejected. The run can
    /// end, but it cannot record anything else.
    BytesExceeded {
        /// Name of the limit.
        limit: &'static str,
    },
    /// The value contains a secret, and the client carries this journal in a request state.
    SecretNotAllowed(String),
    /// The run has the maximum number of open input requests.
    TooManyInputRequests {
        /// Key of the rejected input request.
        key: String,
        /// Maximum number of open input requests.
        limit: usize,
    },
    /// The journal has an entry of another kind under this key: the handler has changed.
    KindMismatch(String),
    /// The tag is not `key=value`, or too long.
    InvalidTag {
        /// The tag.
        tag: String,
        /// Maximum bytes of a tag.
        limit: usize,
    },
    /// The task has the maximum number of tags.
    TooManyTags {
        /// The rejected tag.
        tag: String,
        /// Maximum number of tags.
        limit: usize,
    },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateKey(key) => write!(
                f,
                "the key `{key}` is used twice in one run; give each step its own key, such as `(\"push\", region)`, or use a scope"
            ),
            Self::InsideStep(key) => write!(
                f,
                "`{key}` is used inside the body of a step; start steps, input requests and timers outside of other steps"
            ),
            Self::OutsideRun(key) => write!(
                f,
                "`{key}` is used outside its run; join futures inside the handler instead of spawning them"
            ),
            Self::RunEnded(key) => write!(f, "`{key}` is used after its run has ended"),
            Self::TooLarge { key, bytes, limit } => write!(
                f,
                "recording `{key}` grows the journal to {bytes} bytes, above the limit of {limit}; record less, such as the ID of a value in another store"
            ),
            Self::TooManySegments { limit } => write!(
                f,
                "the call has emitted the maximum of {limit} segments; emit larger segments, or raise `max_segments`"
            ),
            Self::SegmentTooLarge { bytes, limit } => write!(
                f,
                "a segment of {bytes} bytes exceeds the limit of {limit}; split it, emit a resource link, or raise `max_segment_bytes`"
            ),
            Self::BytesExceeded { limit } => write!(
                f,
                "the store rejected the write: the caller has reached the limit `{limit}`; record less, wait until older tasks of the caller expire, or raise the limit"
            ),
            Self::SecretNotAllowed(key) => write!(
                f,
                "`{key}` contains a secret, but without a store the client carries the journal of this call; configure a store"
            ),
            Self::TooManyInputRequests { key, limit } => {
                write!(
                    f,
                    "the input request `{key}` exceeds the limit of {limit} open input requests"
                )
            }
            Self::KindMismatch(key) => write!(
                f,
                "an earlier version of this handler recorded another kind of entry under `{key}`; use a new key"
            ),
            Self::InvalidTag { tag, limit } => write!(
                f,
                "the tag `{tag}` is invalid; a tag is `key=value` with at most {limit} bytes"
            ),
            Self::TooManyTags { tag, limit } => {
                write!(f, "the tag `{tag}` exceeds the limit of {limit} tags of a task")
            }
        }
    }
}

impl std::error::Error for JournalError {}
