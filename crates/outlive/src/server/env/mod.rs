//! Layer 1: state that all calls of a server share.
//!
//! - `environment`: [`Env`](environment::Env): clock, limits, seal, shared state, counters, test
//!   hooks.
//! - `task_backend`: the store, the engine and their settings.
//! - `admission`, `address_quotas`, `store_budget`: quotas on tasks and stored bytes.
//! - `bridges`: requests that wait for tasks of bridged calls; `outstanding`: entries that have not
//!   ended.
//! - `host_limits`: the limits of a call's client.
//! - `audit`, `task_metrics`: the audit log, and metrics from engine events.
//! - `task_notifier`: notifications of events of tasks.
//! - `overview`, `task_times`: data for the overview of a console.
//! - `public_address`: addresses of the server for people.
//! - `task_error`: errors that clients receive for tasks.
//! - `used_states`: used request states of a server without a store.
//! - `test_hooks`, `test_clock`: hooks of `outlive::testing` for journals and time.

pub(crate) mod address_quotas;
pub(crate) mod admission;
pub(crate) mod audit;
pub(crate) mod bridges;
pub(crate) mod environment;
pub(crate) mod host_limits;
mod outstanding;
pub(crate) mod overview;
pub(crate) mod public_address;
pub(crate) mod store_budget;
pub(crate) mod task_backend;
pub(crate) mod task_error;
pub(crate) mod task_metrics;
pub(crate) mod task_notifier;
mod task_times;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "`outlive::testing` uses it"))]
pub(crate) mod test_clock;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "`outlive::testing` uses the rest"))]
pub(crate) mod test_hooks;
pub(crate) mod used_states;
