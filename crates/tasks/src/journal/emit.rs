//! Partial results: each segment has a number, and is stored once however often the handler runs.
//!
//! A segment is identified by the step or scope that emitted it and by its number there. A stored
//! segment never changes. A replayed run continues after the stored segments.

use std::task::{Context, Poll, Waker};

use outlive_wire::RawJson;

use super::{segments::Segments, state::Journal};
use crate::{
    current_run::{RunId, polling, step_of},
    error::JournalError,
    record::SegmentRecord,
    store::{PageLimit, StoredSegments},
};

impl Journal {
    /// Emits a segment unless it is already stored. `run` is `None` for a handler that is not
    /// replayed, which may emit from any thread.
    ///
    /// # Errors
    ///
    /// Returns an error if `run` is not being polled, or if the segment exceeds a limit.
    pub fn emit(
        &self,
        run: Option<RunId>,
        scope: &str,
        block: RawJson,
    ) -> Result<(), JournalError> {
        let Some(run) = run else {
            self.emit_in(scope, block)?.into_iter().for_each(Waker::wake);
            return Ok(());
        };
        if !polling(run) {
            return Err(JournalError::OutsideRun("emit".to_owned()));
        }
        let step = step_of(run);
        // The driver of the run takes changes after each poll, so it needs no wake.
        self.emit_in(step.as_deref().unwrap_or(scope), block).map(drop)
    }

    /// Emits a segment. Returns the driver's waker if the driver must be woken.
    fn emit_in(&self, scope: &str, block: RawJson) -> Result<Option<Waker>, JournalError> {
        let limits = self.limits();
        let mut state = self.lock();
        if state.is_closing() {
            return Err(JournalError::RunEnded("emit".to_owned()));
        }
        let (ordinal, stored) = state.segments.next(scope);
        if let Some(stored) = stored {
            if stored.block.get() != block.get() {
                tracing::warn!(
                    scope,
                    ordinal,
                    "replayed segment differs from the stored one; the stored segment stays"
                );
            }
            return Ok(None);
        }
        if block.get().len() > limits.segment_bytes {
            let (bytes, limit) = (block.get().len(), limits.segment_bytes);
            return Err(JournalError::SegmentTooLarge { bytes, limit });
        }
        if state.segments.stored.len() >= limits.segments {
            return Err(JournalError::TooManySegments { limit: limits.segments });
        }
        let segment = SegmentRecord { scope: scope.to_owned(), ordinal, block };
        state.grow(|| format!("segment {} of `{scope}`", ordinal + 1), segment.size(), limits)?;
        let writer = match &mut state.pending {
            Some(pending) => pending.add_segment(segment.clone()),
            None => None,
        };
        state.segments.push(segment);
        state.note("emit");
        Ok(writer)
    }

    /// Waits until another segment can be emitted. The number of segments that wait for a write is
    /// bounded.
    pub fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.lock().pending {
            Some(pending) => pending.poll_capacity(cx),
            None => Poll::Ready(()),
        }
    }

    /// Returns all segments, in order.
    pub fn segments(&self) -> Vec<SegmentRecord> {
        self.lock().segments.stored().to_vec()
    }

    /// Returns the written segments after a sequence number. Returns `None` if this run has written
    /// none of them. A written segment keeps its number in the store, so readers need not query the
    /// store. Also returns `None` while an input request is open, because the reader then needs the
    /// task's record.
    pub(crate) fn written_after(&self, after: u64, limit: PageLimit) -> Option<StoredSegments> {
        let state = self.lock();
        let Segments { stored, written, .. } = &state.segments;
        let from = usize::try_from(after).ok().filter(|from| from < written)?;
        if state.inputs.is_waiting() {
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
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use outlive_wire::{InputRequest, RawJson};
    use serde_json::value::to_raw_value;

    use crate::{
        Journal, JournalError, JournalLimits, JournalSnapshot, poll_as,
        store::{Audience, PageLimit},
    };

    const LIMITS: JournalLimits = JournalLimits {
        bytes: 1 << 20,
        open_inputs: 1,
        leaves: false,
        segments: 5_000,
        segment_bytes: 20,
    };

    fn block(text: &str) -> RawJson {
        to_raw_value(text).unwrap()
    }

    fn emit(journal: &Journal, scope: &str, text: &str) -> Result<(), JournalError> {
        poll_as(1, || journal.emit(Some(1), scope, block(text)))
    }

    fn texts(journal: &Journal) -> Vec<String> {
        journal.segments().iter().map(|segment| segment.block.get().to_owned()).collect()
    }

    #[test]
    fn emit_stored_segment_on_replay_keeps_first_value() {
        let journal = Journal::new(LIMITS);
        for (scope, text) in [("", "a"), ("x", "b"), ("", "c")] {
            emit(&journal, scope, text).unwrap();
        }
        let journal = Journal::from_snapshot(LIMITS, journal.snapshot());
        for (scope, text) in [("", "a"), ("x", "other"), ("", "c"), ("x", "d")] {
            emit(&journal, scope, text).unwrap();
        }
        assert_eq!(texts(&journal), ["\"a\"", "\"b\"", "\"c\"", "\"d\""]);
        assert!(journal.replay_mismatch().missing_segments.is_empty());
        journal.restart();
        emit(&journal, "x", "b").unwrap();
        assert_eq!(
            journal.replay_mismatch().missing_segments,
            ["", "x"],
            "both scopes emitted fewer segments than are stored"
        );
    }

    #[test]
    fn merge_offloaded_segments_prepends_them() {
        let journal = Journal::new(LIMITS);
        emit(&journal, "", "a").unwrap();
        let before = journal.snapshot().segments;
        let journal = Journal::new(LIMITS);
        emit(&journal, "x", "b").unwrap();
        journal.merge(JournalSnapshot { segments: before, ..JournalSnapshot::default() });
        emit(&journal, "", "a").unwrap();
        assert_eq!(texts(&journal), ["\"a\"", "\"b\""]);
    }

    #[test]
    fn emit_above_size_or_count_limit_returns_error() {
        let journal = Journal::new(JournalLimits { segments: 1, ..LIMITS });
        let refused = emit(&journal, "", "far too long for its bounds");
        assert_eq!(refused, Err(JournalError::SegmentTooLarge { bytes: 29, limit: 20 }));
        let journal = Journal::new(JournalLimits { segments: 1, ..LIMITS });
        emit(&journal, "", "a").unwrap();
        assert_eq!(emit(&journal, "", "b"), Err(JournalError::TooManySegments { limit: 1 }));
    }

    #[test]
    fn written_after_returns_only_written_segments() {
        let journal = Journal::new(LIMITS);
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
        assert_eq!(read(0, 10), some(&["a"], 1), "the task was created with the segment");
        for text in ["b", "c"] {
            emit(&journal, "", text).unwrap();
        }
        journal.take_changes().unwrap();
        emit(&journal, "", "d").unwrap();
        assert_eq!(read(1, 10), None, "the write is in progress");
        journal.written();
        assert_eq!(read(0, 2), some(&["a", "b"], 3));
        assert_eq!(read(2, 10), some(&["c"], 3), "the last segment is not written");
        assert_eq!(read(3, 10), None);
        assert_eq!(read(u64::MAX, 10), None);
        let asked = poll_as(1, || {
            journal.inputs().ask(1, "k", InputRequest::ListRoots, Audience::Client, None)
        });
        assert!(asked.is_ok());
        assert_eq!(read(0, 10), None, "an input request is open");
    }

    #[test]
    fn emit_faster_than_store_writes_waits_for_capacity() {
        let journal = Journal::new(LIMITS);
        let mut cx = Context::from_waker(Waker::noop());
        journal.begin_writing();
        let mut count = 0;
        while journal.poll_capacity(&mut cx).is_ready() {
            emit(&journal, "", "a").unwrap();
            count += 1;
            assert!(count < 5_000, "the capacity is bounded");
        }
        let taken = journal.take_changes().unwrap();
        assert_eq!(taken.segments.len(), count, "one write takes all segments");
        assert_eq!(
            journal.poll_capacity(&mut cx),
            Poll::Ready(()),
            "the started write frees the capacity"
        );
    }
}
