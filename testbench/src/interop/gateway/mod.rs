//! `cargo xtask interop --gateway`: third-party clients and servers of every protocol version, with
//! `outlive serve` between them.
//!
//! The rows are the features of the gateway, and the cells are the 25 pairs of protocol versions
//! (`rows`). Third-party packages play both sides, where one has that version and feature
//! (`peers`); Outlive, pinned to the version, plays the rest (`plan`). A cell works if its client
//! succeeds and the messages of the feature are seen on both connections of the gateway
//! (`evidence`, `wire`). A cell that fails needs an entry in `gaps`.

mod cells;
mod command;
mod evidence;
mod foreign;
mod gaps;
mod leg;
mod page;
mod peers;
mod plan;
mod rows;
mod tools;
mod tutorial;
mod versions;
mod wire;

pub(super) use command::run;
