//! The state of one run: its journal, its placement, and its round.
//!
//! `exec/execute.rs` creates it for calls that may need it, `dispatch/resume.rs` for tasks. The
//! context of the handler owns it. A plain call has none.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Poll,
};

use outlive_protocol::{Call, MethodResult, Outcome};
use outlive_tasks::{Journal, JournalEntry, JournalLimits, JournalSnapshot, RunId, store::TaskId};
use outlive_wire::ContentBlock;
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};

use crate::{
    hex::hex,
    server::{
        env::{environment::Env, test_hooks::TestHooks},
        run::{
            limits,
            placement::{CleanupReason, Placement, PlacementCell, Promotable},
            replay_policy::{ReplayPolicy, migrated},
        },
    },
};

/// Where the ID of the call is in the journal of a task. No key of an author begins so.
const CALL: &str = "#call";

/// What a call has done and requested, over all its rounds.
pub(crate) struct RunState {
    /// Created at its first use: most runs of most handlers use none.
    journal: OnceLock<Arc<Journal>>,
    /// The limits of a journal that is not created yet.
    limits: JournalLimits,
    test_hooks: Option<Arc<TestHooks>>,
    placement: PlacementCell,
    /// Whether the call becomes a task before its first step, if it may.
    promotes_at_step: AtomicBool,
    /// Whether the engine asked the task to stop. A client that leaves does not stop a task.
    task_cancelled: AtomicBool,
    /// Why the run of a task cannot continue: an entry of its journal does not decode.
    incompatible: OnceLock<String>,
    /// Created at its first use, and the same over all rounds.
    call_id: OnceLock<String>,
    /// Number of rounds before this one.
    rounds: AtomicU32,
    /// What is known of earlier rounds; `None` in the first. Boxed, because most runs have none.
    earlier: Option<Box<EarlierRounds>>,
}

/// What a run knows of the rounds before its own.
struct EarlierRounds {
    /// Name of the request state that the client presented.
    id: Option<String>,
    has_effects: bool,
    yields: u32,
    /// Where the store has the journal, until it is read.
    offloaded: Mutex<Option<Offloaded>>,
    /// Whether the store had the journal before, and gets it again.
    was_offloaded: AtomicBool,
}

/// What a client presents of the rounds before.
pub(crate) struct Round {
    /// Name of the request state; `None` in the first round.
    pub(crate) id: Option<String>,
    /// Whether earlier rounds had effects, or the request state is valid once.
    pub(crate) has_effects: bool,
    /// How often the call yielded to another replica.
    pub(crate) yields: u32,
    /// Number of rounds before this one.
    pub(crate) number: u32,
    pub(crate) call_id: Option<String>,
    pub(crate) offloaded: Option<Offloaded>,
}

/// A journal that the store has.
pub(crate) struct Offloaded {
    pub(crate) place: String,
    pub(crate) revision: Option<Arc<str>>,
    pub(crate) replay: ReplayPolicy,
}

impl RunState {
    /// Returns the state of a call in its first round.
    pub(crate) fn new(env: &Env, call: &Call) -> Self {
        Self::first(limits::inline(env, call), env.test_hooks.clone())
    }

    /// Returns the state of a call in a later round.
    pub(crate) fn in_round(env: &Env, call: &Call, journal: JournalSnapshot, round: Round) -> Self {
        let run = Self {
            call_id: round.call_id.map_or_else(OnceLock::new, OnceLock::from),
            rounds: AtomicU32::new(round.number),
            earlier: Some(Box::new(EarlierRounds {
                id: round.id,
                has_effects: round.has_effects,
                yields: round.yields,
                offloaded: Mutex::new(round.offloaded),
                was_offloaded: AtomicBool::new(false),
            })),
            ..Self::new(env, call)
        };
        run.put_journal(Journal::from_snapshot(run.limits, journal));
        run.hook();
        run
    }

    fn first(limits: JournalLimits, test_hooks: Option<Arc<TestHooks>>) -> Self {
        Self {
            journal: OnceLock::new(),
            limits,
            test_hooks,
            placement: PlacementCell::new(Placement::Inline(Promotable::No)),
            promotes_at_step: AtomicBool::new(false),
            task_cancelled: AtomicBool::new(false),
            incompatible: OnceLock::new(),
            call_id: OnceLock::new(),
            rounds: AtomicU32::new(0),
            earlier: None,
        }
    }

    /// Returns the state of a task that starts or resumes, or of its cleanup.
    pub(crate) fn of_task(
        env: &Env,
        placement: Placement,
        mut journal: JournalSnapshot,
        replay: &ReplayPolicy,
    ) -> Self {
        let call_id: Option<String> = match journal.entries.remove(CALL) {
            Some(JournalEntry::State(raw)) => serde_json::from_str(raw.get()).ok(),
            _ => None,
        };
        let mark = replay.resume(&mut journal);
        let limits = limits::task(env);
        let run = Self {
            placement: PlacementCell::new(placement),
            call_id: call_id.map_or_else(OnceLock::new, OnceLock::from),
            ..Self::first(limits, None)
        };
        let journal = Journal::from_snapshot(limits, journal);
        if let Some((key, note)) = mark {
            journal.put_marker(key, note);
        }
        run.put_journal(journal);
        run
    }

    /// Allows that the call becomes a task, before its first step if `at_step`.
    pub(crate) fn allow_promotion(&self, at_step: bool) {
        self.placement.set(Placement::Inline(Promotable::Yes));
        self.promotes_at_step.store(at_step, Ordering::Relaxed);
    }

    fn put_journal(&self, journal: Journal) {
        // The run is new, so there is none yet.
        let _: Result<(), Arc<Journal>> = self.journal.set(Arc::new(journal));
    }

    /// Returns the journal; its first use creates it.
    pub(crate) fn journal(&self) -> &Arc<Journal> {
        self.journal.get_or_init(|| {
            let journal = Journal::new(self.limits);
            if let Some(hooks) = &self.test_hooks {
                hooks.begin(&journal);
            }
            Arc::new(journal)
        })
    }

    /// Lets a test have its way with a journal that was there before.
    fn hook(&self) {
        if let Some(hooks) = &self.test_hooks {
            hooks.begin(self.journal());
        }
    }

    /// Returns the journal, if the run has used it.
    pub(crate) fn used_journal(&self) -> Option<&Arc<Journal>> {
        self.journal.get()
    }

    /// Whether the call has become a task.
    pub(crate) fn is_task(&self) -> bool {
        self.placement.is_task()
    }

    /// Returns the task that the call has become.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        self.placement.task_id()
    }

    /// Returns why the task ended before its handler did, in its cleanup.
    pub(crate) fn cleanup_reason(&self) -> Option<CleanupReason> {
        self.placement.cleanup_reason()
    }

    /// Moves the run into a task.
    pub(crate) fn promote(&self, env: &Env, id: TaskId) {
        self.journal().set_limits(limits::task(env));
        self.placement.set(Placement::Task { id });
    }

    /// Keeps the run inline from now on: it did not become a task.
    pub(crate) fn stay_inline(&self, env: &Env, call: &Call) {
        if let (true, Some(journal)) = (self.is_task(), self.used_journal()) {
            journal.set_limits(limits::inline(env, call));
            journal.stop_writing();
        }
        self.placement.set(Placement::Inline(Promotable::No));
    }

    /// Whether the call may become a task.
    pub(crate) fn is_promotable(&self) -> bool {
        self.placement.promotable().is_some_and(|promotable| promotable != Promotable::No)
    }

    /// Whether the handler waits until its call is a task.
    pub(crate) fn is_promotion_requested(&self) -> bool {
        self.placement.promotable() == Some(Promotable::Requested)
    }

    /// Requests that the call becomes a task before it continues. Returns whether it may.
    pub(crate) fn request_promotion(&self) -> bool {
        self.placement.request_promotion()
    }

    /// Waits until the call is a task; `false` if it will not be one. `promote` polls the handler
    /// again then, so no waker is kept.
    pub(crate) fn poll_task(&self) -> Poll<bool> {
        match self.is_task() {
            true => Poll::Ready(true),
            false if self.request_promotion() => Poll::Pending,
            false => Poll::Ready(false),
        }
    }

    /// Whether the call has to become a task before a step.
    pub(crate) fn promotes_at_step(&self) -> bool {
        self.promotes_at_step.load(Ordering::Relaxed) && !self.is_task()
    }

    /// Records that the engine asked the task to stop.
    pub(crate) fn cancel_task(&self) {
        self.task_cancelled.store(true, Ordering::Release);
    }

    /// Whether the engine asked the task to stop.
    pub(crate) fn is_task_cancelled(&self) -> bool {
        self.task_cancelled.load(Ordering::Acquire)
    }

    /// Ends the run of a task whose journal cannot be read, and quarantines the task.
    pub(crate) fn quarantine(&self, reason: String) {
        self.journal().quarantine();
        // The first reason is what the task fails with.
        let _: Result<(), String> = self.incompatible.set(reason);
    }

    /// Returns why the run cannot continue, if it cannot.
    pub(crate) fn incompatible(&self) -> Option<&str> {
        self.incompatible.get().map(String::as_str)
    }

    /// Returns the journal for a task to start with. The call ID travels with it, so that idempotency
    /// keys for other systems stay the same.
    pub(crate) fn snapshot(&self, env: &Env) -> JournalSnapshot {
        let mut journal = self.journal().snapshot();
        if let Ok(id) = to_raw_value(self.call_id(env)) {
            journal.entries.insert(CALL.to_owned(), JournalEntry::State(id));
        }
        journal
    }

    /// Returns the ID of the call.
    pub(crate) fn call_id(&self, env: &Env) -> &str {
        self.call_id.get_or_init(|| env.call_ids.next())
    }

    /// Returns a key for other systems: the same each time this call uses this journal key.
    pub(crate) fn idempotency_key(&self, env: &Env, key: &str) -> String {
        let hash = Sha256::new().chain_update(self.call_id(env)).chain_update(key).finalize();
        hex(&hash[..16])
    }

    /// Returns the name of the request state that was presented.
    pub(crate) fn round_id(&self) -> Option<&str> {
        self.earlier.as_ref()?.id.as_deref()
    }

    /// Returns the name of the request state, if presenting it again would repeat effects.
    pub(crate) fn round_with_effects(&self) -> Option<&str> {
        self.earlier.as_ref().filter(|earlier| earlier.has_effects)?.id.as_deref()
    }

    /// Returns how often the call yielded to another replica.
    pub(crate) fn yields(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.yields)
    }

    /// Returns the number of rounds before this one.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Counts a round that is not a request of its own.
    pub(crate) fn count_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns where the store has the rest of the journal.
    pub(crate) fn offloaded(&self) -> Option<String> {
        let offloaded = self.earlier.as_ref()?.lock_offloaded();
        offloaded.as_ref().map(|offloaded| offloaded.place.clone())
    }

    /// Whether the store had the journal in an earlier round.
    pub(crate) fn was_offloaded(&self) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.was_offloaded.load(Ordering::Acquire))
    }

    /// Merges what the store had of the journal.
    pub(crate) fn refill(&self, journal: JournalSnapshot) {
        let Some(earlier) = &self.earlier else { return };
        let offloaded = earlier.lock_offloaded().take();
        let Some(Offloaded { revision, replay, .. }) = offloaded else { return };
        earlier.was_offloaded.store(true, Ordering::Release);
        self.journal().merge(migrated(journal, revision.as_deref(), &replay));
    }

    /// Puts the segments that were emitted before the content that was returned.
    pub(crate) fn merge_segments(&self, outcome: &mut Outcome) {
        let Some(journal) = self.used_journal() else { return };
        let Outcome::Complete(MethodResult::Tool(result)) = outcome else { return };
        let segments = journal.segments();
        let emitted: Vec<ContentBlock> = segments
            .iter()
            .filter_map(|segment| serde_json::from_str(segment.block.get()).ok())
            .collect();
        if !emitted.is_empty() {
            result.content.splice(0..0, emitted);
        }
    }
}

impl EarlierRounds {
    fn lock_offloaded(&self) -> MutexGuard<'_, Option<Offloaded>> {
        self.offloaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Identifies the run of a call while the call exists.
pub(crate) fn run_id(call: &Arc<Call>) -> RunId {
    Arc::as_ptr(call).addr()
}
