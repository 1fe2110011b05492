//! The journal of a call: recorded steps, input requests, timers and segments.
//!
//! `state` owns everything behind one lock. `open_inputs`, `segments` and `pending_writes` are its
//! parts; they do not know it. `inputs`, `steps`, `emit` and `writes` are its methods, by topic.

mod emit;
mod inputs;
mod open_inputs;
mod pending_writes;
mod segments;
mod state;
mod steps;
mod writes;

pub use open_inputs::{InputPoll, OpenInputRequest};
pub use pending_writes::WriteTicket;
pub use state::{CrashPoint, Journal, JournalLimits, YieldToReplica};
pub use steps::{Step, StepStart, TimerGuard};
