//! A store in one SQLite file, which several processes may share. An acknowledged write is on disk.
//!
//! One thread writes, and commits the operations of many callers in one transaction (`writer`). Two
//! threads read (`readers`), and one polls for changes of other processes (`changes`). No database
//! access runs on runtime threads. Files named after traits implement the traits; the other files
//! contain the operations.

mod abandon;
mod addressee;
mod audit;
mod audit_log;
mod batch;
mod bridge;
mod bridge_store;
mod byte_limit;
mod change_log;
mod changes;
mod claim;
mod clock;
mod column;
mod commit;
mod connect;
mod create;
mod decide;
mod decision_store;
mod delivery;
mod delivery_queue;
mod end;
mod error;
mod inbox;
mod input_request;
mod input_store;
mod journal;
mod key_value;
mod key_value_store;
mod listeners;
mod metric;
mod metric_store;
mod operator_store;
mod options;
mod phase_counts;
mod principal_quota;
mod probe;
#[cfg(test)]
mod query_plans;
mod read;
mod readers;
mod respond;
mod result_part;
mod result_store;
mod schema;
mod search;
mod state;
mod statement;
mod store;
mod store_monitor;
mod summary;
mod sweep;
mod tag;
mod task_index;
mod task_store;
mod timeline;
mod vote;
mod work_queue;
mod workers;
mod writer;

pub use options::{SqliteOptions, Synchronous};
pub(super) use probe::probe;
pub use store::SqliteStore;
