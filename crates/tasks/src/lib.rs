//! What lets a handler go on where it stopped: the journal of its run.
//!
//! - [`Journal`]: what a run has recorded, asked and emitted, by name. A run that begins again
//!   over the same journal reads back what it finds there instead of doing it again.
//! - [`Key`]: the names.
//! - [`polling`]: which run this thread is polling, so that steps and questions know their own.
//! - [`IdleDetector`]: when a run is parked, so that it can be dropped and begun again later.
//!
//! - [`store`]: where tasks are kept, and the contract that every store fulfils.
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
