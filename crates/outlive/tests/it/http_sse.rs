//! The HTTP+SSE transport of 2024-11-05.

mod bad_input; // rejected requests and messages
mod stream; // the stream as a session
