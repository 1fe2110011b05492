//! The task engine: claims due tasks, runs them under leases, and writes what they record.
//!
//! A process has one scheduler, and one driver for each task that it runs. The engine holds no state
//! of its own: a process that crashes loses only what its runs have not written yet.

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
mod leased;
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
pub use runner::{Allowance, CleanupFuture, StartError, TaskRun, TaskRunner, Work};
pub use unacknowledged::UnacknowledgedTask;
