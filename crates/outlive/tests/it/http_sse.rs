//! The HTTP+SSE pair of 2024-11-05.

mod bad_input; // what is refused, and where that is told
mod stream; // the stream is the session
