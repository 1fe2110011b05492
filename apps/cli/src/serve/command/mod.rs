//! A tool that runs a command: starts it under a supervisor, or finds it if an earlier run of the
//! call started it, and follows it to its exit.
//!
//! The journal of the call has the machine of the command and its lost attempts. Everything else is
//! in the job folder. Each run reads the lines from the first one, and the journal skips those
//! already emitted.

mod error;
mod follow;
mod run;
mod steps;

use error::unreachable;
pub(super) use run::{Command, PASSED_ON};
