//! `cargo xtask hosts`: slow tools and large results in hosts whose clients do not support tasks.
//!
//! Real client packages (`conformance/hosts`, pinned) call `outlive serve`, and a model follows the
//! texts of pending results. Raw callers kill the server, look up foreign tasks, try to answer input
//! requests, and read large results. The tools record their executions in a file. Every row has a
//! figure and a bar; a row that misses its bar fails the command.

mod answers;
mod bench;
mod bytes;
pub(crate) mod caller;
mod command;
mod comparison;
mod foreign;
pub(crate) mod home;
mod kills;
mod large;
mod long_calls;
mod packages;
mod times;

pub(crate) use command::run;
