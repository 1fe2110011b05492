//! `cargo xtask crash`: real servers on one store, killed, frozen and restarted under load.
//!
//! Clients of both wires begin jobs and follow them while a plan made from a seed hurts the servers.
//! Then all faults are healed, everything has to end, and what happened is held against what may:
//! `judge` says what that is. Faults that never hit anything fail the run too.

mod campaign;
mod client;
pub(crate) mod database;
mod fleet;
pub(crate) mod http;
mod job;
mod judge;
pub(crate) mod killed;
mod oracle;
mod plan;
mod random;
pub(crate) mod rolling;
mod setting;
mod stall;
pub(crate) mod streams;
mod table;
pub(crate) mod takeover;

pub(crate) use campaign::run;
