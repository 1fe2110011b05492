//! The contract of [`Store`](super::Store), [`OperatorStore`](super::OperatorStore) and
//! [`PeopleStore`](super::PeopleStore), as checks that any store can run.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use outlive_tasks::store::{MemoryStore, contract::{ContractBench, checks}};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! for check in checks() {
//!     let store = Arc::new(MemoryStore::new());
//!     let clock = Arc::clone(&store);
//!     let bench = ContractBench::new(store, move |span: Duration| clock.advance_clock(span));
//!     (check.run)(bench).await; // panics if the store breaks the contract
//! }
//! # });
//! ```

mod abandon;
mod audience;
mod audit;
mod bench;
mod bridge;
mod budgets;
mod claim;
mod cleanup;
mod commit;
mod create;
mod decision_store;
mod delivery_queue;
mod end;
mod end_audit;
mod external_events;
mod inbox;
mod key_value;
mod list;
mod metric_store;
mod operator;
mod quarantine;
mod respond;
mod results;
mod stats;
mod task_index;
mod timeline;
mod waiting;

pub use bench::{Check, ContractBench};
pub use list::{checks, operator_checks, people_checks};
