//! A tool that is a command: starts it under a supervisor, or finds the one that an earlier run of
//! this call has started, and follows it to its end.
//!
//! The call's journal knows on which machine the command was started, and how often it was lost.
//! Everything else is in the job's folder: lines are read from the first one each time, and those
//! that were emitted before are not emitted again.

mod error;
mod follow;
mod run;

use error::unreachable;
pub(super) use run::Command;
