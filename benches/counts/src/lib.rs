//! The calls that are measured, and their path from bytes to bytes without a transport, on which
//! instructions and allocations can be counted: exact where timings are noisy.
//!
//! - [`messages`]: the calls, byte for byte.
//! - [`echo`]: the server that answers them.
//! - [`hot`]: which of its paths are counted. `cargo xtask instructions` counts them.

pub mod echo;
pub mod hot;
pub mod messages;
