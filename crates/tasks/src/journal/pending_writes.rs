//! The changes of a run that its store has not committed yet.

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::time::Instant;

use crate::{
    record::{JournalEntry, SegmentRecord},
    store::{Changes, NewInputRequest},
};

/// Minimum interval between two writes of progress alone. Other changes take it along at any time.
const PACE: Duration = Duration::from_millis(250);

/// How many segments, and bytes of them, may wait for a write: enough that one write is worth its flush,
/// and no more than a store takes at once.
const MAX_SEGMENTS: usize = 1_024;
const MAX_SEGMENT_BYTES: usize = 1 << 20;

/// What a run has recorded since the last write.
#[derive(Default)]
pub(super) struct PendingWrites {
    changes: Changes,
    /// Bytes of the segments among the changes.
    segment_bytes: usize,
    /// Producers that wait until their segments are on the way to the store.
    blocked: Vec<Waker>,
    /// Number of writes that were started, and that have ended.
    started: u64,
    done: u64,
    /// The first write that was refused. Nothing is written after it.
    refused: Option<u64>,
    /// Progress as a status message and as a value, until it is worth a write.
    held_progress: Option<(String, RawJson)>,
    /// When progress was last written.
    progressed: Option<Instant>,
    /// Steps that wait for a write.
    waiting: Vec<Waker>,
    /// The driver, which is woken by changes from outside of the run.
    writer: Option<Waker>,
}

/// Says which write a record is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTicket(u64);

impl WriteTicket {
    /// The ticket of a record that needs no write.
    pub(super) const NONE: Self = Self(0);
}

/// State of the write of a ticket.
pub(super) enum TicketPoll {
    Written,
    /// The store has refused it.
    Refused,
    Pending,
}

impl PendingWrites {
    /// Returns whether nothing waits for a write. Progress that is held back keeps no run from being
    /// parked.
    pub(super) fn is_empty(&self) -> bool {
        (self.changes.is_empty() || self.only_early_progress()) && self.started == self.done
    }

    pub(super) fn add_entry(&mut self, key: String, entry: JournalEntry) {
        self.changes.entries.push((key, entry));
    }

    pub(super) fn add_invalidated(&mut self, key: String) {
        self.changes.invalidated.push(key);
    }

    pub(super) fn add_withdrawn(&mut self, name: String) {
        self.changes.withdrawn.push(name);
    }

    /// Adds a segment. Returns the driver, in case that has to be woken.
    pub(super) fn add_segment(&mut self, segment: SegmentRecord) -> Option<Waker> {
        self.segment_bytes += segment.size();
        self.changes.segments.push(segment);
        self.writer.clone()
    }

    /// Waits until another segment can be added.
    pub(super) fn poll_capacity(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.changes.segments.len() < MAX_SEGMENTS && self.segment_bytes < MAX_SEGMENT_BYTES {
            return Poll::Ready(());
        }
        self.blocked.push(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the ticket of the next write.
    pub(super) fn ticket(&self) -> WriteTicket {
        WriteTicket(self.started + 1)
    }

    /// Polls the write of a ticket.
    pub(super) fn poll_ticket(&mut self, ticket: WriteTicket, cx: &mut Context<'_>) -> TicketPoll {
        if self.refused.is_some_and(|from| ticket != WriteTicket::NONE && from <= ticket.0) {
            return TicketPoll::Refused;
        }
        if self.done < ticket.0 {
            self.waiting.push(cx.waker().clone());
            return TicketPoll::Pending;
        }
        TicketPoll::Written
    }

    /// Adds what a run has reported before it had a store.
    pub(super) fn add_earlier(&mut self, message: Option<String>, progress: Option<RawJson>) {
        let Changes { status_message, progress: last, .. } = &mut self.changes;
        *status_message = status_message.take().or(message);
        *last = last.take().or(progress);
    }

    /// Sets the status message. Returns the driver.
    pub(super) fn set_message(&mut self, message: String) -> Option<Waker> {
        self.changes.status_message = Some(message);
        // The message is newer than the one of held progress; its value stays true.
        if let Some((_, value)) = self.held_progress.take() {
            self.changes.progress = Some(value);
        }
        self.writer.take()
    }

    /// Sets the progress, with a status message if the client sees progress only there. Returns the
    /// driver.
    pub(super) fn set_progress(
        &mut self,
        message: Option<String>,
        value: RawJson,
    ) -> Option<Waker> {
        match message {
            Some(message) => self.held_progress = Some((message, value)),
            None => self.changes.progress = Some(value),
        }
        self.writer.take()
    }

    pub(super) fn set_writer(&mut self, waker: &Waker) {
        self.writer = Some(waker.clone());
    }

    /// Returns how long progress waits for its write, if there is some.
    pub(super) fn held_back(&self) -> Option<Duration> {
        let waits = self.changes.progress.is_some() || self.held_progress.is_some();
        waits.then(|| self.too_soon())
    }

    /// Starts a write: takes all changes, and these input requests. Returns those who waited to emit as
    /// well.
    pub(super) fn take(&mut self, requests: Vec<NewInputRequest>) -> Option<(Changes, Vec<Waker>)> {
        let Changes { input_requests, withdrawn, .. } = &mut self.changes;
        input_requests.extend(requests);
        // These are open now. A store would apply an earlier withdrawal after opening them.
        withdrawn.retain(|name| !input_requests.iter().any(|request| request.name == *name));
        let is_worth_it = !self.changes.is_empty() || self.too_soon().is_zero();
        if is_worth_it && let Some((message, value)) = self.held_progress.take() {
            self.changes.status_message = Some(message);
            self.changes.progress = Some(value);
            self.progressed = Some(Instant::now());
        }
        if self.changes.is_empty() || self.only_early_progress() {
            return None;
        }
        if self.changes.progress.is_some() {
            self.progressed = Some(Instant::now());
        }
        self.started += 1;
        self.segment_bytes = 0;
        Some((mem::take(&mut self.changes), mem::take(&mut self.blocked)))
    }

    /// Ends the write that was started. Returns those who wait for it.
    pub(super) fn finish(&mut self) -> Vec<Waker> {
        self.done = self.started;
        mem::take(&mut self.waiting)
    }

    /// Refuses the write that was started, and what was recorded since. Returns those who wait for it.
    pub(super) fn refuse(&mut self) -> Vec<Waker> {
        self.refused.get_or_insert(self.started);
        self.changes = mem::take(&mut self.changes).without_growth();
        self.segment_bytes = 0;
        let mut woken = self.finish();
        woken.append(&mut self.blocked);
        woken
    }

    /// Another run starts: nobody of the old one waits.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
        self.blocked.clear();
    }

    /// Returns those who wait, at the end of all writes.
    pub(super) fn into_waiting(self) -> impl Iterator<Item = Waker> {
        self.waiting.into_iter().chain(self.blocked)
    }

    /// Returns how long until progress alone is worth a write.
    fn too_soon(&self) -> Duration {
        let since = self.progressed.map_or(PACE, |last| last.elapsed());
        PACE.saturating_sub(since)
    }

    /// Returns whether progress is the only change, and too early for a write.
    fn only_early_progress(&self) -> bool {
        self.changes.progress.is_some() && self.changes.len() == 1 && !self.too_soon().is_zero()
    }
}
