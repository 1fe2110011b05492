//! What a run has recorded, asked and emitted, by name.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use outlive_wire::RawJson;

use super::{open_inputs::OpenInputs, pending_writes::PendingWrites, segments::Segments};
use crate::{
    capacity::Capacity,
    current_run::{RunId, polling, step_of},
    error::JournalError,
    record::{JournalEntry, JournalSnapshot, Segment},
};

/// The journal of one call. Runs come and go over it; it grows.
pub struct Journal {
    // Wider when the journal gets a store.
    bounds: RwLock<JournalLimits>,
    // A std mutex: nothing awaits while it is held, and it is held for a look into a map.
    state: Mutex<State>,
}

/// What a journal may hold.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the floor above")]
pub struct JournalLimits {
    /// Bytes of all entries together.
    pub bytes: usize,
    /// OpenInputs that may be open at once.
    pub questions: usize,
    /// Whether it leaves the server, sealed, to come back: then it takes no secrets.
    pub leaves: bool,
    /// Blocks that may be emitted.
    pub segments: usize,
    /// Bytes of each of them.
    pub segment_bytes: usize,
}

#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<String, JournalEntry>,
    bytes: usize,
    /// Keys that this run has used: of steps in flight, of questions, of what was read back.
    used: HashSet<String>,
    /// Bodies of steps that are at work.
    pub(super) steps: usize,
    pub(super) segments: Segments,
    /// When the timers are over that the run waits for.
    pub(super) timers: BTreeMap<String, u64>,
    pub(super) questions: OpenInputs,
    /// Whether there are values among the entries that no client may carry.
    pub(super) secrets: bool,
    /// How far the run has said it is.
    pub(super) progress: Option<f64>,
    /// What the run has said that it is doing, while there was no store to write it to.
    pub(super) said: Option<String>,
    /// How far it has said it is meanwhile.
    pub(super) noted: Option<RawJson>,
    /// What a store has not been given yet; `None` for a journal that lives in memory.
    pub(super) unwritten: Option<PendingWrites>,
    /// The run wants to go on elsewhere, and when.
    shed: Option<YieldToReplica>,
    /// The run is being given up: whatever is dropped now does not mean to be.
    closing: bool,
    /// How many entries and blocks have been recorded over this journal.
    recorded: usize,
    /// It is to be looked at by somebody when the task has ended.
    kept: bool,
    /// Whether a part of the run goes on when its task is cancelled.
    shielded: bool,
    /// The limit that a write was refused for: nothing more is recorded.
    pub(super) refused: Option<&'static str>,
    /// Whether blocks were emitted that are not stored, and nobody was told.
    pub(super) lost_blocks: bool,
    /// Where an author's test wants the run to be lost.
    crash: Option<CrashPoint>,
    /// The run is lost: it is to be dropped and begun again.
    crashed: bool,
}

/// Where a run is to be lost, once, as a crash would lose it: after something was recorded, and
/// before the run has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by the author's test kit, ours")]
pub enum CrashPoint {
    /// After this key.
    After(String),
    /// After so many records.
    AfterRecords(usize),
}

/// That a run wants to go on elsewhere, or later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "one wish")]
pub struct YieldToReplica {
    /// When the client should come back, if not at once.
    pub retry_after: Option<Duration>,
    /// What it waits for a permit of.
    pub capacity: Option<Capacity>,
}

impl Journal {
    /// An empty journal.
    pub fn new(bounds: JournalLimits) -> Self {
        Self { bounds: RwLock::new(bounds), state: Mutex::default() }
    }

    /// A journal that goes on.
    pub fn from_snapshot(bounds: JournalLimits, restored: JournalSnapshot) -> Self {
        let JournalSnapshot { entries, segments, input_requests: _, reasked } = restored;
        let bytes = entries.iter().map(|(key, entry)| entry.size(key)).sum::<usize>()
            + segments.iter().map(Segment::size).sum::<usize>();
        let state = State {
            entries,
            bytes,
            segments: Segments::restored(segments),
            questions: OpenInputs::reasked(reasked),
            ..State::default()
        };
        Self { bounds: RwLock::new(bounds), state: Mutex::new(state) }
    }

    /// What there is to keep between runs.
    pub fn snapshot(&self) -> JournalSnapshot {
        let state = self.lock();
        JournalSnapshot {
            entries: state.entries.clone(),
            segments: state.segments.stored().to_vec(),
            input_requests: state.questions.open_keys(),
            reasked: state.questions.times_reasked(),
        }
    }

    /// What is recorded under a key. Whoever looks does not use the key.
    pub fn get(&self, key: &str) -> Option<JournalEntry> {
        self.lock().entries.get(key).cloned()
    }

    /// Has something written down that is no entry of the run's own.
    pub fn put_marker(&self, key: String, note: RawJson) {
        let mut state = self.lock();
        let unwritten = state.unwritten.get_or_insert_default();
        unwritten.changes.entries.push((key, JournalEntry::State(note)));
    }

    /// Has the task kept for an operator when its run is over.
    pub fn quarantine(&self) {
        self.lock().kept = true;
    }

    /// Whether an operator has to look at it.
    pub fn is_quarantined(&self) -> bool {
        self.lock().kept
    }

    /// What a handler that asks by itself has given to keep.
    pub fn state(&self) -> Option<RawJson> {
        let mut state = self.lock();
        match state.entries.get(STATE)? {
            JournalEntry::State(raw) => {
                let raw = raw.clone();
                state.used.insert(STATE.to_owned());
                Some(raw)
            }
            _ => None,
        }
    }

    /// Keeps what a handler that asks by itself wants to have back.
    pub fn set_state(&self, raw: RawJson) -> Result<(), JournalError> {
        let mut state = self.lock();
        state.forget(STATE);
        state.record(STATE, JournalEntry::State(raw), self.bounds()).map(drop)
    }

    /// The run wants to go on elsewhere.
    pub fn shed(&self, run: RunId, after: Option<Duration>) -> Result<(), JournalError> {
        let mut state = self.enter(run, "shed")?;
        state.shed = Some(YieldToReplica { retry_after: after, capacity: None });
        Ok(())
    }

    /// The run of a task wants to go on when there is a permit for it.
    pub fn wait_for_permit(&self, run: RunId, capacity: &Capacity) -> Result<(), JournalError> {
        let mut state = self.enter(run, capacity.name())?;
        state.shed = Some(YieldToReplica { retry_after: None, capacity: Some(capacity.clone()) });
        Ok(())
    }

    /// Whether the run wants to go on elsewhere, and when.
    pub fn wants_to_shed(&self) -> Option<YieldToReplica> {
        self.lock().shed.clone()
    }

    /// Whether the run waits for nothing that happens by itself.
    pub fn waits_for_answers(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && (state.shed.is_some() || state.questions.any_open())
    }

    /// Whether a store can wait in place of the run: for an answer, or for a time.
    pub fn can_be_parked(&self) -> bool {
        let state = self.lock();
        state.is_between_steps() && (state.questions.any_open() || !state.timers.is_empty())
    }

    /// A part of the run goes on when its task is cancelled.
    pub fn shield(&self) {
        self.lock().shielded = true;
    }

    /// Whether a run whose task is cancelled only waits, so that it needs no time to stop.
    pub fn can_stop_at_once(&self) -> bool {
        let state = self.lock();
        let waits = state.questions.any_open() || !state.timers.is_empty();
        waits && !state.shielded && state.is_between_steps()
    }

    /// Whether no step is at work, and everything that was recorded is written.
    pub fn is_between_steps(&self) -> bool {
        self.lock().is_between_steps()
    }

    /// When the first of the open questions is over.
    pub fn next_deadline(&self) -> Option<u64> {
        self.lock().questions.dues().min()
    }

    /// When the first of the open questions and timers is over.
    pub fn next_due(&self) -> Option<u64> {
        let state = self.lock();
        state.questions.dues().chain(state.timers.values().copied()).min()
    }

    /// How many entries and blocks have been recorded since the journal was made or restored.
    pub fn recorded(&self) -> usize {
        self.lock().recorded
    }

    /// Has the run lost at some place, for tests.
    pub fn crash(&self, crash: CrashPoint) {
        self.lock().crash = Some(crash);
    }

    /// Whether the run is lost. Whatever it waits for never comes.
    pub fn crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Lets a run continue that was to be lost, for tests.
    pub fn survive(&self) {
        self.lock().crashed = false;
    }

    /// The run is about to be dropped: what it drops is neither withdrawn nor given back.
    pub fn close(&self) {
        self.lock().closing = true;
    }

    /// Another run begins over this journal.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.used.clear();
        state.steps = 0;
        state.timers.clear();
        state.shed = None;
        state.segments.restart_all();
        state.questions.restart();
        if let Some(unwritten) = &mut state.unwritten {
            unwritten.restart();
        }
        state.closing = false;
        state.shielded = false;
        state.crashed = false;
    }

    /// The entries that this run had no use for: its handler has changed, or is not the same
    /// function of its journal each time.
    pub fn unused(&self) -> Vec<String> {
        let state = self.lock();
        // A deadline is that of a question, a mark that of a step; an author's own `#` is escaped.
        let is_ours = |key: &str| {
            [DUE, ONCE]
                .iter()
                .any(|mark| key.strip_suffix(mark).is_some_and(|of| !of.ends_with('\\')))
        };
        let is_unused = |key: &&String| !state.used.contains(*key) && !is_ours(key);
        state.entries.keys().filter(is_unused).cloned().collect()
    }

    /// Whether it holds values that no client may carry.
    pub fn holds_secrets(&self) -> bool {
        self.lock().secrets
    }

    /// How many bytes it is counted as.
    pub fn size(&self) -> usize {
        let state = self.lock();
        state.bytes + state.questions.size()
    }

    /// Takes back what was kept elsewhere. What is here stays as it is.
    pub fn merge(&self, kept: JournalSnapshot) {
        let mut state = self.lock();
        for (key, entry) in kept.entries {
            if state.entry(&key).is_none() {
                state.read_back(&key, entry);
            }
        }
        state.bytes += kept.segments.iter().map(Segment::size).sum::<usize>();
        state.segments.prepend(kept.segments);
    }

    /// What the journal may hold from now on.
    pub fn set_bounds(&self, bounds: JournalLimits) {
        *self.bounds.write().unwrap_or_else(PoisonError::into_inner) = bounds;
    }

    pub(super) fn bounds(&self) -> JournalLimits {
        *self.bounds.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it was locked left it whole: every change is one insertion or removal.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state for something that belongs between the steps of the run.
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

/// Where the state of a handler that asks by itself stands. No key of an author's begins so.
const STATE: &str = "#state";

/// Which part of the room is for questions alone.
const RESERVE: usize = 8;

/// Suffix of the key that records that a step was started.
pub(super) const ONCE: &str = "#once";

/// What is appended to the key of a question to record when it is over.
pub(super) const DUE: &str = "#due";

impl State {
    /// Takes a key for this run.
    pub(super) fn take(&mut self, key: &str) -> Result<(), JournalError> {
        match self.used.insert(key.to_owned()) {
            true => Ok(()),
            false => Err(JournalError::DuplicateKey(key.to_owned())),
        }
    }

    /// Gives a key back.
    pub(super) fn give_back(&mut self, key: &str) {
        self.used.remove(key);
    }

    fn is_between_steps(&self) -> bool {
        self.steps == 0 && self.unwritten.as_ref().is_none_or(PendingWrites::is_empty)
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

    /// Forgets an answer that does not fit what is asked.
    pub(super) fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size(key);
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.changes.invalidated.push(key.to_owned());
            }
        }
    }

    /// Takes an answer that the store has already.
    pub(super) fn read_back(&mut self, key: &str, entry: JournalEntry) {
        self.bytes += entry.size(key);
        self.entries.entry(key.to_owned()).or_insert(entry);
    }

    /// Records an entry, and returns what is recorded: the first one stays.
    pub(super) fn record(
        &mut self,
        key: &str,
        entry: JournalEntry,
        bounds: JournalLimits,
    ) -> Result<&JournalEntry, JournalError> {
        if !self.entries.contains_key(key) {
            self.grow(|| key.to_owned(), entry.size(key), bounds)?;
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.changes.entries.push((key.to_owned(), entry.clone()));
            }
            self.note(key);
        }
        Ok(self.entries.entry(key.to_owned()).or_insert(entry))
    }

    /// Counts a record, and loses the run if that is what a test wants here.
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

    /// Whether anything more can be recorded.
    pub(super) fn takes_more(&self) -> Result<(), JournalError> {
        self.refused.map_or(Ok(()), |limit| Err(JournalError::OverBytes { limit }))
    }

    /// Makes room for something; refuses it if there is none.
    pub(super) fn grow(
        &mut self,
        what: impl FnOnce() -> String,
        by: usize,
        bounds: JournalLimits,
    ) -> Result<(), JournalError> {
        self.takes_more()?;
        let bytes = self.bytes + by + self.questions.size();
        // A handler that has used up its room can still ask what to do about it.
        let limit = bounds.bytes - if by > 0 { bounds.bytes / RESERVE } else { 0 };
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
            .field("questions", &state.questions)
            .finish_non_exhaustive()
    }
}
