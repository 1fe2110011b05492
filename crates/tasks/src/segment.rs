//! Partial results: numbered, stored once, whatever runs again.
//!
//! A block is known by the step or scope that emitted it and by its place there. What is stored stays
//! as it is; a run that begins again emits from where the stored ones end.

use std::{
    collections::HashMap,
    task::{Context, Poll, Waker},
};

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use crate::{
    Journal, JournalError, RunId,
    current_run::{polling, step_of},
    entry::written,
    store::{PageLimit, StoredSegments},
};

/// One block that a run has emitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made here, written by the floor above")]
pub struct Segment {
    /// The step or scope that emitted it; empty for the run itself.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The how manieth it is there.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
    /// The content block.
    #[serde(rename = "b")]
    pub block: RawJson,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(ordinal: &u32) -> bool {
    *ordinal == 0
}

impl Segment {
    /// Where it comes from. No other segment of its task has the same.
    pub(crate) fn place(&self) -> (String, u32) {
        (self.scope.clone(), self.ordinal)
    }

    /// How many bytes it is counted as.
    pub(crate) fn size(&self) -> usize {
        written(&self.scope) + self.block.get().len() + 28
    }
}

/// All blocks of a run, in the order in which they were first emitted.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    stored: Vec<Segment>,
    /// How many of them are on their way to the store, and how many are there.
    sent: usize,
    written: usize,
    scopes: HashMap<String, Scope>,
}

/// What one step or scope has emitted.
#[derive(Debug, Default)]
struct Scope {
    /// Where its blocks stand among all, by their place here.
    places: HashMap<u32, usize>,
    /// How many it has emitted in this run.
    emitted: u32,
    /// Whether it has been begun in this run.
    begun: bool,
}

impl Segments {
    pub(crate) fn restored(stored: Vec<Segment>) -> Self {
        let mut segments = Self::default();
        stored.into_iter().for_each(|segment| segments.push(segment));
        segments
    }

    pub(crate) fn stored(&self) -> &[Segment] {
        &self.stored
    }

    /// All that there are are in the store.
    pub(crate) fn all_written(&mut self) {
        (self.sent, self.written) = (self.stored.len(), self.stored.len());
    }

    /// All that there are are on their way to the store.
    pub(crate) fn all_sent(&mut self) {
        self.sent = self.stored.len();
    }

    /// Those that were on their way are there.
    pub(crate) fn sent_are_written(&mut self) {
        self.written = self.sent;
    }

    /// Forgets those that the store has not taken, and says whether there were some.
    pub(crate) fn forget_unwritten(&mut self) -> bool {
        let (all, written) = (self.stored.len(), self.written);
        self.stored.truncate(written);
        self.sent = written;
        for scope in self.scopes.values_mut() {
            scope.places.retain(|_, place| *place < written);
        }
        all > written
    }

    fn push(&mut self, segment: Segment) {
        let scope = self.scopes.entry(segment.scope.clone()).or_default();
        scope.places.entry(segment.ordinal).or_insert(self.stored.len());
        self.stored.push(segment);
    }

    /// Puts what was emitted before everything that is here before it.
    pub(crate) fn prepend(&mut self, before: Vec<Segment>) {
        let after = std::mem::take(&mut self.stored);
        for scope in self.scopes.values_mut() {
            scope.places.clear();
        }
        before.into_iter().chain(after).for_each(|segment| self.push(segment));
    }

    /// The place of the next block of a scope, and the block that is stored there already.
    fn next(&mut self, scope: &str) -> (u32, Option<&Segment>) {
        if !self.scopes.contains_key(scope) {
            self.scopes.insert(scope.to_owned(), Scope::default());
        }
        let Some(scope) = self.scopes.get_mut(scope) else { return (0, None) };
        let ordinal = scope.emitted;
        scope.emitted += 1;
        scope.begun = true;
        let place = scope.places.get(&ordinal).copied();
        (ordinal, place.and_then(|place| self.stored.get(place)))
    }

    /// A scope begins again.
    pub(crate) fn restart(&mut self, scope: &str) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            (scope.emitted, scope.begun) = (0, true);
        }
    }

    /// The whole run begins again.
    pub(crate) fn restart_all(&mut self) {
        for scope in self.scopes.values_mut() {
            (scope.emitted, scope.begun) = (0, false);
        }
    }

    /// The scopes of which more is stored than this run has emitted, but for those that did not
    /// have to run again.
    fn behind<'a>(&'a self, is_done: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = &'a str> {
        let behind = move |(name, scope): &(&'a String, &'a Scope)| {
            (scope.emitted as usize) < scope.places.len() && (scope.begun || !is_done(name))
        };
        self.scopes.iter().filter(behind).map(|(name, _)| name.as_str())
    }
}

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
