//! What every step, timer and wait looks at before it begins, and while it waits: whether the task was
//! cancelled, and whether the call has to be a task first.

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use crate::server::{
    durable::context::Durable, durable_error::DurableError, error::Result, time::millis,
};

impl Durable {
    /// A context that goes on when the task is cancelled: its steps begin, and its waits are waited
    /// for, until `cancel_grace` is over and the run is dropped. For what has to be brought to an
    /// end once it is begun. All others fail with [`DurableError::TaskCancelled`] from then on.
    pub fn shielded(&self) -> Durable {
        self.journal().shield();
        self.to_shielded()
    }

    /// Goes on, unless the task was cancelled. A call that is no task is dropped when it is.
    pub(crate) fn go_on(&self, key: &str) -> Result<(), DurableError> {
        let stops = !self.is_shielded() && self.run().is_task_cancelled();
        match stops {
            true => Err(DurableError::TaskCancelled { key: key.to_owned() }),
            false => Ok(()),
        }
    }

    /// As [`Durable::go_on`], before a step: where its record must not be lost with the process, the
    /// call becomes a task first.
    pub(crate) async fn begin_step(&self, key: &str) -> Result<()> {
        self.go_on(key)?;
        let run = self.run();
        if run.promotes_at_step() {
            // If it does not become one, it goes on as a call.
            poll_fn(|_| run.poll_task()).await;
        }
        Ok(())
    }

    /// As [`Durable::go_on`], while something is waited for.
    pub(crate) fn poll_stopped(&self, key: &str, task: &mut Context<'_>) -> Poll<DurableError> {
        if self.is_shielded() {
            return Poll::Pending;
        }
        // A test cancels the run alone, and not the call.
        let is_called_off = self.call().port().poll_cancelled(task).is_ready();
        if !is_called_off && self.env().test_hooks.is_none() {
            return Poll::Pending;
        }
        self.go_on(key).map_or_else(Poll::Ready, |()| Poll::Pending)
    }

    /// Lets some time pass, unless the task is cancelled meanwhile.
    pub(crate) async fn pause(&self, key: &str, span: Duration) -> Result<()> {
        // A test skips time, and no timer notices.
        let skips = self.env().test_hooks.is_some();
        let due = if skips { self.now().saturating_add(millis(span)) } else { u64::MAX };
        let mut time = self.env().profile.clock.sleep(span);
        poll_fn(|task| match self.poll_stopped(key, task) {
            Poll::Ready(stopped) => Poll::Ready(Err(stopped.into())),
            Poll::Pending if skips && self.now() >= due => Poll::Ready(Ok(())),
            Poll::Pending => time.as_mut().poll(task).map(Ok),
        })
        .await
    }

    /// Waits between two attempts of a step. A test does not.
    pub(crate) async fn back_off(&self, key: &str, span: Duration) -> Result<()> {
        match &self.env().test_hooks {
            Some(hooks) => {
                hooks.skip(millis(span));
                Ok(self.go_on(key)?)
            }
            None => self.pause(key, span).await,
        }
    }
}
