//! `cargo xtask conformance`: the official suite against our server and our client.
//!
//! `conformance/package.json` pins two releases of the suite. They run in several legs: against a
//! server with fast tasks, against a server with default tasks in SQLite, and against client
//! processes that the suite starts. The command ignores the exit code of the suite. It compares the
//! results with the planned scenarios and `conformance/baseline.yml`, and prints one table. A
//! warning counts as a failure, and so does a baseline entry that passes.

mod baseline;
mod command;
mod gateway;
mod judge;
mod leg;
mod legs;
mod results;
mod server;
pub(crate) mod suite;
mod table;
mod versions;

pub(crate) use command::run;
