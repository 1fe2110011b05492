//! Gated calls by five kinds of clients, while people vote and servers are killed.
//!
//! A call has a key. The tool appends its words to a file, so the judge compares what ran with what people saw when they
//! approved. `kinds` has the clients, `approvers` the people, `killer` the `kill -9` at the write points, `ledger` the
//! votes, and `judge` the verdict.

mod approvers;
mod campaign;
mod client;
mod judge;
mod killer;
mod kinds;
mod ledger;
mod shared;

pub(super) use campaign::run;
