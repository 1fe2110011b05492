//! A store in memory. All tasks are lost when the process ends.

mod audit_events;
mod audit_log;
mod bridge_store;
mod calls;
mod decision_store;
mod deliveries;
mod delivery_queue;
mod input_row;
mod input_store;
mod inputs;
mod key_value_store;
mod key_values;
mod metric_store;
mod metrics;
mod operator_store;
mod result_store;
mod row;
mod state;
mod store_monitor;
mod table;
mod task_index;
mod task_store;
mod work_queue;

pub use state::MemoryStore;
