//! Writes of a journal: the journal collects changes while the run is polled, and writes them
//! together.

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
    /// Starts to collect changes for a store. The task is created with the current content of the
    /// journal.
    pub(crate) fn begin_writing(&self) {
        let mut state = self.lock();
        if state.pending.is_none() {
            state.segments.all_written();
        }
        let (message, progress) = (state.early_message.take(), state.early_progress.take());
        state.pending.get_or_insert_default().add_earlier(message, progress);
    }

    /// Stops collecting changes, because the call gets no store. Records stay in memory.
    pub fn stop_writing(&self) {
        let pending = self.lock().pending.take();
        pending.into_iter().flat_map(PendingWrites::into_waiting).for_each(Waker::wake);
    }

    /// Takes the changes for the next write, including input requests. Takes no more until
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

    /// Marks the taken changes as written.
    pub(crate) fn written(&self) {
        let mut state = self.lock();
        let Some(pending) = &mut state.pending else { return };
        let waiting = pending.finish();
        state.segments.sent_are_written();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Marks the taken changes as rejected, because the principal has reached `limit`. Steps that
    /// wait for the write fail, and this run records nothing else.
    pub(crate) fn refuse(&self, limit: &'static str) {
        let mut state = self.lock();
        state.refused.get_or_insert(limit);
        state.lost_segments |= state.segments.forget_unwritten();
        let woken = state.pending.as_mut().map(PendingWrites::refuse).unwrap_or_default();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the limit for which the store rejected a write of this run.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.lock().refused
    }

    /// Returns whether emitted segments are missing from the store because it rejected a write.
    pub(crate) fn lost_segments(&self) -> bool {
        self.lock().lost_segments
    }

    /// Waits until a record is written.
    ///
    /// # Errors
    ///
    /// Returns an error if the store rejected the record.
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

    /// Sets the status message. Without a store, keeps it until the journal gets one.
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

    /// Reports progress, with a status message for clients that see progress only there. Ignores
    /// progress that does not grow. Progress that arrives too fast waits for the next write.
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

    /// Keeps the progress of a call that may become a task. The client gets the progress as a
    /// notification.
    pub fn keep_progress(&self, value: RawJson) {
        self.lock().early_progress = Some(value);
    }

    /// Sets the progress of an earlier run as the lower bound for this run.
    pub fn set_progress(&self, done: f64) {
        self.lock().progress = Some(done);
    }

    /// Returns how long pending progress waits for its write; `None` without progress.
    pub(crate) fn held_back(&self) -> Option<Duration> {
        self.lock().pending.as_ref()?.held_back()
    }

    /// Sets the waker for changes from outside the run.
    pub(crate) fn set_writer(&self, waker: &Waker) {
        if let Some(pending) = &mut self.lock().pending {
            pending.set_writer(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::InputRequest;

    use crate::{Journal, JournalLimits, poll_as, store::Audience};

    #[test]
    fn input_request_reopened_before_withdrawal_is_written_stays_open() {
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
            poll_as(run, || {
                journal.inputs().ask(run, "k", InputRequest::ListRoots, Audience::Client, None)
            })
            .unwrap();
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
