//! Replays within a run: the handler starts its work again, and its future continues.

use std::task::{Context, Poll};

use super::state::Journal;
use crate::{current_run::RunId, error::JournalError};

impl Journal {
    /// Drops the work of the run so far. Its destructors withdraw no request. The run must wait for
    /// [`Journal::poll_written_all`] and then call [`Journal::rerun`].
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, or if a step is being polled.
    pub fn drop_work<W>(&self, run: RunId, work: W) -> Result<(), JournalError> {
        drop(self.enter(run, "replay")?);
        self.close();
        drop(work);
        Ok(())
    }

    /// Waits until all records are written.
    ///
    /// # Errors
    ///
    /// Returns an error if the store rejected a record.
    pub fn poll_written_all(&self, cx: &mut Context<'_>) -> Poll<Result<(), JournalError>> {
        let mut state = self.lock();
        state.takes_more()?;
        match &mut state.pending {
            Some(pending) => pending.poll_empty(cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Prepares the journal for another replay within the run.
    pub fn rerun(&self) {
        self.restart();
        self.lock().replays = true;
    }

    /// Returns whether a replay within the run may not have reached all its input requests yet.
    pub fn replays(&self) -> bool {
        self.lock().replays
    }

    /// Marks the end of a replay within the run: the run is idle.
    pub fn end_replay(&self) {
        self.lock().replays = false;
    }

    /// Records that another worker has the lease of the task.
    pub(crate) fn lose_lease(&self) {
        self.lock().lease_lost = true;
    }

    /// Returns whether another worker has the lease of the task, so that the run is dropped.
    pub fn has_lost_lease(&self) -> bool {
        self.lock().lease_lost
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use outlive_wire::InputRequest;
    use serde_json::value::to_raw_value;

    use crate::{
        InputPoll, Journal, JournalEntry, JournalError, JournalLimits, StepStart, poll_as,
        store::Audience,
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

    fn ask(journal: &Journal) -> InputPoll {
        let request = InputRequest::ListRoots;
        poll_as(RUN, || journal.inputs().ask(RUN, "k", request, Audience::Client, None)).unwrap()
    }

    /// Withdraws its input request when it is dropped, as the futures of handlers do.
    struct Asking<'a>(&'a Journal);

    impl Drop for Asking<'_> {
        fn drop(&mut self) {
            self.0.inputs().withdraw("k");
        }
    }

    fn record(journal: &Journal, key: &str) {
        let begun = poll_as(RUN, || journal.begin(RUN, key)).unwrap();
        let StepStart::New(step) = begun else { panic!("{begun:?}") };
        step.record(JournalEntry::Value(to_raw_value(&1).unwrap()), false).unwrap();
    }

    #[test]
    fn input_request_of_dropped_work_stays_open_in_store() {
        let journal = journal();
        journal.begin_writing();
        assert!(matches!(ask(&journal), InputPoll::Open));
        assert_eq!(journal.take_changes().unwrap().input_requests.len(), 1);
        journal.written();
        poll_as(RUN, || journal.drop_work(RUN, Asking(&journal))).unwrap();
        journal.rerun();
        assert!(journal.take_changes().is_none(), "nothing is withdrawn");
        journal.take_responses(vec![("k".to_owned(), to_raw_value(&true).unwrap())]);
        assert!(matches!(ask(&journal), InputPoll::Answered(_)), "the response arrived meanwhile");
    }

    #[test]
    fn recorded_steps_are_written_before_replay() {
        let journal = journal();
        let mut cx = Context::from_waker(Waker::noop());
        journal.begin_writing();
        record(&journal, "a");
        poll_as(RUN, || journal.drop_work(RUN, ())).unwrap();
        assert!(journal.is_closed());
        assert!(journal.poll_written_all(&mut cx).is_pending());
        journal.take_changes().unwrap();
        assert!(journal.poll_written_all(&mut cx).is_pending());
        journal.written();
        assert_eq!(journal.poll_written_all(&mut cx), Poll::Ready(Ok(())));
        journal.rerun();
        assert!(journal.replays() && !journal.is_closed());
        let again = poll_as(RUN, || journal.begin(RUN, "a")).unwrap();
        assert!(matches!(again, StepStart::Recorded(_)), "{again:?}");
        let keys: Vec<String> =
            journal.recorded_steps().iter().map(|(key, _)| key.as_str().to_owned()).collect();
        assert_eq!(keys, ["a"]);
    }

    #[test]
    fn replay_outside_the_run_is_rejected() {
        let journal = journal();
        let rejected = journal.drop_work(RUN, ());
        assert_eq!(rejected, Err(JournalError::OutsideRun("replay".to_owned())));
    }
}
