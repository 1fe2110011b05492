//! Journal of a call: recorded steps, input requests, timers and segments.
//!
//! `inputs`, `segments`, `steps` and `pending_writes` are state machines that do not depend on the
//! journal. `state` owns them behind one lock. `approval`, `ask`, `emit`, `parking`, `put`, `records`,
//! `replay`, `rerun`, `rounds`, `step` and `write` contain the methods of the journal, by topic.

mod approval;
mod ask;
mod emit;
mod inputs;
mod parking;
mod pending_writes;
mod put;
mod records;
mod replay;
mod rerun;
mod rounds;
mod segments;
mod state;
mod step;
mod steps;
mod write;

pub use ask::JournalInputs;
pub use inputs::{APPROVAL, ApprovalRequest, InputPoll, OpenInputRequest, START};
pub use pending_writes::WriteTicket;
pub use replay::ReplayMismatch;
pub use rounds::JournalRounds;
pub(crate) use state::YieldToReplica;
pub use state::{CrashPoint, Journal, JournalLimits, Suspended};
pub use step::{Step, StepStart, TimerGuard};
