//! The measured calls, and their path from bytes to bytes without a transport. Instruction and
//! allocation counts on this path are exact, where timings are noisy.
//!
//! - [`messages`]: the calls, byte for byte.
//! - [`echo`]: the server that handles them.
//! - [`relayed`]: the same server behind a gateway.
//! - [`hot`]: the paths with instruction counts (`cargo xtask instructions`).

pub mod echo;
pub mod hot;
pub mod messages;
pub mod relayed;
