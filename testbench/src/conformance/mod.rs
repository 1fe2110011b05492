//! `cargo xtask conformance`: the official suite against our server and our client, strictly.
//!
//! Two releases of the suite are pinned in `conformance/package.json`. They run in several legs: against
//! a server with quick tasks, against one whose tasks are in SQLite with all settings as they are by default,
//! and against client processes that the suite starts. We do not take its exit code for an answer: its results are read, held against the
//! list of what should have run and against `conformance/baseline.yml`, and printed as one table.
//! A warning counts as a failure, and so does a listed failure that no longer fails.

mod baseline;
mod command;
mod judge;
mod leg;
mod legs;
mod results;
mod server;
pub(crate) mod suite;
mod table;
mod versions;

pub(crate) use command::run;
