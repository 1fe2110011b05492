//! `cargo xtask crash`: real servers on one store, killed, frozen and restarted under load.
//!
//! Clients of both eras start jobs and follow them while a seeded plan injects failures. Then all
//! processes recover, every job must end, and `judge` checks the guarantees. A planned failure that
//! never hits a task fails the run too.

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
pub(crate) mod random;
pub(crate) mod rolling;
mod setting;
mod stall;
pub(crate) mod streams;
pub(crate) mod table;
pub(crate) mod takeover;

pub(crate) use campaign::run;
