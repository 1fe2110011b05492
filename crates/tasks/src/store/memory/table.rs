//! All tasks in memory, with their indexes. Only operations of operators scan all tasks.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
};

use super::{
    audit_events::AuditEvents, calls::Calls, deliveries::Deliveries, input_row::InputRow, row::Row,
};
use crate::store::{
    Changes, Claim, CreateOutcome, IdempotencyKey, Lease, ListCursor, Phase, TaskId, Transition,
    UnixMillis, WorkerId, claim::Taken,
};

/// Tasks and their indexes. Rows are changed only by [`Tasks::change`], which updates the indexes.
#[derive(Default)]
pub(super) struct Tasks {
    rows: HashMap<TaskId, Row>,
    by_key: HashMap<(String, String), (IdempotencyKey, TaskId)>,
    /// Tasks by the time when a worker must claim them.
    due: BTreeSet<(UnixMillis, TaskId)>,
    /// Tasks by the time of their expiry or deletion.
    over: BTreeSet<(UnixMillis, TaskId)>,
    owned: BTreeSet<(WorkerId, TaskId)>,
    /// Listed tasks, by principal and dialect.
    listed: HashMap<(String, String), BTreeSet<(UnixMillis, TaskId)>>,
    /// Number of open tasks per principal.
    open: HashMap<String, usize>,
    /// Stored bytes per principal.
    bytes: HashMap<String, usize>,
    phases: HashMap<Phase, u64>,
    /// Indexed tasks by the time of their creation.
    indexed: BTreeSet<(UnixMillis, TaskId)>,
    /// Tasks with an open input request.
    asking: BTreeSet<TaskId>,
    /// Tasks with a vote.
    voted: BTreeSet<TaskId>,
    /// Tasks with an answered approval request, by denial key.
    settled: BTreeSet<(String, TaskId)>,
    /// Bridged calls.
    pub(super) calls: Calls,
    pub(super) deliveries: Deliveries,
    pub(super) audit_events: AuditEvents,
}

/// Index keys of a row that can change.
#[derive(PartialEq, Eq)]
struct Place {
    due: Option<UnixMillis>,
    over: Option<UnixMillis>,
    owner: Option<WorkerId>,
    phase: Phase,
    bytes: usize,
    asks: bool,
    has_votes: bool,
    /// Denial keys of answered approval requests.
    settled: BTreeSet<String>,
}

impl Place {
    fn of(row: &Row) -> Self {
        Self {
            due: row.due,
            over: row.over(),
            owner: row.owner.clone(),
            phase: row.phase,
            bytes: row.bytes,
            asks: row.requires_input(),
            has_votes: row.input_requests.iter().any(|input| !input.votes.is_empty()),
            settled: row
                .input_requests
                .iter()
                .filter_map(InputRow::denial)
                .map(str::to_owned)
                .collect(),
        }
    }
}

impl Tasks {
    pub(super) fn get(&self, id: &TaskId) -> Option<&Row> {
        self.rows.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&TaskId, &Row)> {
        self.rows.iter()
    }

    /// Returns the task that was created under an idempotency key.
    pub(super) fn made(&self, principal: &str, once: &IdempotencyKey) -> Option<CreateOutcome> {
        let (known, id) = self.by_key.get(&(principal.to_owned(), once.key.clone()))?;
        Some(match known == once {
            true => CreateOutcome::Existing(id.clone()),
            false => CreateOutcome::KeyConflict,
        })
    }

    pub(super) fn insert(&mut self, id: TaskId, mut row: Row) {
        self.deliveries.add(&id, &mut row);
        if row.indexed {
            self.indexed.insert((row.created, id.clone()));
        }
        if let Some(once) = &row.once {
            let key = (row.principal.clone(), once.key.clone());
            self.by_key.insert(key, (once.clone(), id.clone()));
        }
        if row.listed {
            let key = (row.principal.clone(), row.origin.clone());
            let listed = self.listed.entry(key).or_default();
            listed.insert((row.created, id.clone()));
        }
        self.enter(&id, &Place::of(&row), &row.principal);
        self.rows.insert(id, row);
    }

    /// Changes a row and its index entries.
    pub(super) fn change<T>(
        &mut self,
        id: &TaskId,
        change: impl FnOnce(&mut Row) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(id)?;
        let before = Place::of(row);
        let changed = change(row);
        self.deliveries.add(id, row);
        let after = Place::of(row);
        if before.phase != Phase::Ended && after.phase == Phase::Ended {
            self.audit_events.end(row);
        }
        if before != after {
            let principal = row.principal.clone();
            self.leave(id, before, &principal);
            self.enter(id, &after, &principal);
        }
        Some(changed)
    }

    /// Deletes tasks.
    pub(super) fn forget<'a>(&mut self, ids: impl IntoIterator<Item = &'a TaskId>) {
        for id in ids {
            let Some(row) = self.rows.remove(id) else { continue };
            self.calls.remove(id);
            self.indexed.remove(&(row.created, id.clone()));
            self.leave(id, Place::of(&row), &row.principal);
            let key = (row.principal.clone(), row.origin.clone());
            if let Some(listed) = self.listed.get_mut(&key) {
                listed.remove(&(row.created, id.clone()));
                if listed.is_empty() {
                    self.listed.remove(&key);
                }
            }
            if let Some(once) = row.once {
                self.by_key.remove(&(row.principal, once.key));
            }
        }
    }

    /// Returns the tasks that a claim takes: the wanted ones, then the due ones, oldest first.
    pub(super) fn due_by(&self, now: UnixMillis, claim: &Claim) -> Vec<TaskId> {
        let mut taken = Taken::new(claim);
        let waits =
            |row: &Row| row.owner.is_none() && matches!(row.phase, Phase::Queued | Phase::Parked);
        let wanted = claim.wanted.iter().filter(|id| self.rows.get(*id).is_some_and(waits));
        let due = self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| id);
        let has_room = |id: &&TaskId| {
            !claim.wanted.contains(*id)
                && self.rows.get(*id).is_some_and(|row| taken.take(&row.principal))
        };
        wanted.chain(due.filter(has_room).take(claim.limit)).cloned().collect()
    }

    pub(super) fn next_due(&self, except: &[String]) -> Option<UnixMillis> {
        let counts = |(_, id): &&(UnixMillis, TaskId)| {
            except.is_empty()
                || self.rows.get(id).is_some_and(|row| !except.contains(&row.principal))
        };
        self.due.iter().find(counts).map(|(due, _)| *due)
    }

    /// Returns the tasks that are due for expiry or deletion, oldest first.
    pub(super) fn over_by(&self, now: UnixMillis) -> impl Iterator<Item = (&TaskId, &Row)> {
        let over = self.over.iter().take_while(move |(over, _)| *over <= now);
        over.filter_map(|(_, id)| Some((id, self.rows.get(id)?)))
    }

    /// Returns the tasks that a worker has a lease on.
    pub(super) fn owned_by(&self, worker: &WorkerId) -> Vec<TaskId> {
        let from = (worker.clone(), TaskId::new(""));
        let owned = self.owned.range(from..).take_while(|(owner, _)| owner == worker);
        owned.map(|(_, id)| id.clone()).collect()
    }

    /// Returns the listed tasks of a principal and dialect, oldest first.
    pub(super) fn listed(
        &self,
        principal: &str,
        origin: &str,
        after: Option<&ListCursor>,
    ) -> impl Iterator<Item = (&TaskId, &Row)> {
        let from = match after {
            Some(after) => Bound::Excluded((after.created, after.id.clone())),
            None => Bound::Unbounded,
        };
        let key = (principal.to_owned(), origin.to_owned());
        let listed = self.listed.get(&key).map(|all| all.range((from, Bound::Unbounded)));
        let listed = listed.into_iter().flatten();
        listed.filter_map(|(_, id)| Some((id, self.rows.get(id)?)))
    }

    /// Returns the indexed tasks that were created before a time and a cursor, newest first.
    pub(super) fn newest(
        &self,
        until: Option<UnixMillis>,
        after: Option<&ListCursor>,
    ) -> impl Iterator<Item = (&TaskId, &Row)> {
        let until = until.map(|until| (until, TaskId::new("")));
        let after = after.map(|after| (after.created, after.id.clone()));
        let before = until.into_iter().chain(after).min();
        let before = before.map_or(Bound::Unbounded, Bound::Excluded);
        let newest = self.indexed.range((Bound::Unbounded, before)).rev();
        newest.filter_map(|(_, id)| Some((id, self.rows.get(id)?)))
    }

    /// Returns the tasks with an open input request.
    pub(super) fn asking(&self) -> impl Iterator<Item = (&TaskId, &Row)> {
        self.asking.iter().filter_map(|id| Some((id, self.rows.get(id)?)))
    }

    /// Returns the tasks with an answered approval request with a denial key.
    pub(super) fn settled(&self, denial: &str) -> impl Iterator<Item = &Row> {
        let from = (denial.to_owned(), TaskId::new(""));
        let settled = self.settled.range(from..).take_while(move |(key, _)| key == denial);
        settled.filter_map(|(_, id)| self.rows.get(id))
    }

    /// Returns the tasks with a vote.
    pub(super) fn voted(&self) -> impl Iterator<Item = (&TaskId, &Row)> {
        self.voted.iter().filter_map(|id| Some((id, self.rows.get(id)?)))
    }

    /// Returns the number of open tasks of a principal.
    pub(super) fn open(&self, principal: &str) -> usize {
        self.open.get(principal).copied().unwrap_or(0)
    }

    /// Returns the stored bytes of a principal.
    pub(super) fn bytes(&self, principal: &str) -> usize {
        self.bytes.get(principal).copied().unwrap_or(0)
    }

    /// Returns whether a write fits into the byte limit of the task's principal.
    pub(super) fn has_room(&self, lease: &Lease, changes: &Changes, then: &Transition) -> bool {
        let (Some(charge), Some(row)) = (&changes.charge, self.get(&lease.task)) else {
            return true;
        };
        self.has_room_for(row.growth(changes, then), &row.principal, charge.max_bytes)
    }

    /// Returns whether a principal may store `growth` more bytes.
    pub(super) fn has_room_for(&self, growth: usize, principal: &str, max_bytes: u64) -> bool {
        growth == 0 || (self.bytes(principal) + growth) as u64 <= max_bytes
    }

    /// Returns the stored bytes of all principals.
    pub(super) fn all_bytes(&self) -> usize {
        self.bytes.values().sum()
    }

    /// Adds to the stored bytes of a principal.
    pub(super) fn charge(&mut self, principal: &str, bytes: usize) {
        *self.bytes.entry(principal.to_owned()).or_default() += bytes;
    }

    /// Subtracts from the stored bytes of a principal.
    pub(super) fn discharge(&mut self, principal: &str, bytes: usize) {
        if let Some(stored) = self.bytes.get_mut(principal) {
            *stored = stored.saturating_sub(bytes);
            if *stored == 0 {
                self.bytes.remove(principal);
            }
        }
    }

    pub(super) fn count(&self, phase: Phase) -> u64 {
        self.phases.get(&phase).copied().unwrap_or(0)
    }

    fn enter(&mut self, id: &TaskId, place: &Place, principal: &str) {
        self.due.extend(place.due.map(|due| (due, id.clone())));
        self.over.extend(place.over.map(|over| (over, id.clone())));
        self.owned.extend(place.owner.clone().map(|owner| (owner, id.clone())));
        self.asking.extend(place.asks.then(|| id.clone()));
        self.voted.extend(place.has_votes.then(|| id.clone()));
        self.settled.extend(place.settled.iter().map(|key| (key.clone(), id.clone())));
        *self.phases.entry(place.phase).or_default() += 1;
        self.charge(principal, place.bytes);
        if place.phase != Phase::Ended {
            *self.open.entry(principal.to_owned()).or_default() += 1;
        }
    }

    fn leave(&mut self, id: &TaskId, place: Place, principal: &str) {
        if let Some(due) = place.due {
            self.due.remove(&(due, id.clone()));
        }
        if let Some(over) = place.over {
            self.over.remove(&(over, id.clone()));
        }
        if let Some(owner) = place.owner {
            self.owned.remove(&(owner, id.clone()));
        }
        if place.asks {
            self.asking.remove(id);
        }
        if place.has_votes {
            self.voted.remove(id);
        }
        for key in place.settled {
            self.settled.remove(&(key, id.clone()));
        }
        if let Some(count) = self.phases.get_mut(&place.phase) {
            *count -= 1;
        }
        self.discharge(principal, place.bytes);
        if place.phase != Phase::Ended
            && let Some(open) = self.open.get_mut(principal)
        {
            *open -= 1;
            if *open == 0 {
                self.open.remove(principal);
            }
        }
    }
}
