//! [`Attending`]: a store write that makes a request wait for a task.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use outlive_protocol::{Call, CancelReason};
use outlive_tasks::store::{Departure, TaskId};
use tokio::runtime::Handle;

use super::attendance::Settle;
use crate::server::env::environment::Env;

/// A store write that makes a request wait for a task.
///
/// If the request ends before the write, the write finishes in the background, and the request then
/// leaves the task. Otherwise the task would count as attended although no client waits.
pub(crate) struct Attending<T: Send + 'static> {
    env: Arc<Env>,
    call: Arc<Call>,
    runtime: Handle,
    /// `None` after the write.
    write: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    /// Returns the task that the write made the request wait for.
    attended: fn(T) -> Option<TaskId>,
}

impl<T: Send + 'static> Attending<T> {
    /// Wraps a write. Must be called inside a Tokio runtime.
    pub(crate) fn new(
        env: &Arc<Env>,
        call: &Arc<Call>,
        write: impl Future<Output = T> + Send + 'static,
        attended: fn(T) -> Option<TaskId>,
    ) -> Self {
        let (env, call) = (Arc::clone(env), Arc::clone(call));
        Self { env, call, runtime: Handle::current(), write: Some(Box::pin(write)), attended }
    }
}

impl<T: Send + 'static> Future for Attending<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // The write is done, so no caller polls it again.
        let Some(write) = &mut self.write else { return Poll::Pending };
        let done = write.as_mut().poll(cx);
        if done.is_ready() {
            self.write = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for Attending<T> {
    fn drop(&mut self) {
        let (Some(write), Some(tasks)) = (self.write.take(), &self.env.tasks) else { return };
        let departure = tasks.bridges.depart();
        let (env, call, attended) = (Arc::clone(&self.env), Arc::clone(&self.call), self.attended);
        self.runtime.spawn(async move {
            if let Some(task) = attended(write.await)
                && let Ok(tasks) = env.tasks()
            {
                leave(&call).store(tasks, &call, &task).await;
            }
            drop(departure);
        });
    }
}

/// Returns how a request leaves that ended before its wait started.
fn leave(call: &Call) -> Settle {
    match call.port().cancel_reason() {
        Some(CancelReason::Requested) => Settle::Cancel,
        _ => Settle::Leave(Departure::Lost),
    }
}
