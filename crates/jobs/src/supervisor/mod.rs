//! The process that watches over one command: `<program> __supervise <folder of the job>`.
//!
//! It is started by a server and outlives it. It holds the job's lock for as long as it lives, starts the command once,
//! and writes down how it ended.

mod control;
mod inbox;
mod messages;
mod ready;
mod run;
mod supervise;

pub(super) use ready::READY;
pub use supervise::supervise;
