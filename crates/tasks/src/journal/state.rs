//! [`Journal`]: what the runs of a call have recorded, requested and emitted, by key.

use std::{
    collections::BTreeMap,
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
};

/// The journal of one call. It grows over all runs of the call.
pub struct Journal {
    // Larger when the journal gets a store.
    limits: RwLock<JournalLimits>,
    // A std mutex: no code awaits while it is held, and each access is a look into a map.
    state: Mutex<State>,
}

/// Limits of a journal.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the floor above")]
pub struct JournalLimits {
    /// Bytes of all entries together.
    pub bytes: usize,
    /// Number of input requests that are open at the same time.
    pub open_inputs: usize,
    /// Whether the journal leaves the server in a request state: then it takes no secrets.
    pub leaves: bool,
    /// Number of segments.
    pub segments: usize,
    /// Bytes of each segment.
    pub segment_bytes: usize,
}

#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<String, JournalEntry>,
    bytes: usize,
    pub(super) steps: Steps,
    pub(super) segments: Segments,
    pub(super) inputs: Inputs,
    /// What the store has not committed; `None` for a journal without a store.
    pub(super) pending: Option<PendingWrites>,
    /// Whether an entry has a secret, which no client may carry.
    pub(super) secrets: bool,
    /// The last progress.
    pub(super) progress: Option<f64>,
    /// The status message and the progress that wait for a store.
    pub(super) early_message: Option<String>,
    pub(super) early_progress: Option<RawJson>,
    /// The run asks to continue on another replica, or later.
    yields: Option<YieldToReplica>,
    /// The run is being dropped: its destructors withdraw nothing.
    closing: bool,
    /// Number of entries and segments that were recorded over this journal.
    recorded: usize,
    /// Whether the task is quarantined when its run has ended.
    quarantined: bool,
    /// Whether a part of the run continues when its task is cancelled.
    shielded: bool,
    /// The limit for which a write was refused: nothing more is recorded.
    pub(super) refused: Option<&'static str>,
    /// Whether segments were emitted that are not stored, without an error to the handler.
    pub(super) lost_segments: bool,
    /// Where a test lets the run crash.
    crash: Option<CrashPoint>,
    /// The run has crashed: it is to be dropped and replayed.
    crashed: bool,
}

/// Where a test lets a run crash, once: after something was recorded, and before the run has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by the author's test kit, ours")]
pub enum CrashPoint {
    /// After this key.
    After(String),
    /// After this number of records.
    AfterRecords(usize),
}

/// That a run asks to continue on another replica, or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YieldToReplica {
    /// When the client should retry, if not at once.
    pub(crate) retry_after: Option<Duration>,
    /// The capacity that the run waits for a permit of.
    pub(crate) capacity: Option<Capacity>,
}

/// What a suspended run waits for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suspended {
    /// Its open input requests.
    pub requests: Vec<OpenInputRequest>,
    /// When the client should retry, if the run asked to continue on another replica.
    pub retry_after: Option<Duration>,
}

/// How a run differs from the journal that it replayed: its handler has changed, or is not deterministic.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplayMismatch {
    /// Keys of entries that the run did not use.
    pub unused: Vec<String>,
    /// Scopes that emitted fewer segments than a run before.
    pub missing_segments: Vec<String>,
}

impl Journal {
    /// Creates an empty journal.
    pub fn new(limits: JournalLimits) -> Self {
        Self { limits: RwLock::new(limits), state: Mutex::default() }
    }

    /// Creates a journal that continues.
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

    /// Adds what the store had of this journal. Existing entries stay as they are.
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

    /// Returns the entry under a key. The key does not count as used.
    pub fn get(&self, key: &str) -> Option<JournalEntry> {
        self.lock().entries.get(key).cloned()
    }

    /// Writes an entry to the store that is not part of the run.
    pub fn put_marker(&self, key: String, value: RawJson) {
        let mut state = self.lock();
        state.pending.get_or_insert_default().add_entry(key, JournalEntry::State(value));
    }

    /// Quarantines the task when its run has ended.
    pub fn quarantine(&self) {
        self.lock().quarantined = true;
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.lock().quarantined
    }

    /// Asks to continue on another replica after some time, or when a capacity has a permit.
    ///
    /// # Errors
    ///
    /// When the run is not being polled, or is inside of a step.
    pub fn yield_run(
        &self,
        run: RunId,
        retry_after: Option<Duration>,
        capacity: Option<&Capacity>,
    ) -> Result<(), JournalError> {
        let mut state = self.enter(run, capacity.map_or("shed", Capacity::name))?;
        state.yields = Some(YieldToReplica { retry_after, capacity: capacity.cloned() });
        Ok(())
    }

    pub(crate) fn yields(&self) -> Option<YieldToReplica> {
        self.lock().yields.clone()
    }

    /// Returns whether the run waits for nothing that happens by itself.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && (state.yields.is_some() || state.inputs.is_waiting())
    }

    /// Suspends the run: it is about to be dropped, and its input requests stay open.
    ///
    /// # Errors
    ///
    /// Returns why a value that the client sent is no response, if that was found.
    pub fn suspend(&self) -> Result<Suspended, String> {
        let mut state = self.lock();
        if let Some(why) = state.inputs.malformed() {
            return Err(why);
        }
        state.closing = true;
        let retry_after = state.yields.as_ref().and_then(|to| to.retry_after);
        Ok(Suspended { requests: state.inputs.shown(), retry_after })
    }

    /// Returns whether the store can wait in place of the run: for input, or for a time.
    pub(crate) fn can_be_parked(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && state.waits_in_store()
    }

    /// Lets a part of the run continue when its task is cancelled.
    pub fn shield(&self) {
        self.lock().shielded = true;
    }

    /// Returns whether a run whose task is cancelled only waits, so that it needs no time to stop.
    pub(crate) fn can_stop_at_once(&self) -> bool {
        let state = self.lock();
        state.waits_in_store() && !state.shielded && state.is_between_steps()
    }

    /// Returns whether no step is at work, and all records are written.
    pub(crate) fn is_between_steps(&self) -> bool {
        self.lock().is_between_steps()
    }

    /// Returns when the first open input request times out.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.lock().inputs.dues().min()
    }

    /// Returns when the first open input request or timer ends.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let state = self.lock();
        state.inputs.dues().chain(state.steps.dues()).min()
    }

    /// Returns the number of entries and segments that were recorded since the journal was created.
    pub fn recorded(&self) -> usize {
        self.lock().recorded
    }

    /// Lets the run crash at some point, for tests.
    pub fn crash(&self, crash: CrashPoint) {
        self.lock().crash = Some(crash);
    }

    /// Returns whether the run has crashed: what it waits for never comes.
    pub fn crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Lets a run continue that was to be lost, for tests.
    pub fn survive(&self) {
        self.lock().crashed = false;
    }

    /// Returns when the first timer ends, if the run waits for nothing but timers.
    pub fn next_timer(&self) -> Option<u64> {
        let state = self.lock();
        let waits =
            state.is_between_steps() && state.yields.is_none() && !state.inputs.is_waiting();
        state.steps.dues().min().filter(|_| waits)
    }

    /// Notes that the run is about to be dropped: its destructors withdraw nothing.
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

    /// Compares a run that has ended with the journal that it replayed.
    pub fn replay_mismatch(&self) -> ReplayMismatch {
        let state = self.lock();
        // The deadline of an input request and the mark of a step have no use of their own. An author's
        // own `#` is escaped.
        let is_ours = |key: &str| {
            [DUE, ONCE]
                .iter()
                .any(|mark| key.strip_suffix(mark).is_some_and(|of| !of.ends_with('\\')))
        };
        let is_unused = |key: &&String| !state.steps.has_used(key) && !is_ours(key);
        let unused = state.entries.keys().filter(is_unused).cloned().collect();
        let is_done = |scope: &str| state.entry(scope).is_some();
        let behind = state.segments.behind(is_done).map(str::to_owned);
        let mut missing_segments: Vec<String> = behind.collect();
        missing_segments.sort();
        ReplayMismatch { unused, missing_segments }
    }

    /// Returns whether a client can carry the journal: it has no secret, and at most `max` bytes.
    pub fn fits(&self, max: usize) -> bool {
        let state = self.lock();
        !state.secrets && state.bytes + state.inputs.size() <= max
    }

    /// Sets the limits from now on.
    pub fn set_limits(&self, limits: JournalLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub(super) fn limits(&self) -> JournalLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic left the state whole: every change is one insertion or removal.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state for an operation of the run itself, outside of its steps.
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

/// The part of the bytes that only input requests may use.
const RESERVE: usize = 8;

/// Suffix of the key that records that a step was started.
pub(super) const ONCE: &str = "#once";

/// Suffix of the key that records when an input request times out.
pub(super) const DUE: &str = "#due";

impl State {
    fn is_between_steps(&self) -> bool {
        !self.steps.any_active() && self.pending.as_ref().is_none_or(PendingWrites::is_empty)
    }

    /// Returns whether the run waits for something that a store can wait for.
    fn waits_in_store(&self) -> bool {
        self.inputs.is_waiting() || self.steps.any_timer()
    }

    /// Returns the ticket of what was recorded last.
    pub(super) fn ticket(&self) -> WriteTicket {
        self.pending.as_ref().map_or(WriteTicket::NONE, PendingWrites::ticket)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.values()
    }

    pub(super) fn entry(&self, key: &str) -> Option<&JournalEntry> {
        self.entries.get(key)
    }

    /// Removes an entry, such as a response that does not fit its request.
    pub(super) fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size(key);
            if let Some(pending) = &mut self.pending {
                pending.add_invalidated(key.to_owned());
            }
        }
    }

    /// Adds an entry that the store has already.
    pub(super) fn read_back(&mut self, key: &str, entry: JournalEntry) {
        self.bytes += entry.size(key);
        self.entries.entry(key.to_owned()).or_insert(entry);
    }

    /// Records an entry. Returns the recorded one: an existing entry stays.
    pub(super) fn record(
        &mut self,
        key: &str,
        entry: JournalEntry,
        limits: JournalLimits,
    ) -> Result<&JournalEntry, JournalError> {
        if !self.entries.contains_key(key) {
            self.grow(|| key.to_owned(), entry.size(key), limits)?;
            if let Some(pending) = &mut self.pending {
                pending.add_entry(key.to_owned(), entry.clone());
            }
            self.note(key);
        }
        Ok(self.entries.entry(key.to_owned()).or_insert(entry))
    }

    /// Counts a record, and lets the run crash if a test wants it here.
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

    /// Fails if a write was refused, so that nothing more can be recorded.
    pub(super) fn takes_more(&self) -> Result<(), JournalError> {
        self.refused.map_or(Ok(()), |limit| Err(JournalError::BytesExceeded { limit }))
    }

    /// Counts the bytes of a new entry or segment. Fails if they exceed the limit.
    pub(super) fn grow(
        &mut self,
        what: impl FnOnce() -> String,
        by: usize,
        limits: JournalLimits,
    ) -> Result<(), JournalError> {
        self.takes_more()?;
        let bytes = self.bytes + by + self.inputs.size();
        // A handler that has used up its bytes can still ask the user what to do.
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
