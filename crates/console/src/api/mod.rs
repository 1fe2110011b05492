//! The HTTP API of the console: `api/v1` below its path.
//!
//! `index` lists every endpoint, `respond` routes to the file of its row, and `call` reads parameters
//! and bodies. Responses are JSON with RFC 3339 times; errors are `{error, remedy}`.

mod actions;
mod answer;
mod bulk;
pub(crate) mod call;
pub(crate) mod error;
mod inbox;
mod index;
mod link;
mod operations;
mod respond;
mod tasks;

pub(crate) use respond::respond;
pub(crate) use tasks::event_line;
