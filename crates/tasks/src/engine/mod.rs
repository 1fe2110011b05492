//! Task engine: claims due tasks, runs them under leases, and writes their journals.
//!
//! A process has one scheduler, and one driver for each running task. The store has all durable
//! state: a crashed process loses only unwritten records of its runs.

mod capacity;
mod changes;
mod claims;
mod cleanup;
mod config;
mod create;
mod detach_on_drop;
mod drive;
mod error;
mod events;
mod handle;
mod idle_run;
mod idle_runs;
mod leased;
mod retry;
mod runner;
mod schedule;
mod shares;
mod start;
mod state;
mod unacknowledged;

pub use crate::capacity::{Capacity, Permit};
pub use changes::ChangeStream;
pub use config::EngineConfig;
pub use create::Promotion;
pub use error::CreateError;
pub use events::{EngineEvent, EngineObserver};
pub use handle::Engine;
pub use idle_run::IdleRun;
pub use idle_runs::TooManyIdleRuns;
pub use runner::{
    Allowance, CleanupFuture, PrepareFuture, ReduceResult, StartError, TaskRun, TaskRunner, Work,
};
pub use unacknowledged::UnacknowledgedTask;
