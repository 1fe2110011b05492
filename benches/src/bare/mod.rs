//! The control for durable tasks: commits of the same bytes with the same durability and batching,
//! and nothing else.
//!
//! The rows have the columns of our stores. There are only primary keys, and no checks, counts,
//! notifications or lookups. Writes that are queued during a commit share the next one, without
//! a timer.

mod postgres;
mod sqlite;
mod store;
mod write;

pub(crate) use sqlite::Reader;
pub(crate) use store::Bare;
pub(crate) use write::Write;
use write::{BATCH, DAY, QUEUE, Queued, now};
