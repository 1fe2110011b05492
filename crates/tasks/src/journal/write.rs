//! How the changes of a journal reach its store: gathered while the run is polled, written together.

use std::{
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;

use super::{
    pending_writes::{PendingWrites, TicketPoll, WriteTicket},
    state::Journal,
};
use crate::{error::JournalError, store::Changes};

impl Journal {
    /// Starts to gather changes for a store. The task is created with what the journal has now.
    pub(crate) fn begin_writing(&self) {
        let mut state = self.lock();
        if state.pending.is_none() {
            state.segments.all_written();
        }
        let (message, progress) = (state.early_message.take(), state.early_progress.take());
        state.pending.get_or_insert_default().add_earlier(message, progress);
    }

    /// Stops to gather changes: there is no store after all, and records stay in memory.
    pub fn stop_writing(&self) {
        let pending = self.lock().pending.take();
        pending.into_iter().flat_map(PendingWrites::into_waiting).for_each(Waker::wake);
    }

    /// Takes the changes for the next write, input requests included. Takes no more until
    /// [`Journal::written`].
    pub(crate) fn take_changes(&self) -> Option<Changes> {
        let mut state = self.lock();
        state.pending.as_ref()?;
        let requests = state.inputs.take_unwritten();
        let (changes, blocked) = state.pending.as_mut()?.take(requests)?;
        state.segments.all_sent();
        drop(state);
        blocked.into_iter().for_each(Waker::wake);
        Some(changes)
    }

    /// Notes that the changes are written.
    pub(crate) fn written(&self) {
        let mut state = self.lock();
        let Some(pending) = &mut state.pending else { return };
        let waiting = pending.finish();
        state.segments.sent_are_written();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Notes that a write was refused, because the principal has reached this limit of stored bytes. Steps
    /// that wait for the write fail, and this run records nothing more.
    pub(crate) fn refuse(&self, limit: &'static str) {
        let mut state = self.lock();
        state.refused.get_or_insert(limit);
        state.lost_segments |= state.segments.forget_unwritten();
        let woken = state.pending.as_mut().map(PendingWrites::refuse).unwrap_or_default();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the limit for which a write of this run was refused.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.lock().refused
    }

    /// Returns whether segments were emitted that are not stored, because a write was refused.
    pub(crate) fn lost_segments(&self) -> bool {
        self.lock().lost_segments
    }

    /// Waits until a record is written.
    ///
    /// # Errors
    ///
    /// When the store has refused it.
    pub fn poll_written(
        &self,
        ticket: WriteTicket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), JournalError>> {
        let mut state = self.lock();
        let Some(pending) = &mut state.pending else { return Poll::Ready(Ok(())) };
        match pending.poll_ticket(ticket, cx) {
            TicketPoll::Written => Poll::Ready(Ok(())),
            TicketPoll::Refused => Poll::Ready(state.takes_more()),
            TicketPoll::Pending => Poll::Pending,
        }
    }

    /// Sets the status message. Without a store it waits for one.
    pub fn set_status_message(&self, message: String) {
        let mut state = self.lock();
        let Some(pending) = &mut state.pending else {
            state.early_message = Some(message);
            return;
        };
        let writer = pending.set_message(message);
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Reports progress, with a status message if the client sees progress only there. Progress that does
    /// not grow is ignored, and progress that comes too fast waits for the next write.
    pub fn progress(&self, done: f64, message: Option<String>, value: RawJson) {
        let mut state = self.lock();
        if !done.is_finite() || state.progress.is_some_and(|last| done <= last) {
            return;
        }
        state.progress = Some(done);
        let Some(pending) = &mut state.pending else {
            state.early_message = message.or(state.early_message.take());
            return;
        };
        let writer = pending.set_progress(message, value);
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Keeps the progress of a call that may become a task. Its client gets it as a notification.
    pub fn keep_progress(&self, value: RawJson) {
        self.lock().early_progress = Some(value);
    }

    /// Sets the progress of an earlier run. The run reports no less than that.
    pub fn set_progress(&self, done: f64) {
        self.lock().progress = Some(done);
    }

    /// Returns how long progress waits for its write, if there is some.
    pub(crate) fn held_back(&self) -> Option<Duration> {
        self.lock().pending.as_ref()?.held_back()
    }

    /// Sets whom changes from outside of the run wake.
    pub(crate) fn set_writer(&self, waker: &Waker) {
        if let Some(pending) = &mut self.lock().pending {
            pending.set_writer(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::InputRequest;

    use crate::{Journal, JournalLimits, poll_as};

    #[test]
    fn a_question_that_is_asked_again_before_its_withdrawal_is_written_is_not_withdrawn() {
        let journal = Journal::new(JournalLimits {
            bytes: 1_000,
            open_inputs: 10,
            leaves: false,
            segments: 10,
            segment_bytes: 100,
        });
        journal.begin_writing();
        let run = 1;
        let ask = || {
            poll_as(run, || journal.inputs().ask(run, "k", InputRequest::ListRoots, None)).unwrap();
        };
        ask();
        assert_eq!(journal.take_changes().unwrap().input_requests.len(), 1);
        journal.written();
        journal.inputs().withdraw("k");
        ask();
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (1, 0));
        journal.written();
        journal.inputs().withdraw("k");
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (0, 1));
    }
}
