//! The state of one run: its journal, its placement, and its round.
//!
//! `exec/execute.rs` creates it for calls that may need it, `dispatch/resume.rs` for tasks. The
//! context of the handler owns it. A call without a journal has none.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use outlive_protocol::{Call, MethodResult, Outcome};
use outlive_tasks::{Journal, JournalEntry, JournalLimits, JournalSnapshot, RunId, store::TaskId};
use outlive_wire::{ContentBlock, InputRequest};
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};

use crate::{
    hex::hex,
    server::{
        env::{environment::Env, test_hooks::TestHooks},
        run::{
            bridged::BridgedCall,
            limits,
            placement::{CleanupReason, Placement, PlacementCell, Promotable},
            replay_policy::{ForeignEntries, ReplayPolicy, migrated},
        },
    },
};

/// Journal key of the call ID in a task. Keys of authors never have this prefix.
const CALL: &str = "#call";

/// State of a call: its journal, placement and rounds.
pub(crate) struct RunState {
    /// Created on first use, because most handlers need no journal.
    journal: OnceLock<Arc<Journal>>,
    /// Limits for a journal that is not created yet.
    limits: JournalLimits,
    test_hooks: Option<Arc<TestHooks>>,
    placement: PlacementCell,
    /// Whether the call is promoted before its first step.
    promotes_at_step: AtomicBool,
    /// Whether the engine cancelled the task. A disconnect of the client does not cancel a task.
    task_cancelled: AtomicBool,
    /// Whether the tool has changed since people approved the call.
    is_approval_stale: AtomicBool,
    /// Reason why a task cannot continue: an entry of its journal does not decode.
    incompatible: OnceLock<String>,
    /// Entries of other handler revisions. Boxed, because most journals have none.
    foreign: OnceLock<Box<ForeignEntries>>,
    /// Random ID of the call, for idempotency keys and logs. Created on first use, and the same in
    /// all rounds.
    call_id: OnceLock<String>,
    /// Number of rounds before this one.
    rounds: AtomicU32,
    /// Identity of the call if its client has no tasks and the server bridges it. Boxed, because
    /// most calls are not bridged.
    bridged: OnceLock<Box<BridgedCall>>,
    /// Data of earlier rounds; `None` in the first. Boxed, because most calls have one round.
    earlier: Option<Box<EarlierRounds>>,
    /// Records entries before the promotion. A std mutex: no code awaits while it is held.
    promotion_hook: Mutex<Option<PromotionHook>>,
}

/// Function that records entries immediately before a promotion.
pub(crate) type PromotionHook = Arc<dyn Fn(&Journal) + Send + Sync>;

/// Data of the rounds before this one.
struct EarlierRounds {
    /// ID of the presented request state.
    id: Option<String>,
    has_effects: bool,
    yields: u32,
    /// The offloaded journal, until it is read.
    offloaded: Mutex<Option<Offloaded>>,
    /// Whether the journal was offloaded in an earlier round. It is offloaded again then.
    was_offloaded: AtomicBool,
}

/// Data of earlier rounds from a request state.
pub(crate) struct Round {
    /// ID of the request state; `None` in the first round.
    pub(crate) id: Option<String>,
    /// Whether earlier rounds had effects, or the request state may be used only once.
    pub(crate) has_effects: bool,
    /// Number of times the call yielded to another replica.
    pub(crate) yields: u32,
    /// Number of rounds before this one.
    pub(crate) number: u32,
    pub(crate) call_id: Option<String>,
    pub(crate) offloaded: Option<Offloaded>,
    /// Entries of other handler revisions.
    pub(crate) foreign: ForeignEntries,
}

/// A journal in the store, and the policy to migrate it.
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
        run.set_foreign(round.foreign);
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
            is_approval_stale: AtomicBool::new(false),
            incompatible: OnceLock::new(),
            foreign: OnceLock::new(),
            call_id: OnceLock::new(),
            rounds: AtomicU32::new(0),
            bridged: OnceLock::new(),
            earlier: None,
            promotion_hook: Mutex::default(),
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
        let (mark, foreign) = replay.resume(&mut journal);
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
        run.set_foreign(foreign);
        run
    }

    /// Records which entries other handler revisions recorded.
    fn set_foreign(&self, foreign: ForeignEntries) {
        if !foreign.is_empty() {
            // An offloaded journal has all entries of its call, so there is one set.
            let _: Result<(), Box<ForeignEntries>> = self.foreign.set(Box::new(foreign));
        }
    }

    /// Returns the label of the other handler revision that recorded an entry.
    pub(crate) fn foreign_revision(&self, key: &str) -> Option<&str> {
        self.foreign.get()?.get(key).map(|revision| &**revision)
    }

    /// Allows the promotion of the call to a task, before its first step if `at_step`.
    pub(crate) fn allow_promotion(&self, at_step: bool) {
        self.placement.set(Placement::Inline(Promotable::Yes));
        self.promotes_at_step.store(at_step, Ordering::Relaxed);
    }

    /// Marks the approval of the call as one of an earlier definition of the tool.
    pub(crate) fn set_stale_approval(&self) {
        self.is_approval_stale.store(true, Ordering::Relaxed);
    }

    /// Returns whether the tool has changed since people approved the call.
    pub(crate) fn is_approval_stale(&self) -> bool {
        self.is_approval_stale.load(Ordering::Relaxed)
    }

    /// Marks the call as bridged.
    pub(crate) fn set_bridged(&self, bridged: BridgedCall) {
        // The call has one identity, so a second one is the same.
        let _: Result<(), Box<BridgedCall>> = self.bridged.set(Box::new(bridged));
    }

    /// Returns the identity of a bridged call, or `None` if the call is not bridged.
    pub(crate) fn bridged(&self) -> Option<&BridgedCall> {
        self.bridged.get().map(|bridged| &**bridged)
    }

    /// Returns whether an input request that the client cannot receive stays open until a person
    /// answers it elsewhere. Promotes the call to a task for that.
    pub(crate) fn takes_input_elsewhere(&self, request: &InputRequest) -> bool {
        matches!(request, InputRequest::Elicit(_))
            && self.bridged().is_some()
            && (self.is_task() || self.request_promotion())
    }

    fn put_journal(&self, journal: Journal) {
        // The run is new, so the cell is empty.
        let _: Result<(), Arc<Journal>> = self.journal.set(Arc::new(journal));
    }

    /// Returns the journal. Creates it on first use.
    pub(crate) fn journal(&self) -> &Arc<Journal> {
        self.journal.get_or_init(|| {
            let journal = Journal::new(self.limits);
            if let Some(hooks) = &self.test_hooks {
                hooks.begin(&journal);
            }
            Arc::new(journal)
        })
    }

    /// Installs test hooks on a journal of an earlier round.
    fn hook(&self) {
        if let Some(hooks) = &self.test_hooks {
            hooks.begin(self.journal());
        }
    }

    /// Returns the journal, if the run has used it.
    pub(crate) fn used_journal(&self) -> Option<&Arc<Journal>> {
        self.journal.get()
    }

    /// Returns whether the call is a task.
    pub(crate) fn is_task(&self) -> bool {
        self.placement.is_task()
    }

    /// Returns the ID of the call's task.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        self.placement.task_id()
    }

    /// Returns the reason for the cleanup, if the run is one.
    pub(crate) fn cleanup_reason(&self) -> Option<CleanupReason> {
        self.placement.cleanup_reason()
    }

    /// Sets the function that records entries immediately before the promotion.
    pub(crate) fn set_promotion_hook(&self, hook: Option<PromotionHook>) {
        *self.lock_promotion_hook() = hook;
    }

    /// Records the entries with which the task of the call is created.
    pub(crate) fn prepare_promotion(&self) {
        // Not called under the lock: the hook is code of the handler.
        let hook = self.lock_promotion_hook().clone();
        if let Some(hook) = hook {
            hook(self.journal());
        }
    }

    fn lock_promotion_hook(&self) -> MutexGuard<'_, Option<PromotionHook>> {
        self.promotion_hook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the placement to a task.
    pub(crate) fn promote(&self, env: &Env, id: TaskId) {
        self.journal().set_limits(limits::task(env));
        self.placement.set(Placement::Task { id });
    }

    /// Changes the placement back to inline after a failed promotion.
    pub(crate) fn stay_inline(&self, env: &Env, call: &Call) {
        if let (true, Some(journal)) = (self.is_task(), self.used_journal()) {
            journal.set_limits(limits::inline(env, call));
            journal.stop_writing();
        }
        self.placement.set(Placement::Inline(Promotable::No));
    }

    /// Returns whether the call can be promoted to a task.
    pub(crate) fn is_promotable(&self) -> bool {
        self.placement.promotable().is_some_and(|promotable| promotable != Promotable::No)
    }

    /// Returns whether the handler waits for the promotion.
    pub(crate) fn is_promotion_requested(&self) -> bool {
        self.placement.promotable() == Some(Promotable::Requested)
    }

    /// Requests the promotion of the call. Returns whether the call can be promoted.
    pub(crate) fn request_promotion(&self) -> bool {
        self.placement.request_promotion()
    }

    /// Waits until the call is a task, and requests its promotion. Returns `false` if the call cannot
    /// become a task.
    pub(crate) fn poll_task(&self, task: &mut Context<'_>) -> Poll<bool> {
        self.placement.poll_task(task)
    }

    /// Returns whether the call must be promoted before a step.
    pub(crate) fn promotes_at_step(&self) -> bool {
        self.promotes_at_step.load(Ordering::Relaxed) && !self.is_task()
    }

    /// Records that the engine cancelled the task.
    pub(crate) fn cancel_task(&self) {
        self.task_cancelled.store(true, Ordering::Release);
    }

    /// Returns whether the engine cancelled the task.
    pub(crate) fn is_task_cancelled(&self) -> bool {
        self.task_cancelled.load(Ordering::Acquire)
    }

    /// Quarantines a task whose journal is incompatible, and ends its run.
    pub(crate) fn quarantine(&self, reason: String) {
        self.journal().quarantine();
        // The first reason becomes the error of the task.
        let _: Result<(), String> = self.incompatible.set(reason);
    }

    /// Returns the reason why the run cannot continue.
    pub(crate) fn incompatible(&self) -> Option<&str> {
        self.incompatible.get().map(String::as_str)
    }

    /// Returns the journal for a new task. It includes the call ID, so that idempotency keys stay
    /// the same.
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

    /// Returns the idempotency key for a journal key. It is the same in every run of this call.
    pub(crate) fn idempotency_key(&self, env: &Env, key: &str) -> String {
        let hash = Sha256::new().chain_update(self.call_id(env)).chain_update(key).finalize();
        hex(&hash[..16])
    }

    /// Returns the ID of the presented request state.
    pub(crate) fn round_id(&self) -> Option<&str> {
        self.earlier.as_ref()?.id.as_deref()
    }

    /// Returns the ID of the request state if using it again would repeat effects.
    pub(crate) fn round_with_effects(&self) -> Option<&str> {
        self.earlier.as_ref().filter(|earlier| earlier.has_effects)?.id.as_deref()
    }

    /// Returns how many times the call yielded to another replica.
    pub(crate) fn yields(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.yields)
    }

    /// Returns the number of rounds before this one.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Counts a round of a legacy call, which is not a separate request.
    pub(crate) fn count_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the ID of the offloaded journal.
    pub(crate) fn offloaded(&self) -> Option<String> {
        let offloaded = self.earlier.as_ref()?.lock_offloaded();
        offloaded.as_ref().map(|offloaded| offloaded.place.clone())
    }

    /// Returns whether the journal was offloaded in an earlier round.
    pub(crate) fn was_offloaded(&self) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.was_offloaded.load(Ordering::Acquire))
    }

    /// Merges the offloaded journal.
    pub(crate) fn refill(&self, journal: JournalSnapshot) {
        let Some(earlier) = &self.earlier else { return };
        let offloaded = earlier.lock_offloaded().take();
        let Some(Offloaded { revision, replay, .. }) = offloaded else { return };
        earlier.was_offloaded.store(true, Ordering::Release);
        self.set_foreign(replay.foreign(&journal, revision.as_deref()));
        self.journal().merge(migrated(journal, revision.as_deref(), &replay));
    }

    /// Inserts the emitted segments before the returned content.
    pub(crate) fn merge_segments(&self, outcome: &mut Outcome) {
        let Some(journal) = self.used_journal() else { return };
        let segments = journal.segments();
        let emitted: Vec<ContentBlock> = segments
            .iter()
            .filter_map(|segment| serde_json::from_str(segment.block.get()).ok())
            .collect();
        if emitted.is_empty() {
            return;
        }
        let typed = std::mem::replace(outcome, Outcome::Complete(MethodResult::Empty)).typed();
        *outcome = typed;
        if let Outcome::Complete(MethodResult::Tool(result)) = outcome {
            result.content.splice(0..0, emitted);
        }
    }
}

impl EarlierRounds {
    fn lock_offloaded(&self) -> MutexGuard<'_, Option<Offloaded>> {
        self.offloaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an ID of the run that is unique while the call exists.
pub(crate) fn run_id(call: &Arc<Call>) -> RunId {
    Arc::as_ptr(call).addr()
}
