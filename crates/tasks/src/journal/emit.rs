//! Partial results: numbered, stored once, whatever runs again.
//!
//! A block is known by the step or scope that emitted it and by its place there. What is stored stays
//! as it is; a run that begins again emits from where the stored ones end.

use std::task::{Context, Poll, Waker};

use outlive_wire::RawJson;

use super::{segments::Segments, state::Journal};
use crate::{
    current_run::{RunId, polling, step_of},
    error::JournalError,
    record::Segment,
    store::{PageLimit, StoredSegments},
};

impl Journal {
    /// Adds a block to what the run has emitted; one that is stored already is not added again.
    ///
    /// # Errors
    ///
    /// When it is not emitted by the run itself, or does not fit.
    pub fn emit(&self, run: RunId, scope: &str, block: RawJson) -> Result<(), JournalError> {
        if !polling(run) {
            return Err(JournalError::OutsideRun("emit".to_owned()));
        }
        let step = step_of(run);
        // Whoever polls the run looks afterwards what there is to write.
        self.emit_in(step.as_deref().unwrap_or(scope), block).map(drop)
    }

    /// As [`Journal::emit`], for a run that is not begun again from its journal and may emit from
    /// wherever it likes.
    ///
    /// # Errors
    ///
    /// When it does not fit, or comes too late.
    pub fn emit_anywhere(&self, block: RawJson) -> Result<(), JournalError> {
        if let Some(writer) = self.emit_in("", block)? {
            writer.wake();
        }
        Ok(())
    }

    /// Emits, and says whom to wake for it.
    fn emit_in(&self, scope: &str, block: RawJson) -> Result<Option<Waker>, JournalError> {
        let bounds = self.bounds();
        let mut state = self.lock();
        if state.is_closing() {
            return Err(JournalError::RunEnded("emit".to_owned()));
        }
        let (ordinal, stored) = state.segments.next(scope);
        if let Some(stored) = stored {
            if stored.block.get() != block.get() {
                tracing::warn!(scope, ordinal, "a block differs from what was emitted before");
            }
            return Ok(None);
        }
        if block.get().len() > bounds.segment_bytes {
            let (bytes, limit) = (block.get().len(), bounds.segment_bytes);
            return Err(JournalError::SegmentTooLarge { bytes, limit });
        }
        if state.segments.stored.len() >= bounds.segments {
            return Err(JournalError::TooManySegments { limit: bounds.segments });
        }
        let segment = Segment { scope: scope.to_owned(), ordinal, block };
        state.grow(|| format!("block {} of `{scope}`", ordinal + 1), segment.size(), bounds)?;
        let writer = match &mut state.unwritten {
            Some(unwritten) => unwritten.emit(segment.clone()),
            None => None,
        };
        state.segments.push(segment);
        state.note("emit");
        Ok(writer)
    }

    /// Waits until so much of what was emitted is on its way to the store that there is room for
    /// more. Without a store there always is.
    pub fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.lock().unwritten {
            Some(unwritten) => unwritten.poll_room(cx),
            None => Poll::Ready(()),
        }
    }

    /// All blocks that have been emitted, in their order.
    pub fn segments(&self) -> Vec<Segment> {
        self.lock().segments.stored().to_vec()
    }

    /// Blocks from after a number on, if the store has any and this run knows of them. They are as
    /// good as those that are read there: what is written stays, with its number, whoever runs the
    /// task by now. `None` as well if a question is open: then there is more to know.
    pub(crate) fn written_after(&self, after: u64, limit: PageLimit) -> Option<StoredSegments> {
        let state = self.lock();
        let Segments { stored, written, .. } = &state.segments;
        let from = usize::try_from(after).ok().filter(|from| from < written)?;
        if state.questions.any_open() {
            return None;
        }
        let mut bytes = 0;
        let page = stored[from..*written].iter().take(limit.segments).take_while(|segment| {
            let fits = bytes < limit.bytes;
            bytes += segment.block.get().len();
            fits
        });
        let blocks = page.map(|segment| segment.block.clone()).collect();
        Some(StoredSegments { blocks, last: *written as u64, ended: false, input_required: false })
    }

    /// How many blocks have been emitted.
    pub fn count_segments(&self) -> usize {
        self.lock().segments.stored().len()
    }

    /// The scopes that have emitted less in this run than in one before: the handler has changed,
    /// or is not the same function of its journal each time.
    pub fn missing_segments(&self) -> Vec<String> {
        let state = self.lock();
        let is_done = |scope: &str| state.entry(scope).is_some();
        let mut scopes: Vec<String> = state.segments.behind(is_done).map(str::to_owned).collect();
        scopes.sort();
        scopes
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use outlive_wire::{InputRequest, RawJson};
    use serde_json::value::to_raw_value;

    use crate::{Journal, JournalError, JournalLimits, JournalSnapshot, poll_as, store::PageLimit};

    const BOUNDS: JournalLimits = JournalLimits {
        bytes: 1 << 20,
        questions: 1,
        leaves: false,
        segments: 5_000,
        segment_bytes: 20,
    };

    fn block(text: &str) -> RawJson {
        to_raw_value(text).unwrap()
    }

    fn emit(journal: &Journal, scope: &str, text: &str) -> Result<(), JournalError> {
        poll_as(1, || journal.emit(1, scope, block(text)))
    }

    fn texts(journal: &Journal) -> Vec<String> {
        journal.segments().iter().map(|segment| segment.block.get().to_owned()).collect()
    }

    #[test]
    fn what_is_stored_is_not_emitted_again_and_the_first_stays() {
        let journal = Journal::new(BOUNDS);
        for (scope, text) in [("", "a"), ("x", "b"), ("", "c")] {
            emit(&journal, scope, text).unwrap();
        }
        let journal = Journal::from_snapshot(BOUNDS, journal.snapshot());
        for (scope, text) in [("", "a"), ("x", "other"), ("", "c"), ("x", "d")] {
            emit(&journal, scope, text).unwrap();
        }
        assert_eq!(texts(&journal), ["\"a\"", "\"b\"", "\"c\"", "\"d\""]);
        assert!(journal.missing_segments().is_empty());
        journal.restart();
        emit(&journal, "x", "b").unwrap();
        assert_eq!(journal.missing_segments(), ["", "x"], "both are behind what is stored");
    }

    #[test]
    fn what_came_back_from_elsewhere_stands_first() {
        let journal = Journal::new(BOUNDS);
        emit(&journal, "", "a").unwrap();
        let before = journal.snapshot().segments;
        let journal = Journal::new(BOUNDS);
        emit(&journal, "x", "b").unwrap();
        journal.merge(JournalSnapshot { segments: before, ..JournalSnapshot::default() });
        emit(&journal, "", "a").unwrap();
        assert_eq!(texts(&journal), ["\"a\"", "\"b\""]);
    }

    #[test]
    fn too_many_and_too_large_are_refused_and_say_so() {
        let journal = Journal::new(JournalLimits { segments: 1, ..BOUNDS });
        let refused = emit(&journal, "", "far too long for its bounds");
        assert_eq!(refused, Err(JournalError::SegmentTooLarge { bytes: 29, limit: 20 }));
        let journal = Journal::new(JournalLimits { segments: 1, ..BOUNDS });
        emit(&journal, "", "a").unwrap();
        assert_eq!(emit(&journal, "", "b"), Err(JournalError::TooManySegments { limit: 1 }));
    }

    #[test]
    fn what_is_written_is_known_and_nothing_else() {
        let journal = Journal::new(BOUNDS);
        let read = |after, segments| {
            let limit = PageLimit { segments, bytes: 1_000 };
            let emitted = journal.written_after(after, limit)?;
            let texts = emitted.blocks.iter().map(|block| block.get().to_owned());
            Some((texts.collect::<Vec<_>>(), emitted.last))
        };
        let some = |texts: &[&str], last| {
            Some((texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>(), last))
        };
        emit(&journal, "", "a").unwrap();
        assert_eq!(read(0, 10), None);
        journal.begin_writing();
        assert_eq!(read(0, 10), some(&["a"], 1), "the task was made with it");
        for text in ["b", "c"] {
            emit(&journal, "", text).unwrap();
        }
        journal.take_changes().unwrap();
        emit(&journal, "", "d").unwrap();
        assert_eq!(read(1, 10), None, "they are on their way");
        journal.written();
        assert_eq!(read(0, 2), some(&["a", "b"], 3));
        assert_eq!(read(2, 10), some(&["c"], 3), "another is not written");
        assert_eq!(read(3, 10), None);
        assert_eq!(read(u64::MAX, 10), None);
        let asked = poll_as(1, || journal.ask(1, "k", InputRequest::ListRoots, None));
        assert!(asked.is_ok());
        assert_eq!(read(0, 10), None, "something else is to be told");
    }

    #[test]
    fn who_emits_faster_than_the_store_takes_it_waits() {
        let journal = Journal::new(BOUNDS);
        let mut cx = Context::from_waker(Waker::noop());
        journal.begin_writing();
        let mut count = 0;
        while journal.poll_capacity(&mut cx).is_ready() {
            emit(&journal, "", "a").unwrap();
            count += 1;
            assert!(count < 5_000, "there is always room");
        }
        let taken = journal.take_changes().unwrap();
        assert_eq!(taken.segments.len(), count, "one write takes them all");
        assert_eq!(journal.poll_capacity(&mut cx), Poll::Ready(()), "while that is on its way");
    }
}
