//! The place of one run in a process. Dropping it drops the run there.

use std::sync::Arc;

use outlive::server::{
    Durable,
    durable::{DropReason, Permit},
};

use crate::{
    counters::Counters,
    line::from_server::RunNumber,
    mailbox::Mailbox,
    pool::{Place, PlaceError, Pool},
    process::Process,
};

/// The place of one run in a process.
pub(crate) struct Seat {
    pub(crate) mailbox: Arc<Mailbox>,
    cx: Durable,
    pool: Arc<Pool>,
    place: Place,
    permit: Option<Permit>,
    /// Whether the process has the line that starts the run.
    has_started: bool,
    /// Whether the process no longer has the run.
    is_over: bool,
}

impl Seat {
    /// Takes a place in a process, in a separate one if `is_alone`.
    ///
    /// # Errors
    ///
    /// Returns an error if no process accepts the call.
    pub(crate) async fn take(
        cx: &Durable,
        pool: &Arc<Pool>,
        tool: &str,
        permit: Permit,
        is_alone: bool,
    ) -> Result<Self, PlaceError> {
        let mailbox = Arc::default();
        let place = pool.place(tool, &mailbox, is_alone).await?;
        let (cx, pool, permit) = (cx.clone(), Arc::clone(pool), Some(permit));
        Ok(Self { mailbox, cx, pool, place, permit, has_started: false, is_over: false })
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.place.process
    }

    pub(crate) fn number(&self) -> u64 {
        self.place.number
    }

    /// Sends the lines that start the run. A long journal waits until the process has read others.
    pub(crate) async fn start(&mut self, lines: Vec<String>) {
        for line in lines {
            self.process().outbox.room().await;
            self.process().outbox.send(&line);
        }
        self.has_started = true;
    }

    /// Removes the run, because its last line has arrived.
    pub(crate) fn end(mut self) {
        self.process().set_useful();
        self.is_over = true;
        self.process().remove(self.number());
    }

    /// Returns the permit of a run whose process is lost.
    pub(crate) fn lost(mut self) -> Option<Permit> {
        Counters::add(&self.pool.counters.losses);
        self.is_over = true;
        self.permit.take()
    }

    /// Drops the run for this reason. Returns the permit for the next process.
    pub(crate) fn leave(mut self, reason: &str) -> Option<Permit> {
        self.is_over = true;
        let permit = self.permit.take();
        self.process().drop_run(RunNumber::Call(self.number()), reason, None);
        permit
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.is_over && !self.has_started {
            self.process().remove(self.number());
        } else if !self.is_over {
            let reason = match self.cx.drop_reason() {
                DropReason::Suspended => "suspended",
                DropReason::Cancelled => "cancelled",
                DropReason::LeaseLost => "lease_lost",
                _ => "parked",
            };
            let permit = self.permit.take();
            self.process().drop_run(RunNumber::Call(self.number()), reason, permit);
        }
        if self.place.is_alone {
            self.process().retire();
        }
    }
}
