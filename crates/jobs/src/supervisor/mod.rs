//! Supervisor of one command: `<program> __supervise <folder of the job>`.
//!
//! A server starts the supervisor, which outlives the server. The supervisor holds the lock of the
//! job while it runs, starts the command once, and records the exit.

mod control;
mod inbox;
mod messages;
mod run;
mod supervise;

pub use supervise::supervise;
