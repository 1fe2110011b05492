//! Durable execution for the crate `outlive`: journal, task stores, task engine; exempt from semver.
//!
//! - [`Journal`]: what the runs of a call have recorded, requested and emitted, by [`Key`]. A replayed run
//!   reads recorded results from it.
//! - [`polling`]: which run this thread polls, so that steps and input requests find their journal.
//! - [`IdleDetector`]: notices when a run is idle, so that it can be dropped and replayed later.
//! - [`store`]: the stores of tasks, and the contract that every store fulfills.
//! - [`engine`]: runs the tasks of a store.
//!
//! Nothing here knows a method of the protocol.

mod capacity;
mod current_run;
pub mod engine;
mod error;
mod idle;
mod journal;
mod key;
mod record;
mod setters;
pub mod store;
mod time;

pub use current_run::{RunId, in_step, poll_as, polling, step_of};
pub use error::JournalError;
pub use idle::{IdleDetector, RunPoll};
pub use journal::{
    CrashPoint, InputPoll, Journal, JournalInputs, JournalLimits, JournalRounds, OpenInputRequest,
    ReplayMismatch, Step, StepStart, Suspended, TimerGuard, WriteTicket,
};
pub use key::{IntoKey, Key};
pub use record::{InputFailure, JournalEntry, JournalSnapshot, SegmentRecord, StepFailure};
