//! The changes of a run that its store has not committed yet.

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::time::Instant;

use crate::{record::Segment, store::Changes};

/// How often progress is written by itself. With everything else it goes along.
const PACE: Duration = Duration::from_millis(250);

/// How much may be emitted before it is on its way to the store: enough that one write is worth its
/// flush, and no more than a store takes in at once.
const ROOM: usize = 1_024;
const ROOM_BYTES: usize = 1 << 20;

/// What has been recorded since the last write.
#[derive(Default)]
pub(super) struct PendingWrites {
    pub(super) changes: Changes,
    /// Bytes of the blocks among the changes.
    pub(super) emitted: usize,
    /// Those who wait until what they have emitted is on its way.
    pub(super) crowded: Vec<Waker>,
    /// How many writes have been begun, and how many are done.
    pub(super) begun: u64,
    pub(super) done: u64,
    /// The first write that was refused. Nothing is written after it.
    pub(super) refused: Option<u64>,
    /// How far the run is, in words and as a note, for when it is worth a write.
    pub(super) words: Option<(String, RawJson)>,
    /// When progress was last written.
    pub(super) progressed: Option<Instant>,
    /// Those who wait for a write.
    pub(super) waiting: Vec<Waker>,
    /// Whoever writes, to be woken when there is something to write from outside of the run.
    pub(super) writer: Option<Waker>,
}

/// Says which write a record is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTicket(pub(super) u64);

impl WriteTicket {
    /// Nothing has to be written.
    pub(super) const NONE: Self = Self(0);
}

impl PendingWrites {
    pub(super) fn is_empty(&self) -> bool {
        // Progress that is held back does not keep anything from being done.
        (self.changes.is_empty() || self.only_progress_too_soon()) && self.begun == self.done
    }

    /// Takes a block to be written, and says who writes, should that have to be woken.
    pub(super) fn emit(&mut self, segment: Segment) -> Option<Waker> {
        self.emitted += segment.size();
        self.changes.segments.push(segment);
        self.writer.clone()
    }

    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.changes.segments.len() < ROOM && self.emitted < ROOM_BYTES {
            return Poll::Ready(());
        }
        self.crowded.push(cx.waker().clone());
        Poll::Pending
    }

    /// The write that comes next.
    pub(super) fn ticket(&self) -> WriteTicket {
        WriteTicket(self.begun + 1)
    }

    /// How long until progress alone is worth a write again.
    pub(super) fn too_soon(&self) -> Duration {
        let since = self.progressed.map_or(PACE, |last| last.elapsed());
        PACE.saturating_sub(since)
    }

    pub(super) fn only_progress_too_soon(&self) -> bool {
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
    pub(super) fn refuse(&mut self) -> Vec<Waker> {
        self.refused.get_or_insert(self.begun);
        self.done = self.begun;
        self.changes = mem::take(&mut self.changes).without_growth();
        self.emitted = 0;
        let mut woken = mem::take(&mut self.waiting);
        woken.append(&mut self.crowded);
        woken
    }

    /// Another run begins: nobody of the old one waits.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
        self.crowded.clear();
    }
}
