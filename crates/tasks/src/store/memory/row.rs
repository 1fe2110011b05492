//! One task in memory, and all its state transitions.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, btree_map::Entry as MapEntry},
    sync::Arc,
    time::Duration,
};

use outlive_wire::RawJson;

use super::input_row::InputRow;
use crate::{
    JournalSnapshot, SegmentRecord,
    store::{
        CancelOutcome, Changes, CleanupState, EndAudit, IdempotencyKey, Lease, NewTask, PageLimit,
        Phase, RecordedEntry, StoredSegments, Subscription, TaskEvent, TaskId, TaskOutcome,
        TaskRecord, Transition, UnixMillis, WorkerId, budget, lifetime::Lifetime,
    },
    time::millis,
};

pub(super) struct Row {
    pub(super) principal: String,
    pub(super) kind: String,
    pub(super) origin: String,
    pub(super) listed: bool,
    pub(super) acknowledged: bool,
    pub(super) request: RawJson,
    pub(super) phase: Phase,
    pub(super) outcome: Option<TaskOutcome>,
    /// Outcome of a quarantined task if no operator retries it.
    pub(super) kept: Option<TaskOutcome>,
    pub(super) created: UnixMillis,
    pub(super) updated: UnixMillis,
    pub(super) lifetime: Lifetime,
    /// Current TTL, in milliseconds from the creation.
    pub(super) ttl: Option<u64>,
    /// When the ended task may be deleted.
    pub(super) purge: Option<UnixMillis>,
    pub(super) message: Option<String>,
    pub(super) progress: Option<RawJson>,
    pub(super) clean_up: bool,
    pub(super) cancel_requested: Option<UnixMillis>,
    pub(super) owner: Option<WorkerId>,
    pub(super) epoch: u64,
    /// When a worker must claim the task; `None` if it is parked without a timer, or ended without
    /// a pending cleanup.
    pub(super) due: Option<UnixMillis>,
    pub(super) begun: bool,
    pub(super) crashes: u32,
    pub(super) journal: JournalSnapshot,
    /// Scope and ordinal of each segment, to detect repeated writes.
    pub(super) emitted: HashSet<(String, u32)>,
    pub(super) input_requests: Vec<InputRow>,
    /// Parts of the result, by body and number.
    pub(super) result_parts: BTreeMap<(u32, u32), Arc<[u8]>>,
    /// Bytes of the task in the count of its principal.
    pub(super) bytes: usize,
    /// Idempotency key of the task.
    pub(super) once: Option<IdempotencyKey>,
    pub(super) person: Option<String>,
    /// Whether lists by tool, person and tag contain the task.
    pub(super) indexed: bool,
    pub(super) rerun_of: Option<TaskId>,
    pub(super) tags: BTreeSet<String>,
    /// Times of the journal entries of an indexed task, by key.
    pub(super) times: BTreeMap<String, EntryTime>,
    pub(super) notify: Vec<Subscription>,
    pub(super) end_audit: Option<EndAudit>,
    /// Events of the current change, which become deliveries with it.
    pub(super) events: Vec<Event>,
}

/// Time and duration of a journal entry.
#[derive(Clone, Copy)]
pub(super) struct EntryTime {
    pub(super) recorded_at: UnixMillis,
    pub(super) duration: Option<Duration>,
}

/// An event that targets are notified of.
pub(super) struct Event {
    pub(super) event: TaskEvent,
    /// Wire key of the input request; `None` for an event of the task itself.
    pub(super) input_request: Option<String>,
    pub(super) at: UnixMillis,
}

impl Row {
    /// Creates the row of a new task that counts `bytes`.
    pub(super) fn new(task: NewTask, now: UnixMillis, bytes: usize) -> Self {
        let (phase, due) = first_phase(&task, now);
        let is_leased = phase == Phase::Running;
        let tags = budget::stored_tags(&task).into_iter().map(str::to_owned).collect();
        let mut row = Self {
            principal: task.principal,
            kind: task.tool,
            origin: task.origin,
            listed: task.listed,
            acknowledged: task.bridge.is_none(),
            request: task.request,
            phase,
            outcome: None,
            kept: None,
            created: now,
            updated: now,
            lifetime: Lifetime { ttl: task.ttl.map(millis), max: millis(task.max_ttl) },
            ttl: task.ttl.map(millis),
            purge: None,
            message: task.status_message,
            progress: None,
            clean_up: task.clean_up,
            cancel_requested: None,
            owner: task.worker.map(|(worker, _)| worker),
            epoch: u64::from(is_leased),
            due,
            begun: is_leased,
            crashes: 0,
            emitted: task.journal.segments.iter().map(SegmentRecord::place).collect(),
            journal: task.journal,
            input_requests: Vec::new(),
            result_parts: BTreeMap::new(),
            bytes: 0,
            once: task.idempotency,
            person: task.person,
            indexed: task.indexed,
            rerun_of: task.rerun_of,
            tags,
            times: BTreeMap::new(),
            notify: task.notify,
            end_audit: task.end_audit,
            events: Vec::new(),
        };
        for asked in task.input_requests {
            row.ask(asked, now);
        }
        row.settle(0, now);
        row.bytes = bytes;
        row
    }

    pub(super) fn is_held_by(&self, lease: &Lease) -> bool {
        self.phase == Phase::Running && self.is_of(lease)
    }

    /// Returns whether a cleanup is pending and the holder of this lease may record its state.
    pub(super) fn is_owed(&self, lease: &Lease, now: CleanupState) -> bool {
        let is_claimed = self.is_of(lease);
        // No worker has claimed the cleanup since the run.
        let has_run = self.epoch == lease.epoch && self.owner.is_none() && self.due.is_some();
        self.phase == Phase::Ended && (is_claimed || has_run && now == CleanupState::Due)
    }

    fn is_of(&self, lease: &Lease) -> bool {
        self.epoch == lease.epoch && self.owner.as_ref() == Some(&lease.worker)
    }

    /// Sets the time of the last change, which grows with every change.
    pub(super) fn touch(&mut self, now: UnixMillis) {
        self.updated = now.max(self.updated + 1);
    }

    /// Adds an event for the targets that subscribe to it.
    pub(super) fn emit(&mut self, event: TaskEvent, input_request: Option<String>, at: UnixMillis) {
        if self.notify.iter().any(|subscription| subscription.event == event) {
            self.events.push(Event { event, input_request, at });
        }
    }

    /// Records a journal entry. Returns `false` if its key has an entry.
    pub(super) fn record(&mut self, new: RecordedEntry, now: UnixMillis) -> bool {
        let RecordedEntry { key, entry, duration } = new;
        let MapEntry::Vacant(free) = self.journal.entries.entry(key) else { return false };
        self.bytes += budget::journal_entry(free.key(), &entry);
        if self.indexed {
            self.times.insert(free.key().clone(), EntryTime { recorded_at: now, duration });
        }
        free.insert(entry);
        true
    }

    pub(super) fn apply(&mut self, changes: Changes, now: UnixMillis) {
        let open = self.count_open();
        for key in &changes.invalidated {
            if let Some(entry) = self.journal.entries.remove(key) {
                self.bytes -= budget::journal_entry(key, &entry);
                self.times.remove(key);
            }
        }
        for entry in changes.entries {
            if self.record(entry, now) {
                self.crashes = 0;
            }
        }
        for segment in changes.segments {
            if self.emitted.insert((segment.scope.clone(), segment.ordinal)) {
                self.bytes += budget::segment(&segment);
                self.journal.segments.push(segment);
            }
        }
        for asked in changes.input_requests {
            self.ask(asked, now);
        }
        self.withdraw(|asked| changes.withdrawn.contains(&asked.name), now);
        let tags: Vec<String> = self.added_tags(&changes.tags).map(str::to_owned).collect();
        self.bytes += budget::tags(tags.iter().map(String::as_str));
        self.tags.extend(tags);
        self.bytes += budget::result_parts(&changes.result_parts);
        let parts = changes.result_parts.into_iter();
        self.result_parts.extend(parts.map(|part| ((part.block, part.number), part.body)));
        if let Some(message) = changes.status_message {
            self.message = Some(message);
        }
        if let Some(progress) = changes.progress {
            self.progress = Some(progress);
        }
        self.settle(open, now);
        self.touch(now);
    }

    /// Returns those of these tags that the task does not have, up to the maximum.
    fn added_tags<'a>(&self, tags: &'a [String]) -> impl Iterator<Item = &'a str> + use<'a> {
        let known: Vec<String> = self.tags.iter().cloned().collect();
        let tags = if self.indexed { tags } else { &[] };
        budget::added_tags(&known, tags).into_iter()
    }

    /// Returns the number of bytes that a write adds; zero if it frees bytes.
    pub(super) fn growth(&self, changes: &Changes, then: &Transition) -> usize {
        let is_forgotten = |key: &String| changes.invalidated.contains(key);
        let entries = &self.journal.entries;
        let freed = entries.iter().filter(|(key, _)| is_forgotten(key));
        let freed: usize = freed.map(|(key, entry)| budget::journal_entry(key, entry)).sum();
        let is_new = |key| !entries.contains_key(key) || is_forgotten(key);
        let recorded = changes.entries.iter().filter(|new| is_new(&new.key));
        let recorded = recorded.map(|new| budget::journal_entry(&new.key, &new.entry));
        let emitted = changes.segments.iter().filter(|one| !self.emitted.contains(&one.place()));
        let asked = self.growth_of_requests(changes);
        let outcome = match then {
            Transition::End { outcome, .. } => budget::outcome_need(budget::outcome_bytes(outcome)),
            _ => 0,
        };
        let stored = recorded.chain(emitted.map(budget::segment)).chain(asked).sum::<usize>();
        let parts = budget::result_parts(&changes.result_parts);
        let tags = budget::tags(self.added_tags(&changes.tags));
        (stored + parts + tags + outcome).saturating_sub(freed)
    }

    pub(super) fn park(&mut self, due: Option<UnixMillis>, seen: usize, now: UnixMillis) {
        self.owner = None;
        // Responses and cancellations that arrived during this commit would not wake a parked task.
        let unseen = self.answers().count() > seen || self.cancel_requested.is_some();
        (self.phase, self.due) = match unseen {
            true => (Phase::Queued, Some(now)),
            false => (Phase::Parked, due),
        };
    }

    pub(super) fn keep(&mut self, outcome: TaskOutcome, hold: Duration, now: UnixMillis) {
        self.owner = None;
        if self.cancel_requested.is_some() {
            (self.phase, self.due) = (Phase::Queued, Some(now));
            return;
        }
        (self.phase, self.due, self.kept) = (Phase::Quarantined, None, Some(outcome));
        self.emit(TaskEvent::TaskQuarantined, None, now);
        let held = now.saturating_sub(self.created).saturating_add(millis(hold));
        self.ttl = self.ttl.map(|ttl| ttl.max(held));
    }

    /// Queues a quarantined task and restarts its TTL.
    pub(super) fn retry(&mut self, now: UnixMillis) {
        let elapsed = now.saturating_sub(self.created);
        (self.phase, self.due, self.kept) = (Phase::Queued, Some(now), None);
        (self.crashes, self.message) = (0, None);
        self.lifetime.max = self.lifetime.max.saturating_add(elapsed);
        let asks = self.count_open() > 0;
        self.ttl = self.lifetime.ttl.map(|ttl| match asks {
            true => ttl.max(self.lifetime.max),
            false => ttl.saturating_add(elapsed),
        });
        self.touch(now);
    }

    /// Returns when an open task expires, or when an ended task without a pending cleanup is
    /// deleted.
    pub(super) fn over(&self) -> Option<UnixMillis> {
        match self.phase {
            Phase::Ended => self.purge.filter(|_| self.due.is_none()),
            _ => self.ttl.map(|ttl| self.created.saturating_add(ttl)),
        }
    }

    pub(super) fn end(&mut self, outcome: TaskOutcome, retention: Duration, now: UnixMillis) {
        let open = self.count_open();
        if self.clean_up && self.begun && outcome.needs_cleanup() {
            // The cleanup waits until the run is gone, at the latest until the lease expires.
            let due = if self.phase == Phase::Running { self.due } else { None };
            (self.due, self.crashes) = (due.or(Some(now)), 0);
        } else {
            self.due = None;
        }
        self.owner = None;
        self.phase = Phase::Ended;
        self.bytes += budget::outcome_bytes(&outcome);
        self.outcome = Some(outcome);
        self.withdraw(|_| true, now);
        self.emit(TaskEvent::TaskEnded, None, now);
        self.settle(open, now);
        self.kept = None;
        // A task that ends late stays readable for its retention.
        let kept = now.saturating_add(millis(retention));
        self.ttl = self.ttl.map(|ttl| ttl.max(kept.saturating_sub(self.created)));
        self.purge = self.ttl.map(|ttl| self.created.saturating_add(ttl));
        self.touch(now);
    }

    /// Cancels a task that has not ended. If a worker has the task, only requests that it stops,
    /// unless `at_once` is set.
    pub(super) fn cancel(
        &mut self,
        at_once: bool,
        retention: Duration,
        now: UnixMillis,
    ) -> CancelOutcome {
        self.cancel_requested.get_or_insert(now);
        if self.phase == Phase::Running && !at_once {
            self.touch(now);
            return CancelOutcome::Requested;
        }
        self.end(TaskOutcome::Cancelled, retention, now);
        CancelOutcome::Cancelled
    }

    /// Shortens the retention of an ended task.
    pub(super) fn limit_retention(&mut self, retention: Duration, now: UnixMillis) {
        let until = now.saturating_add(millis(retention));
        if self.phase == Phase::Ended && self.purge.is_none_or(|purge| purge > until) {
            self.purge = Some(until);
            self.ttl = Some(until.saturating_sub(self.created));
        }
    }

    /// Returns whether the run has a result, or may have one.
    pub(super) fn is_joinable(&self) -> bool {
        self.cancel_requested.is_none()
            && !self.outcome.as_ref().is_some_and(TaskOutcome::needs_cleanup)
    }

    /// Returns whether the task has ended and its cleanup is not pending.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Ended && self.due.is_none()
    }

    /// Returns the journal that a run replays.
    pub(super) fn journal(&self) -> JournalSnapshot {
        let mut reasked: BTreeMap<String, u32> = BTreeMap::new();
        for input in &self.input_requests {
            *reasked.entry(input.asked.key.clone()).or_default() += 1;
        }
        // The first issue is not counted as a reissue, except for requests made before promotion.
        reasked.retain(|_, times| {
            *times -= 1;
            *times > 0
        });
        for (key, times) in &self.journal.reasked {
            *reasked.entry(key.clone()).or_default() += times;
        }
        JournalSnapshot {
            input_requests: self.open().map(|input| input.asked.key.clone()).collect(),
            reasked,
            ..self.journal.clone()
        }
    }

    /// Returns the segments after a sequence number.
    pub(super) fn segments(&self, after: u64, limit: PageLimit) -> StoredSegments {
        let all = &self.journal.segments;
        let after = usize::try_from(after).unwrap_or(usize::MAX).min(all.len());
        let mut blocks = Vec::new();
        let mut bytes = 0;
        for segment in all[after..].iter().take(limit.segments) {
            if bytes > 0 && bytes >= limit.bytes {
                break;
            }
            bytes += segment.block.get().len();
            blocks.push(segment.block.clone());
        }
        let asks = self.open().any(|input| !input.asked.audience.is_people());
        let ended = self.phase == Phase::Ended;
        StoredSegments { blocks, last: all.len() as u64, ended, input_required: asks }
    }

    pub(super) fn view(&self, id: &TaskId) -> TaskRecord {
        TaskRecord {
            id: id.clone(),
            tool: self.kind.clone(),
            origin: self.origin.clone(),
            phase: self.phase,
            outcome: self.outcome.clone(),
            created_at: self.created,
            updated_at: self.updated,
            ttl: self.ttl,
            status_message: self.message.clone(),
            progress: self.progress.clone(),
            input_requests: self.input_requests.iter().filter_map(InputRow::open).collect(),
            cancel_requested: self.cancel_requested,
            acknowledged: self.acknowledged,
        }
    }
}

/// Returns the phase of a new task, and when a worker must claim it.
fn first_phase(task: &NewTask, now: UnixMillis) -> (Phase, Option<UnixMillis>) {
    match &task.worker {
        Some((_, lease)) => (Phase::Running, Some(now.saturating_add(millis(*lease)))),
        None if task.input_requests.is_empty() => (Phase::Queued, Some(now)),
        None => (Phase::Parked, task.input_requests.iter().filter_map(|asked| asked.due).min()),
    }
}
