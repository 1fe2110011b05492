//! The kinds of encoded messages.

use std::time::Duration;

/// The kind of message that [`ServerCodec::encode`](crate::era::ServerCodec::encode) wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum Frame {
    /// A message that is not the last.
    Message,
    /// The response. Its HTTP status applies if it is the first message.
    End {
        /// HTTP status.
        status: u16,
    },
    /// No message: the transport closes the connection, and the client resumes the stream.
    Detach {
        /// Delay before the client reconnects.
        retry: Duration,
    },
    /// No message: the version does not have it.
    Silent,
}
