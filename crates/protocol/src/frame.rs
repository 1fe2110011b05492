//! What a codec has written.

use std::time::Duration;

/// What [`ServerCodec::encode`](crate::era::ServerCodec::encode) wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum Frame {
    /// A message; more follow.
    Message,
    /// The response. Its HTTP status counts if nothing was sent before it.
    End {
        /// The HTTP status.
        status: u16,
    },
    /// Nothing: the transport closes the connection, and the client resumes the stream.
    Detach {
        /// When the client should come back.
        retry: Duration,
    },
    /// Nothing: the version cannot express the message.
    Silent,
}
