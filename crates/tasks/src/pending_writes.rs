//! What a journal has and its store has not: gathered while the run is polled, written together.

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::time::Instant;

use crate::{Journal, JournalError, Segment, store::Changes};

/// How often progress is written by itself. With everything else it goes along.
const PACE: Duration = Duration::from_millis(250);

/// How much may be emitted before it is on its way to the store: enough that one write is worth its
/// flush, and no more than a store takes in at once.
const ROOM: usize = 1_024;
const ROOM_BYTES: usize = 1 << 20;

/// What has been recorded since the last write.
#[derive(Default)]
pub(crate) struct Unwritten {
    pub(crate) changes: Changes,
    /// Bytes of the blocks among the changes.
    emitted: usize,
    /// Those who wait until what they have emitted is on its way.
    crowded: Vec<Waker>,
    /// How many writes have been begun, and how many are done.
    begun: u64,
    done: u64,
    /// The first write that was refused. Nothing is written after it.
    refused: Option<u64>,
    /// How far the run is, in words and as a note, for when it is worth a write.
    words: Option<(String, RawJson)>,
    /// When progress was last written.
    progressed: Option<Instant>,
    /// Those who wait for a write.
    waiting: Vec<Waker>,
    /// Whoever writes, to be woken when there is something to write from outside of the run.
    writer: Option<Waker>,
}

/// Says which write a record is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTicket(u64);

impl WriteTicket {
    /// Nothing has to be written.
    pub(crate) const NONE: Self = Self(0);
}

impl Unwritten {
    pub(crate) fn is_empty(&self) -> bool {
        // Progress that is held back does not keep anything from being done.
        (self.changes.is_empty() || self.only_progress_too_soon()) && self.begun == self.done
    }

    /// Takes a block to be written, and says who writes, should that have to be woken.
    pub(crate) fn emit(&mut self, segment: Segment) -> Option<Waker> {
        self.emitted += segment.size();
        self.changes.segments.push(segment);
        self.writer.clone()
    }

    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.changes.segments.len() < ROOM && self.emitted < ROOM_BYTES {
            return Poll::Ready(());
        }
        self.crowded.push(cx.waker().clone());
        Poll::Pending
    }

    /// The write that comes next.
    pub(crate) fn ticket(&self) -> WriteTicket {
        WriteTicket(self.begun + 1)
    }

    /// How long until progress alone is worth a write again.
    fn too_soon(&self) -> Duration {
        let since = self.progressed.map_or(PACE, |last| last.elapsed());
        PACE.saturating_sub(since)
    }

    fn only_progress_too_soon(&self) -> bool {
        let Changes {
            entries,
            segments,
            input_requests: asked,
            withdrawn,
            invalidated: forgotten,
            status_message: message,
            progress,
            charge: _,
        } = &self.changes;
        let anything_else = !entries.is_empty()
            || !segments.is_empty()
            || !asked.is_empty()
            || !withdrawn.is_empty()
            || !forgotten.is_empty()
            || message.is_some();
        progress.is_some() && !anything_else && !self.too_soon().is_zero()
    }

    /// The write that is on its way was refused, and so is what has come since. Returns those who
    /// wait for it.
    fn refuse(&mut self) -> Vec<Waker> {
        self.refused.get_or_insert(self.begun);
        self.done = self.begun;
        self.changes = mem::take(&mut self.changes).without_growth();
        self.emitted = 0;
        let mut woken = mem::take(&mut self.waiting);
        woken.append(&mut self.crowded);
        woken
    }

    /// Another run begins: nobody of the old one waits.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.crowded.clear();
    }
}

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
        let woken = state.unwritten.as_mut().map(Unwritten::refuse).unwrap_or_default();
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
            Some(Unwritten { refused: Some(from), .. })
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
