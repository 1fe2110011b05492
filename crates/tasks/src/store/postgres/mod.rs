//! A store in a PostgreSQL database, which several replicas share. Any replica may accept the call,
//! run the task, serve the poll and receive the input response.
//!
//! A few connections write, and commit the operations of many callers in one transaction each
//! (`writer`, `batch`). Two connections read (`readers`). One holds the liveness lock and receives
//! change notifications of other replicas (`liveness`). Files named after traits implement the
//! traits; the other files contain the operations. Most operations call one function of the schema
//! (`schema/*.sql`).

mod audit;
mod audit_log;
mod batch;
mod bridge;
mod bridge_store;
mod changes;
mod claim;
mod clock;
mod column;
mod commit;
mod commit_alone;
mod connect;
mod copy;
mod create;
mod decision;
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
mod liveness;
mod metric;
mod metric_store;
mod operator_store;
mod options;
mod probe;
#[cfg(test)]
mod query_plans;
mod queue;
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
mod task_index;
mod task_store;
mod timeline;
mod tls;
mod transition;
mod url;
mod work_queue;
mod writer;

pub use options::PostgresOptions;
pub(super) use probe::probe;
pub use store::PostgresStore;
