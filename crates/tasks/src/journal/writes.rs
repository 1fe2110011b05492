//! What a journal has and its store has not: gathered while the run is polled, written together.

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::time::Instant;

use super::{
    pending_writes::{PendingWrites, WriteTicket},
    state::Journal,
};
use crate::{error::JournalError, store::Changes};

impl Journal {
    /// From now on everything that is recorded is to be written. What is there already is not part
    /// of it: it is what the task is made with.
    pub fn begin_writing(&self) {
        let mut state = self.lock();
        if state.unwritten.is_none() {
            state.segments.all_written();
        }
        let (said, noted) = (state.said.take(), state.noted.take());
        let unwritten = state.unwritten.get_or_insert_default();
        unwritten.changes.status_message = unwritten.changes.status_message.take().or(said);
        unwritten.changes.progress = unwritten.changes.progress.take().or(noted);
    }

    /// There is no store after all: what was recorded stays in memory.
    pub fn stop_writing(&self) {
        let (waiting, crowded) = match self.lock().unwritten.take() {
            Some(unwritten) => (unwritten.waiting, unwritten.crowded),
            None => return,
        };
        waiting.into_iter().chain(crowded).for_each(Waker::wake);
    }

    /// Takes what is to be written next, questions that have not been asked included. Nothing more
    /// is taken until [`Journal::written`] says that this is done.
    pub fn take_changes(&self) -> Option<Changes> {
        let mut state = self.lock();
        state.unwritten.as_ref()?;
        let asked = state.questions.take_unsent();
        let unwritten = state.unwritten.as_mut()?;
        let Changes { input_requests: all, withdrawn, .. } = &mut unwritten.changes;
        all.extend(asked);
        // These are open now. One that was withdrawn before would be withdrawn after, in a store.
        withdrawn.retain(|name| !all.iter().any(|asked| asked.name == *name));
        let worth_it = !unwritten.changes.is_empty() || unwritten.too_soon().is_zero();
        if worth_it && let Some((words, note)) = unwritten.words.take() {
            (unwritten.changes.status_message, unwritten.changes.progress) =
                (Some(words), Some(note));
            unwritten.progressed = Some(Instant::now());
        }
        if unwritten.changes.is_empty() || unwritten.only_progress_too_soon() {
            return None;
        }
        if unwritten.changes.progress.is_some() {
            unwritten.progressed = Some(Instant::now());
        }
        unwritten.begun += 1;
        unwritten.emitted = 0;
        let crowded = mem::take(&mut unwritten.crowded);
        let changes = mem::take(&mut unwritten.changes);
        state.segments.all_sent();
        drop(state);
        crowded.into_iter().for_each(Waker::wake);
        Some(changes)
    }

    /// What was taken has been written.
    pub fn written(&self) {
        let mut state = self.lock();
        let Some(unwritten) = &mut state.unwritten else { return };
        unwritten.done = unwritten.begun;
        let waiting = mem::take(&mut unwritten.waiting);
        state.segments.sent_are_written();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// A write was refused, because the principal has as many bytes stored as it may by this limit.
    /// Who waits for the write is told; nothing more is recorded by this run.
    pub fn refuse(&self, limit: &'static str) {
        let mut state = self.lock();
        state.refused.get_or_insert(limit);
        state.lost_blocks |= state.segments.forget_unwritten();
        let woken = state.unwritten.as_mut().map(PendingWrites::refuse).unwrap_or_default();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The limit that a write of this run was refused for.
    pub fn refusal(&self) -> Option<&'static str> {
        self.lock().refused
    }

    /// Whether blocks were emitted that are not stored, because a write was refused.
    pub fn lost_blocks(&self) -> bool {
        self.lock().lost_blocks
    }

    /// Waits until a record has been written.
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
        let refused = state.takes_more();
        match &mut state.unwritten {
            Some(PendingWrites { refused: Some(from), .. })
                if ticket != WriteTicket::NONE && *from <= ticket.0 =>
            {
                Poll::Ready(refused)
            }
            Some(unwritten) if unwritten.done < ticket.0 => {
                unwritten.waiting.push(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Says what the run is doing, in words. Without a store it is kept for when there is one.
    pub fn set_status_message(&self, message: String) {
        let mut state = self.lock();
        let Some(unwritten) = &mut state.unwritten else {
            state.said = Some(message);
            return;
        };
        unwritten.changes.status_message = Some(message);
        // What is said now is newer than those words; how far the run is stays true.
        if let Some((_, note)) = unwritten.words.take() {
            unwritten.changes.progress = Some(note);
        }
        let writer = unwritten.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Says how far the run is. What does not grow is ignored; what comes too fast waits for the
    /// next write, or for its time.
    pub fn progress(&self, done: f64, note: RawJson) {
        let mut state = self.lock();
        if state.progress.is_some_and(|last| done <= last) {
            return;
        }
        state.progress = Some(done);
        let Some(unwritten) = &mut state.unwritten else { return };
        unwritten.changes.progress = Some(note);
        let writer = unwritten.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Says how far the run is, in words as well, for those who hear of it only by what the run says
    /// it is doing. What does not grow is ignored; what comes too fast waits.
    pub fn progress_in_words(&self, done: f64, words: String, note: RawJson) {
        let mut state = self.lock();
        if !done.is_finite() || state.progress.is_some_and(|last| done <= last) {
            return;
        }
        state.progress = Some(done);
        let Some(unwritten) = &mut state.unwritten else {
            state.said = Some(words);
            return;
        };
        unwritten.words = Some((words, note));
        let writer = unwritten.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Notes how far a run is whose client hears of it: for when there is a store to write it to.
    pub fn keep_progress(&self, note: RawJson) {
        self.lock().noted = Some(note);
    }

    /// How far the run was when it was last begun: nothing less is said any more.
    pub fn set_progress(&self, done: f64) {
        self.lock().progress = Some(done);
    }

    /// For how long there is nothing to write though something waits to be, if that is so.
    pub fn held_back(&self) -> Option<Duration> {
        let state = self.lock();
        let unwritten = state.unwritten.as_ref()?;
        let waits = unwritten.changes.progress.is_some() || unwritten.words.is_some();
        waits.then(|| unwritten.too_soon())
    }

    /// Whom to wake when something is said from outside of the run.
    pub fn set_writer(&self, waker: &Waker) {
        if let Some(unwritten) = &mut self.lock().unwritten {
            unwritten.writer = Some(waker.clone());
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
            questions: 10,
            leaves: false,
            segments: 10,
            segment_bytes: 100,
        });
        journal.begin_writing();
        let run = 1;
        let ask = || {
            poll_as(run, || journal.ask(run, "k", InputRequest::ListRoots, None)).unwrap();
        };
        ask();
        assert_eq!(journal.take_changes().unwrap().input_requests.len(), 1);
        journal.written();
        journal.withdraw("k");
        ask();
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (1, 0));
        journal.written();
        journal.withdraw("k");
        let changes = journal.take_changes().unwrap();
        assert_eq!((changes.input_requests.len(), changes.withdrawn.len()), (0, 1));
    }
}
