//! What every step, timer and wait looks at before it begins, and while it waits: whether the task was
//! cancelled, and whether the call has to be a task first.

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use super::{Durability, Durable, DurableError};
use crate::server::Result;

impl Durable {
    /// A context that goes on when the task is cancelled: its steps begin, and its waits are waited
    /// for, until `cancel_grace` is over and the run is dropped. For what has to be brought to an
    /// end once it is begun. All others fail with [`DurableError::TaskCancelled`] from then on.
    pub fn shielded(&self) -> Durable {
        self.journal().shield();
        Durable { cx: self.cx.clone(), scope: self.scope.clone(), shielded: true }
    }

    /// Goes on, unless the task was cancelled. A call that is no task is dropped when it is.
    pub(super) fn go_on(&self, key: &str) -> Result<(), DurableError> {
        let durability = self.cx.call().attached::<Durability>();
        let stops = !self.shielded && durability.is_some_and(Durability::is_task_cancelled);
        match stops {
            true => Err(DurableError::TaskCancelled { key: key.to_owned() }),
            false => Ok(()),
        }
    }

    /// As [`Durable::go_on`], before a step: where its record must not be lost with the process, the
    /// call becomes a task first.
    pub(super) async fn begin_step(&self, key: &str) -> Result<()> {
        self.go_on(key)?;
        let durability = self.durability();
        if durability.promotes_at_step() {
            // If it does not become one, it goes on as a call.
            poll_fn(|task| durability.poll_task(task)).await;
        }
        Ok(())
    }

    /// As [`Durable::go_on`], while something is waited for.
    pub(super) fn poll_stopped(&self, key: &str, task: &mut Context<'_>) -> Poll<DurableError> {
        if self.shielded || self.call().port().poll_cancelled(task).is_pending() {
            return Poll::Pending;
        }
        self.go_on(key).map_or_else(Poll::Ready, |()| Poll::Pending)
    }

    /// Lets some time pass, unless the task is cancelled meanwhile.
    pub(super) async fn pause(&self, key: &str, span: Duration) -> Result<()> {
        let mut time = self.cx.core().profile.clock.sleep(span);
        poll_fn(|task| match self.poll_stopped(key, task) {
            Poll::Ready(stopped) => Poll::Ready(Err(stopped.into())),
            Poll::Pending => time.as_mut().poll(task).map(Ok),
        })
        .await
    }
}
