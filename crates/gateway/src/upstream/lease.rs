//! The right of one call to use an upstream connection.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Connection, MAX_WAITING};
use crate::status::Problem;

/// The right of one call to use an upstream connection.
#[derive(Debug)]
pub(crate) struct Lease {
    used: InUse,
    _permit: OwnedSemaphorePermit,
}

/// Reason why a call gets no upstream connection.
#[derive(Clone, Debug)]
pub(crate) enum AcquireError {
    /// The upstream cannot be used.
    Problem { problem: Problem, retry_after: Option<Duration> },
    /// A limit is reached: its name, and the number in use.
    Full { limit: &'static str, in_use: usize },
}

/// A connection that must not be stopped as idle.
#[derive(Debug)]
pub(super) struct InUse(Arc<Connection>);

impl InUse {
    /// Marks the connection as used. The pool calls this under its lock, which the idle stop takes.
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        connection.begin_call();
        Self(Arc::clone(connection))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

impl Lease {
    /// Waits for a place among the calls of a connection.
    pub(super) async fn new(used: InUse) -> Result<Self, AcquireError> {
        let waits = Waits::enter(&used.0)?;
        let permits = Arc::clone(&used.0.permits);
        let Ok(permit) = permits.acquire_owned().await else {
            return Err(AcquireError::Full { limit: "max_concurrent", in_use: 0 });
        };
        drop(waits);
        Ok(Self { used, _permit: permit })
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.used.0
    }
}

/// Counts a call that waits.
struct Waits(Arc<Connection>);

impl Waits {
    fn enter(connection: &Arc<Connection>) -> Result<Self, AcquireError> {
        let before = connection.waiting.fetch_add(1, Ordering::AcqRel);
        let waits = Self(Arc::clone(connection));
        match before < MAX_WAITING {
            true => Ok(waits),
            false => Err(AcquireError::Full { limit: "max_concurrent", in_use: before }),
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
