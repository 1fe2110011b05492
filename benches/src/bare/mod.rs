//! The control of everything durable: commits of the same bytes, as safe and as much together, with
//! nothing around them.
//!
//! The rows are those of our stores, column by column; there is no index but by name, and nothing is
//! checked, counted, told or looked up. What is queued while a commit is on its way shares the next;
//! there is no timer.

mod postgres;
mod sqlite;
mod store;
mod write;

pub(crate) use sqlite::Reader;
pub(crate) use store::Bare;
pub(crate) use write::Write;
use write::{BATCH, DAY, QUEUE, Queued, now};
