//! Durable execution for the crate `outlive`: journal, task stores, task engine; exempt from
//! semver.
//!
//! - [`Journal`]: the recorded results, input requests and segments of a call, by [`Key`]. A
//!   replayed run reads recorded results from it.
//! - [`polling`]: the run that the current thread polls, so that steps and input requests find
//!   their journal.
//! - [`IdleDetector`]: detects idle runs, so that the engine can drop them and replay them later.
//! - [`store`]: the task stores, and the contract suite that every store passes.
//! - [`engine`]: runs the tasks of a store.
//!
//! No code in this crate depends on a method of the protocol.

mod capacity;
mod current_run;
pub mod engine;
mod error;
mod fair_queue;
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
    APPROVAL, ApprovalRequest, CrashPoint, InputPoll, Journal, JournalInputs, JournalLimits,
    JournalRounds, OpenInputRequest, ReplayMismatch, START, Step, StepStart, Suspended, TimerGuard,
    WriteTicket,
};
pub use key::{IntoKey, Key};
pub use record::{InputFailure, JournalEntry, JournalSnapshot, SegmentRecord, StepFailure};
