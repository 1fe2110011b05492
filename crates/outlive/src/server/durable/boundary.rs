//! Checks that every step, timer and wait makes: is the task cancelled, and must the call become a
//! task first?

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use crate::server::{
    durable::context::Durable, durable_error::DurableError, error::Result, time::millis,
};

impl Durable {
    /// Returns a context that ignores the cancellation of the task. Its steps start and its waits
    /// continue until `cancel_grace` ends and the run is dropped. Use it for work that must finish
    /// once started. Other contexts fail with [`DurableError::TaskCancelled`] after the
    /// cancellation.
    pub fn shielded(&self) -> Durable {
        self.journal().shield();
        self.to_shielded()
    }

    /// Returns an error if the task was cancelled. An inline call needs no check: its future is
    /// dropped when the call is cancelled.
    pub(crate) fn go_on(&self, key: &str) -> Result<(), DurableError> {
        let stops = !self.is_shielded() && self.run().is_task_cancelled();
        match stops {
            true => Err(DurableError::TaskCancelled { key: key.to_owned() }),
            false => Ok(()),
        }
    }

    /// Checks for cancellation as [`Durable::go_on`] does. Then it promotes the call to a task if
    /// the step's record must survive the process.
    pub(crate) async fn begin_step(&self, key: &str) -> Result<()> {
        self.go_on(key)?;
        let run = self.run();
        if run.promotes_at_step() {
            // If the promotion fails, the call continues inline.
            poll_fn(|task| run.poll_task(task)).await;
        }
        Ok(())
    }

    /// Checks for cancellation as [`Durable::go_on`] does, while the handler waits.
    pub(crate) fn poll_stopped(&self, key: &str, task: &mut Context<'_>) -> Poll<DurableError> {
        if self.is_shielded() {
            return Poll::Pending;
        }
        // Registers the waker. The run knows whether its task or its call is cancelled.
        let _: Poll<()> = self.call().port().poll_cancelled(task);
        self.go_on(key).map_or_else(Poll::Ready, |()| Poll::Pending)
    }

    /// Waits for `span`. Fails if the task is cancelled meanwhile.
    pub(crate) async fn pause(&self, key: &str, span: Duration) -> Result<()> {
        // Tests skip time without waking timers, so the due time is compared instead.
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

    /// Waits between two attempts of a step. A test advances its clock instead.
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
