//! The right of one call to use an upstream connection.

use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use outlive::server::{
    Durable, Error,
    durable::{Capacity, Permit},
};

use super::connection::{Connection, MAX_CONCURRENT, MAX_WAITING};
use crate::status::Problem;

/// The right of one call to use an upstream connection.
#[derive(Debug)]
pub(crate) struct Lease {
    used: InUse,
    _permit: Permit,
}

/// Reason why a call gets no upstream connection.
#[derive(Debug)]
pub(crate) enum AcquireError {
    /// The upstream cannot be used.
    Problem { problem: Problem, retry_after: Option<Duration> },
    /// A limit is reached: its name, and the number in use.
    Full { limit: &'static str, in_use: usize },
    /// The call must not continue.
    Call(Error),
}

/// A connection that must not be stopped as idle.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Connection>);

impl InUse {
    /// Marks the connection as used. The pool calls this under its lock, which the idle stop takes.
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        connection.begin_call();
        Self(Arc::clone(connection))
    }

    /// Waits in memory for a place among the calls of the connection.
    pub(super) async fn lease(self) -> Result<Lease, AcquireError> {
        let waits = Waits::enter(&self.0)?;
        let permit = self.0.permits.acquire(self.caller()).await;
        drop(waits);
        Ok(Lease { used: self, _permit: permit })
    }

    /// Waits for a place among the calls of the connection. A task waits in the store, and frees its
    /// worker.
    pub(crate) async fn lease_for(self, cx: &Durable) -> Result<Lease, AcquireError> {
        if cx.task_id().is_none() {
            let waits = Waits::enter(&self.0)?;
            let permit = tokio::select! {
                permit = self.0.permits.acquire(self.caller()) => Some(permit),
                () = becomes_task(cx) => None,
                () = cx.cancelled() => return Err(AcquireError::Call(cancelled())),
            };
            drop(waits);
            if let Some(permit) = permit {
                return Ok(Lease { used: self, _permit: permit });
            }
        }
        let permit = acquire_permit(cx, &self.0.permits).await.map_err(AcquireError::Call)?;
        Ok(Lease { used: self, _permit: permit })
    }

    /// Returns the caller that takes turns with others.
    fn caller(&self) -> &str {
        self.0.key.principal().unwrap_or_default()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

impl Lease {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.used.0
    }
}

/// Acquires a permit for a task, which says so while it waits in the store.
pub(crate) async fn acquire_permit(cx: &Durable, capacity: &Capacity) -> Result<Permit, Error> {
    let is_full = capacity.used() >= capacity.max();
    if is_full && cx.task_id().is_some() {
        cx.set_status_message(format!("waiting for a free place: {}", capacity.name()));
    }
    cx.acquire(capacity).await
}

/// Completes when the call is a task. The promotion polls the run again.
async fn becomes_task(cx: &Durable) {
    poll_fn(|_| match cx.task_id() {
        Some(_) => Poll::Ready(()),
        None => Poll::Pending,
    })
    .await;
}

/// Returns the error of a cancelled call.
pub(crate) fn cancelled() -> Error {
    Error::new("the call was cancelled")
}

/// Counts a call that waits.
struct Waits(Arc<Connection>);

impl Waits {
    fn enter(connection: &Arc<Connection>) -> Result<Self, AcquireError> {
        let before = connection.waiting.fetch_add(1, Ordering::AcqRel);
        let waits = Self(Arc::clone(connection));
        match before < MAX_WAITING {
            true => Ok(waits),
            false => Err(AcquireError::Full { limit: MAX_CONCURRENT, in_use: before }),
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
