//! Layer 1: what every call of a server shares.
//!
//! - `environment`: [`Env`](environment::Env): clock, limits, seal, shared state, counters, test hooks.
//! - `task_backend`: the store, the engine, and what a server keeps about both.
//! - `admission`, `address_quotas`, `store_budget`: how many tasks and bytes a caller may have.
//! - `audit`, `task_metrics`: the audit log, and what the engine's events are counted as.
//! - `task_error`: errors that callers get for tasks.
//! - `used_states`: request states that were presented, where no store remembers them.
//! - `test_hooks`, `test_clock`: what `outlive::testing` does to journals and to time.

pub(crate) mod address_quotas;
pub(crate) mod admission;
pub(crate) mod audit;
pub(crate) mod environment;
pub(crate) mod store_budget;
pub(crate) mod task_backend;
pub(crate) mod task_error;
pub(crate) mod task_metrics;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "`outlive::testing` uses it"))]
pub(crate) mod test_clock;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "`outlive::testing` uses the rest"))]
pub(crate) mod test_hooks;
pub(crate) mod used_states;
