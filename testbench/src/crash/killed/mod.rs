//! `cargo xtask killed-clients`: clients that are killed at any moment of a call, and processes
//! that resume the call.
//!
//! Each run calls a tool that runs steps, elicits, and runs more steps. The client is killed with
//! `kill -9` at a chosen moment, and a second process resumes the saved call. The files of the
//! first process and its lines in the oracle tell in which phase the kill fell. Every result must
//! arrive, every step must execute once, and no input request may be answered twice. A second leg
//! uses a server without idempotency keys: there a call that was killed before its response must be
//! reported as possibly executed.

mod campaign;
mod judge;
mod phase;

pub(crate) use campaign::run;
