//! [`Journal`]: recorded results, input requests and segments of a call, by key.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use outlive_wire::RawJson;

use super::{
    inputs::{Inputs, OpenInputRequest},
    pending_writes::{PendingWrites, WriteTicket},
    segments::Segments,
    steps::Steps,
};
use crate::{
    capacity::Capacity,
    current_run::{RunId, polling, step_of},
    error::JournalError,
    record::{JournalEntry, JournalSnapshot, SegmentRecord},
    store::RecordedEntry,
};

/// Journal of one call. All runs of the call share it.
pub struct Journal {
    // Replaced by larger limits when the journal gets a store.
    limits: RwLock<JournalLimits>,
    // A std mutex: no code awaits while it is held, and each access is a short map operation.
    state: Mutex<State>,
}

/// Limits of a journal.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the upper layer")]
pub struct JournalLimits {
    /// Maximum bytes of all entries together.
    pub bytes: usize,
    /// Maximum number of open input requests.
    pub open_inputs: usize,
    /// Whether the client carries the journal in a request state. Such a journal rejects secrets.
    pub leaves: bool,
    /// Maximum number of segments.
    pub segments: usize,
    /// Maximum bytes of a segment.
    pub segment_bytes: usize,
}

#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<String, JournalEntry>,
    bytes: usize,
    pub(super) steps: Steps,
    pub(super) segments: Segments,
    pub(super) inputs: Inputs,
    /// Changes that the store has not committed; `None` for a journal without a store.
    pub(super) pending: Option<PendingWrites>,
    /// Whether an entry contains a secret. A client must not carry such a journal.
    pub(super) secrets: bool,
    /// Last reported progress.
    pub(super) progress: Option<f64>,
    /// Status message and progress from before the journal had a store.
    pub(super) early_message: Option<String>,
    pub(super) early_progress: Option<RawJson>,
    /// Tags that all runs have added.
    pub(super) tags: BTreeSet<String>,
    /// Whether the durations of steps are recorded.
    pub(super) timed: bool,
    /// Request of the run to continue on another replica, or later.
    yields: Option<YieldToReplica>,
    /// Whether the run is being dropped. Its destructors then withdraw no request.
    closing: bool,
    /// Number of entries and segments that all runs have recorded.
    recorded: usize,
    /// Whether the engine quarantines the task at the end of the run.
    quarantined: bool,
    /// Whether the run may leave recorded entries unused.
    pub(super) skips_entries: bool,
    /// Whether a part of the run continues after cancellation.
    shielded: bool,
    /// Number of guards that prevent parking: the run holds something that no replay restores.
    pub(super) parking_guards: usize,
    /// Limit for which the store rejected a write. The run records nothing after that.
    pub(super) refused: Option<&'static str>,
    /// Whether the store rejected segments whose `emit` had already returned success.
    pub(super) lost_segments: bool,
    /// Point at which a test makes the run crash.
    crash: Option<CrashPoint>,
    /// Whether the run has crashed at that point, so that it must be dropped and replayed.
    crashed: bool,
    /// Whether the run replays its work and has not reached all its input requests yet.
    pub(super) replays: bool,
    /// Whether another worker has the lease of the task.
    pub(super) lease_lost: bool,
}

/// Point at which a test makes a run crash: after a record, before the run observes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "built by the test support of the upper layer")]
pub enum CrashPoint {
    /// After the record with this key.
    After(String),
    /// After this number of records.
    AfterRecords(usize),
}

/// A run's request to continue on another replica, or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YieldToReplica {
    /// Delay before the client retries; `None` for an immediate retry.
    pub(crate) retry_after: Option<Duration>,
    /// Capacity whose permit the run waits for.
    pub(crate) capacity: Option<Capacity>,
}

/// Open requests of a suspended run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suspended {
    /// Open input requests.
    pub requests: Vec<OpenInputRequest>,
    /// Delay before the client retries, if the run yielded to another replica.
    pub retry_after: Option<Duration>,
}

impl Journal {
    /// Creates an empty journal.
    pub fn new(limits: JournalLimits) -> Self {
        Self { limits: RwLock::new(limits), state: Mutex::default() }
    }

    /// Creates a journal from a snapshot.
    pub fn from_snapshot(limits: JournalLimits, snapshot: JournalSnapshot) -> Self {
        let JournalSnapshot { entries, segments, input_requests: _, reasked } = snapshot;
        let bytes = entries.iter().map(|(key, entry)| entry.size(key)).sum::<usize>()
            + segments.iter().map(SegmentRecord::size).sum::<usize>();
        let state = State {
            entries,
            bytes,
            segments: Segments::restored(segments),
            inputs: Inputs::from_reissued(reasked),
            ..State::default()
        };
        Self { limits: RwLock::new(limits), state: Mutex::new(state) }
    }

    /// Returns the journal as data.
    pub fn snapshot(&self) -> JournalSnapshot {
        let state = self.lock();
        JournalSnapshot {
            entries: state.entries.clone(),
            segments: state.segments.stored().to_vec(),
            input_requests: state.inputs.open_keys(),
            reasked: state.inputs.reissued(),
        }
    }

    /// Adds the part of this journal that was offloaded to the store. Existing entries do not
    /// change.
    pub fn merge(&self, offloaded: JournalSnapshot) {
        let mut state = self.lock();
        for (key, entry) in offloaded.entries {
            if state.entry(&key).is_none() {
                state.read_back(&key, entry);
            }
        }
        state.bytes += offloaded.segments.iter().map(SegmentRecord::size).sum::<usize>();
        state.segments.prepend(offloaded.segments);
    }

    /// Returns the entry under a key, without marking the key as used.
    pub fn get(&self, key: &str) -> Option<JournalEntry> {
        self.lock().entries.get(key).cloned()
    }

    /// Writes an entry to the store that is not part of the journal of the run. Returns the ticket
    /// of the write.
    pub fn put_marker(&self, key: String, value: RawJson) -> WriteTicket {
        let mut state = self.lock();
        let entry = RecordedEntry::new(key, JournalEntry::State(value));
        state.pending.get_or_insert_default().add_entry(entry);
        state.ticket()
    }

    /// Quarantines the task at the end of the run.
    pub fn quarantine(&self) {
        self.lock().quarantined = true;
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.lock().quarantined
    }

    /// Yields to another replica after `retry_after`, or when `capacity` grants a permit.
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, or if a step is being polled.
    pub fn yield_run(
        &self,
        run: RunId,
        retry_after: Option<Duration>,
        capacity: Option<&Capacity>,
    ) -> Result<(), JournalError> {
        let mut state = self.enter(run, capacity.map_or("yield", Capacity::name))?;
        state.yields = Some(YieldToReplica { retry_after, capacity: capacity.cloned() });
        Ok(())
    }

    pub(crate) fn yields(&self) -> Option<YieldToReplica> {
        self.lock().yields.clone()
    }

    /// Returns whether the run waits only for input, or yields.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && (state.yields.is_some() || state.inputs.is_waiting())
    }

    /// Suspends the run. The caller then drops the run, and its input requests stay open.
    ///
    /// # Errors
    ///
    /// Returns the reason if the client sent a value that is not a valid response.
    pub fn suspend(&self) -> Result<Suspended, String> {
        let mut state = self.lock();
        if let Some(why) = state.inputs.malformed() {
            return Err(why);
        }
        state.closing = true;
        let retry_after = state.yields.as_ref().and_then(|to| to.retry_after);
        Ok(Suspended { requests: state.inputs.shown(), retry_after })
    }

    /// Returns whether the task can be parked: the run waits only for input or timers.
    pub(crate) fn can_be_parked(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && state.waits_in_store()
    }

    /// Lets a part of the run continue after the task is cancelled.
    pub fn shield(&self) {
        self.lock().shielded = true;
    }

    /// Returns whether a cancelled run only waits, so that it can be dropped immediately.
    pub(crate) fn can_stop_at_once(&self) -> bool {
        let state = self.lock();
        state.waits_in_store() && !state.shielded && state.is_between_steps()
    }

    /// Returns whether no step is active and all records are written.
    pub(crate) fn is_between_steps(&self) -> bool {
        self.lock().is_between_steps()
    }

    /// Returns the earliest deadline of an open input request.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.lock().inputs.dues().min()
    }

    /// Returns the earliest end of an open input request or timer.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let state = self.lock();
        state.inputs.dues().chain(state.steps.dues()).min()
    }

    /// Returns the number of entries and segments that were recorded since the journal was created.
    pub fn recorded(&self) -> usize {
        self.lock().recorded
    }

    /// Sets the point at which the run crashes, for tests.
    pub fn crash(&self, crash: CrashPoint) {
        self.lock().crash = Some(crash);
    }

    /// Returns whether the run has crashed. A crashed run is never woken again.
    pub fn crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Clears a crash so that the run continues, for tests.
    pub fn survive(&self) {
        self.lock().crashed = false;
    }

    /// Returns the end of the first timer if the run waits only for timers.
    pub fn next_timer(&self) -> Option<u64> {
        let state = self.lock();
        let waits =
            state.is_between_steps() && state.yields.is_none() && !state.inputs.is_waiting();
        state.steps.dues().min().filter(|_| waits)
    }

    /// Marks the run as being dropped, so that its destructors withdraw no request.
    pub fn close(&self) {
        self.lock().closing = true;
    }

    /// Prepares the journal for another run.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.steps.restart();
        state.segments.restart_all();
        state.inputs.restart();
        if let Some(pending) = &mut state.pending {
            pending.restart();
        }
        state.yields = None;
        state.closing = false;
        state.shielded = false;
        state.crashed = false;
    }

    /// Returns whether a client can carry the journal: it contains no secret and at most `max`
    /// bytes.
    pub fn fits(&self, max: usize) -> bool {
        let state = self.lock();
        !state.secrets && state.bytes + state.inputs.size() <= max
    }

    /// Replaces the limits.
    pub fn set_limits(&self, limits: JournalLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub(super) fn limits(&self) -> JournalLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave partial changes: every change is one insertion or removal.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state for an operation of the run, outside its steps.
    pub(super) fn enter(
        &self,
        run: RunId,
        key: &str,
    ) -> Result<MutexGuard<'_, State>, JournalError> {
        if !polling(run) {
            return Err(JournalError::OutsideRun(key.to_owned()));
        }
        if step_of(run).is_some() {
            return Err(JournalError::InsideStep(key.to_owned()));
        }
        let state = self.lock();
        match state.closing {
            true => Err(JournalError::RunEnded(key.to_owned())),
            false => Ok(state),
        }
    }
}

/// Divisor of the byte limit: one eighth is reserved for input requests.
const RESERVE: usize = 8;

/// Suffix of the key that records the start of a step.
pub(super) const ONCE: &str = "#once";

/// Suffix of the key that records the deadline of an input request.
pub(super) const DUE: &str = "#due";

impl State {
    fn is_between_steps(&self) -> bool {
        self.parking_guards == 0
            && !self.steps.any_active()
            && self.pending.as_ref().is_none_or(PendingWrites::is_empty)
    }

    /// Returns whether the run waits for an event that the store can observe.
    fn waits_in_store(&self) -> bool {
        self.inputs.is_waiting() || self.steps.any_timer()
    }

    /// Returns the ticket of the last record.
    pub(super) fn ticket(&self) -> WriteTicket {
        self.pending.as_ref().map_or(WriteTicket::NONE, PendingWrites::ticket)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.values()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    pub(super) fn entry(&self, key: &str) -> Option<&JournalEntry> {
        self.entries.get(key)
    }

    /// Removes an entry, such as an invalid response.
    pub(super) fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size(key);
            if let Some(pending) = &mut self.pending {
                pending.add_invalidated(key.to_owned());
            }
        }
    }

    /// Adds an entry that the store already has.
    pub(super) fn read_back(&mut self, key: &str, entry: JournalEntry) {
        self.bytes += entry.size(key);
        self.entries.entry(key.to_owned()).or_insert(entry);
    }

    /// Records an entry. Returns the recorded entry, which is the existing one if there is one.
    pub(super) fn record(
        &mut self,
        key: &str,
        entry: JournalEntry,
        limits: JournalLimits,
    ) -> Result<&JournalEntry, JournalError> {
        self.record_step(key, entry, None, limits)
    }

    /// Records an entry with the duration of its step.
    pub(super) fn record_step(
        &mut self,
        key: &str,
        entry: JournalEntry,
        duration: Option<Duration>,
        limits: JournalLimits,
    ) -> Result<&JournalEntry, JournalError> {
        if !self.entries.contains_key(key) {
            self.grow(|| key.to_owned(), entry.size(key), limits)?;
            if let Some(pending) = &mut self.pending {
                pending.add_entry(RecordedEntry::new(key, entry.clone()).duration(duration));
            }
            self.note(key);
        }
        Ok(self.entries.entry(key.to_owned()).or_insert(entry))
    }

    /// Counts a record. Marks the run as crashed if a test requested a crash at this record.
    pub(super) fn note(&mut self, key: &str) {
        self.recorded += 1;
        let here = match &self.crash {
            Some(CrashPoint::After(wanted)) => wanted == key,
            Some(CrashPoint::AfterRecords(count)) => self.recorded == *count,
            None => false,
        };
        if here {
            self.crash = None;
            self.crashed = true;
        }
    }

    /// Returns an error if the store rejected a write, because the run can then record nothing.
    pub(super) fn takes_more(&self) -> Result<(), JournalError> {
        self.refused.map_or(Ok(()), |limit| Err(JournalError::BytesExceeded { limit }))
    }

    /// Counts the bytes of a new entry or segment. Returns an error if they exceed the limit.
    pub(super) fn grow(
        &mut self,
        what: impl FnOnce() -> String,
        by: usize,
        limits: JournalLimits,
    ) -> Result<(), JournalError> {
        self.takes_more()?;
        let bytes = self.bytes + by + self.inputs.size();
        // Input requests may use the reserve: a handler that reaches the limit can still ask the
        // user.
        let limit = limits.bytes - if by > 0 { limits.bytes / RESERVE } else { 0 };
        if bytes > limit {
            return Err(JournalError::TooLarge { key: what(), bytes, limit });
        }
        self.bytes += by;
        Ok(())
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Journal")
            .field("entries", &state.entries.keys())
            .field("inputs", &state.inputs)
            .finish_non_exhaustive()
    }
}
