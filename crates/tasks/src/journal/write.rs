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
use crate::{
    error::JournalError,
    store::{Changes, MAX_TAG_BYTES, MAX_TAGS},
};

impl Journal {
    /// Starts to collect changes for a store. The task is created with the current content of the
    /// journal.
    pub(crate) fn begin_writing(&self) {
        let mut state = self.lock();
        if state.pending.is_none() {
            state.segments.all_written();
            let tags = state.tags.clone();
            state.pending.get_or_insert_default().add_tags(tags);
        }
        let (message, progress) = (state.early_message.take(), state.early_progress.take());
        state.pending.get_or_insert_default().add_earlier(message, progress);
    }

    /// Records the duration of each step that starts from now on.
    pub(crate) fn record_durations(&self) {
        self.lock().timed = true;
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

    /// Adds a tag to the task, as `key=value`. Without a store, keeps it until the journal gets one.
    ///
    /// # Errors
    ///
    /// Returns an error if the tag has no `=` or is too long, or if the task has too many tags.
    pub fn add_tag(&self, tag: String) -> Result<(), JournalError> {
        if tag.len() > MAX_TAG_BYTES || !tag.contains('=') {
            return Err(JournalError::InvalidTag { tag, limit: MAX_TAG_BYTES });
        }
        let mut state = self.lock();
        if state.tags.contains(&tag) {
            return Ok(());
        }
        if state.tags.len() >= MAX_TAGS {
            return Err(JournalError::TooManyTags { tag, limit: MAX_TAGS });
        }
        state.tags.insert(tag.clone());
        let writer = state.pending.as_mut().and_then(|pending| pending.add_tags([tag]));
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        Ok(())
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
    use std::time::Duration;

    use outlive_wire::InputRequest;
    use serde_json::value::to_raw_value;

    use crate::{
        InputFailure, Journal, JournalEntry, JournalError, JournalLimits, StepStart, poll_as,
        store::{Audience, MAX_TAG_BYTES, MAX_TAGS},
    };

    const RUN: usize = 1;

    fn journal() -> Journal {
        Journal::new(JournalLimits {
            bytes: 1_000,
            open_inputs: 10,
            leaves: false,
            segments: 10,
            segment_bytes: 100,
        })
    }

    fn ask(journal: &Journal) {
        let asked =
            || journal.inputs().ask(RUN, "k", InputRequest::ListRoots, Audience::Client, None);
        poll_as(RUN, asked).unwrap();
    }

    #[test]
    fn input_request_reopened_before_withdrawal_is_written_stays_open() {
        let journal = journal();
        journal.begin_writing();
        ask(&journal);
        assert_eq!(journal.take_changes().unwrap().input_requests.len(), 1);
        journal.written();
        journal.inputs().withdraw("k");
        ask(&journal);
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (1, 0));
        journal.written();
        journal.inputs().withdraw("k");
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (0, 1));
    }

    #[test]
    fn input_request_after_timeout_is_withdrawn_in_store() {
        let journal = journal();
        journal.begin_writing();
        ask(&journal);
        journal.take_changes().unwrap();
        journal.written();
        journal.inputs().resolve("k", Err(InputFailure::TimedOut)).unwrap();
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.entries.len(), changes.withdrawn), (1, vec!["k".to_owned()]));
    }

    #[test]
    fn input_request_found_late_by_replay_is_withdrawn_in_store() {
        let journal = journal();
        journal.begin_writing();
        let ask = |now| {
            let timeout = Some((now, 5));
            let request = InputRequest::ListRoots;
            let asked = || journal.inputs().ask(RUN, "k", request, Audience::Caller, timeout);
            poll_as(RUN, asked).unwrap();
        };
        ask(0);
        journal.take_changes().unwrap();
        journal.written();
        journal.restart();
        ask(9);
        assert_eq!(journal.take_changes().unwrap().withdrawn, ["k"]);
    }

    #[tokio::test(start_paused = true)]
    async fn step_has_duration_only_if_durations_are_recorded() {
        let journal = journal();
        journal.begin_writing();
        let step = async |key: &str| {
            let begun = poll_as(RUN, || journal.begin(RUN, key)).unwrap();
            let StepStart::New(step) = begun else { panic!("{begun:?}") };
            tokio::time::sleep(Duration::from_millis(812)).await;
            step.record(JournalEntry::Value(to_raw_value(&1).unwrap()), false).unwrap();
            journal.take_changes().unwrap().entries[0].duration
        };
        assert_eq!(step("untimed").await, None);
        journal.record_durations();
        assert_eq!(step("timed").await, Some(Duration::from_millis(812)));
    }

    #[test]
    fn tags_from_before_the_store_are_written_once() {
        let journal = journal();
        for _ in 0..2 {
            journal.add_tag("order=1".to_owned()).unwrap();
        }
        journal.begin_writing();
        journal.begin_writing();
        journal.add_tag("order=1".to_owned()).unwrap();
        journal.add_tag("env=prod".to_owned()).unwrap();
        assert_eq!(journal.take_changes().unwrap().tags, ["order=1", "env=prod"]);
    }

    #[test]
    fn surplus_or_invalid_tag_is_rejected() {
        let journal = journal();
        for tag in ["order", &format!("order={}", "x".repeat(MAX_TAG_BYTES))] {
            let rejected = journal.add_tag(tag.to_owned());
            assert!(matches!(rejected, Err(JournalError::InvalidTag { .. })), "{rejected:?}");
        }
        for count in 0..MAX_TAGS {
            journal.add_tag(format!("n={count}")).unwrap();
        }
        let rejected = journal.add_tag("n=x".to_owned());
        assert!(matches!(rejected, Err(JournalError::TooManyTags { .. })), "{rejected:?}");
        journal.add_tag("n=0".to_owned()).unwrap();
    }
}
