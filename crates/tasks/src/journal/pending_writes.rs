//! Changes of a run that its store has not committed.

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::time::Instant;

use crate::{
    record::SegmentRecord,
    store::{Changes, NewInputRequest, RecordedEntry},
};

/// Minimum interval between two writes that contain only progress. Every other write includes the
/// progress.
const PACE: Duration = Duration::from_millis(250);

/// Maximum number and bytes of segments that wait for a write. One write of this size amortizes its
/// flush, and every store accepts it.
const MAX_SEGMENTS: usize = 1_024;
const MAX_SEGMENT_BYTES: usize = 1 << 20;

/// Changes since the last write.
#[derive(Default)]
pub(super) struct PendingWrites {
    changes: Changes,
    /// Total bytes of the pending segments.
    segment_bytes: usize,
    /// Producers that wait until a write takes the pending segments.
    blocked: Vec<Waker>,
    /// Number of started writes, and number of ended writes.
    started: u64,
    done: u64,
    /// First write that the store rejected. No later change is written.
    refused: Option<u64>,
    /// Progress as a status message and as a value, held back until the next write.
    held_progress: Option<(String, RawJson)>,
    /// When progress was last written.
    progressed: Option<Instant>,
    /// Steps that wait for the end of a write.
    waiting: Vec<Waker>,
    /// Waker of the driver, for changes from outside the run.
    writer: Option<Waker>,
}

/// Identifies the write that contains a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTicket(u64);

impl WriteTicket {
    /// The ticket of a record that needs no write.
    pub(super) const NONE: Self = Self(0);
}

/// State of the write of a ticket.
pub(super) enum TicketPoll {
    Written,
    /// The store rejected the write.
    Refused,
    Pending,
}

impl PendingWrites {
    /// Returns whether no change waits for a write. Held-back progress does not count, so it does
    /// not prevent parking.
    pub(super) fn is_empty(&self) -> bool {
        (self.changes.is_empty() || self.only_early_progress()) && self.started == self.done
    }

    pub(super) fn add_entry(&mut self, entry: RecordedEntry) {
        self.changes.entries.push(entry);
    }

    /// Removes an entry that waits for a write, because another one replaces it.
    pub(super) fn remove_entry(&mut self, key: &str) {
        self.changes.entries.retain(|waiting| waiting.key != key);
    }

    /// Returns the driver's waker.
    pub(super) fn writer(&self) -> Option<Waker> {
        self.writer.clone()
    }

    /// Adds tags. Returns the driver's waker.
    pub(super) fn add_tags(&mut self, tags: impl IntoIterator<Item = String>) -> Option<Waker> {
        self.changes.tags.extend(tags);
        self.writer.take()
    }

    pub(super) fn add_invalidated(&mut self, key: String) {
        self.changes.invalidated.push(key);
    }

    pub(super) fn add_withdrawn(&mut self, name: String) {
        self.changes.withdrawn.push(name);
    }

    /// Adds a segment. Returns the driver's waker if the driver must be woken.
    pub(super) fn add_segment(&mut self, segment: SegmentRecord) -> Option<Waker> {
        self.segment_bytes += segment.size();
        self.changes.segments.push(segment);
        self.writer.clone()
    }

    /// Waits until the run may add another segment.
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

    /// Waits until no change waits for a write.
    pub(super) fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_empty() {
            return Poll::Ready(());
        }
        self.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    /// Adds the status message and progress from before the run had a store.
    pub(super) fn add_earlier(&mut self, message: Option<String>, progress: Option<RawJson>) {
        let Changes { status_message, progress: last, .. } = &mut self.changes;
        *status_message = status_message.take().or(message);
        *last = last.take().or(progress);
    }

    /// Sets the status message. Returns the driver's waker.
    pub(super) fn set_message(&mut self, message: String) -> Option<Waker> {
        self.changes.status_message = Some(message);
        // The new message replaces the message of the held-back progress. The progress value stays
        // current.
        if let Some((_, value)) = self.held_progress.take() {
            self.changes.progress = Some(value);
        }
        self.writer.take()
    }

    /// Sets the progress, with a status message for clients that see progress only there. Returns
    /// the driver's waker.
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

    /// Returns how long pending progress waits for its write; `None` without progress.
    pub(super) fn held_back(&self) -> Option<Duration> {
        let waits = self.changes.progress.is_some() || self.held_progress.is_some();
        waits.then(|| self.too_soon())
    }

    /// Starts a write: takes all changes and `requests`. Also returns the wakers of blocked
    /// producers.
    pub(super) fn take(&mut self, requests: Vec<NewInputRequest>) -> Option<(Changes, Vec<Waker>)> {
        let Changes { input_requests, withdrawn, .. } = &mut self.changes;
        input_requests.extend(requests);
        // A store applies withdrawals after it opens requests, so it would close these reopened
        // requests.
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

    /// Ends the started write. Returns the wakers of the steps that wait for it.
    pub(super) fn finish(&mut self) -> Vec<Waker> {
        self.done = self.started;
        mem::take(&mut self.waiting)
    }

    /// Rejects the started write and all later records. Returns the wakers of steps and producers.
    pub(super) fn refuse(&mut self) -> Vec<Waker> {
        self.refused.get_or_insert(self.started);
        self.changes = mem::take(&mut self.changes).without_growth();
        self.segment_bytes = 0;
        let mut woken = self.finish();
        woken.append(&mut self.blocked);
        woken
    }

    /// Removes the wakers of the old run before the next run starts.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
        self.blocked.clear();
    }

    /// Returns the remaining wakers, at the end of all writes.
    pub(super) fn into_waiting(self) -> impl Iterator<Item = Waker> {
        self.waiting.into_iter().chain(self.blocked)
    }

    /// Returns the time until a write that contains only progress is allowed.
    fn too_soon(&self) -> Duration {
        let since = self.progressed.map_or(PACE, |last| last.elapsed());
        PACE.saturating_sub(since)
    }

    /// Returns whether progress is the only change and its write is not yet allowed.
    fn only_early_progress(&self) -> bool {
        self.changes.progress.is_some() && self.changes.len() == 1 && !self.too_soon().is_zero()
    }
}
