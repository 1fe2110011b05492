//! Bridged calls in memory, with their indexes.

use std::collections::{BTreeSet, HashMap};

use crate::store::{Attended, Bridge, TaskId, UnixMillis, WorkerId, attendance::Attendance};

/// Bridged calls and their indexes. Rows are changed only by [`Calls::change`], which updates the
/// indexes.
#[derive(Default)]
pub(super) struct Calls {
    rows: HashMap<TaskId, Call>,
    /// Undelivered calls, by principal and scope, in the order of their creation.
    open: HashMap<(String, String), BTreeSet<(u64, TaskId)>>,
    /// Calls by the time when they are abandoned.
    abandoned: BTreeSet<(UnixMillis, TaskId)>,
    /// Delivered calls, by principal.
    delivered: HashMap<String, BTreeSet<(UnixMillis, TaskId)>>,
    /// Number of the last created call.
    last: u64,
}

/// A bridged call. All workers are in this process, so an attended run has a live worker.
pub(super) struct Call {
    number: u64,
    principal: String,
    scope: Option<String>,
    fingerprint: String,
    created: UnixMillis,
    pub(super) attendance: Attendance,
    delivered: Option<UnixMillis>,
}

impl Call {
    /// Returns when an equal call can join the run; `None` if the call is another one, or a request
    /// waits.
    pub(super) fn joinable_at(&self, fingerprint: &str) -> Option<UnixMillis> {
        let Attendance { attended_by, joinable_at, .. } = &self.attendance;
        (self.fingerprint == fingerprint && attended_by.is_none()).then_some(*joinable_at)
    }

    pub(super) fn attend(&mut self, task: &TaskId, worker: &WorkerId) -> Attended {
        if self.delivered.is_none() {
            self.attendance.attend(worker);
        }
        Attended::new(task.clone(), self.created, self.attendance.pending_results)
    }

    pub(super) fn deliver(&mut self, now: UnixMillis) {
        self.delivered.get_or_insert(now);
        let Attendance { attended_by, attendants, abandon_at, .. } = &mut self.attendance;
        (*attended_by, *attendants, *abandon_at) = (None, 0, None);
    }
}

impl Calls {
    pub(super) fn insert(
        &mut self,
        task: &TaskId,
        principal: &str,
        bridge: Bridge,
        now: UnixMillis,
    ) {
        self.last += 1;
        let call = Call {
            number: self.last,
            principal: principal.to_owned(),
            scope: bridge.scope,
            fingerprint: bridge.fingerprint,
            created: now,
            attendance: Attendance::new(bridge.worker, bridge.abandon_timeout),
            delivered: None,
        };
        self.enter(task, &call);
        self.rows.insert(task.clone(), call);
    }

    pub(super) fn remove(&mut self, task: &TaskId) {
        if let Some(call) = self.rows.remove(task) {
            self.exit(task, &call);
        }
    }

    /// Changes a row and its index entries. Returns `None` if this principal has no such call.
    pub(super) fn change<T>(
        &mut self,
        principal: &str,
        task: &TaskId,
        change: impl FnOnce(&mut Call) -> T,
    ) -> Option<T> {
        if self.rows.get(task)?.principal != principal {
            return None;
        }
        let mut call = self.rows.remove(task)?;
        self.exit(task, &call);
        let changed = change(&mut call);
        self.enter(task, &call);
        self.rows.insert(task.clone(), call);
        Some(changed)
    }

    /// Returns the undelivered calls of a principal and scope, oldest first.
    pub(super) fn open(
        &self,
        principal: &str,
        scope: &str,
    ) -> impl DoubleEndedIterator<Item = (&TaskId, &Call)> {
        let open = self.open.get(&(principal.to_owned(), scope.to_owned()));
        let tasks = open.into_iter().flatten().map(|(_, task)| task);
        tasks.filter_map(|task| Some((task, self.rows.get(task)?)))
    }

    /// Returns the calls whose abandon timeout has ended, with their principals.
    pub(super) fn abandoned_by(
        &self,
        now: UnixMillis,
        limit: usize,
    ) -> impl Iterator<Item = (&str, &TaskId)> {
        let due = self.abandoned.iter().take_while(move |(at, _)| *at <= now).take(limit);
        due.filter_map(|(_, task)| Some((self.rows.get(task)?.principal.as_str(), task)))
    }

    /// Returns the delivered calls of a principal, the first delivered first.
    pub(super) fn delivered(&self, principal: &str) -> impl Iterator<Item = &TaskId> {
        self.delivered.get(principal).into_iter().flatten().map(|(_, task)| task)
    }

    fn enter(&mut self, task: &TaskId, call: &Call) {
        if let Some(at) = call.attendance.abandon_at {
            self.abandoned.insert((at, task.clone()));
        }
        if let Some(at) = call.delivered {
            let delivered = self.delivered.entry(call.principal.clone()).or_default();
            delivered.insert((at, task.clone()));
        } else if let Some(scope) = call.scope.clone() {
            let open = self.open.entry((call.principal.clone(), scope)).or_default();
            open.insert((call.number, task.clone()));
        }
    }

    fn exit(&mut self, task: &TaskId, call: &Call) {
        if let Some(at) = call.attendance.abandon_at {
            self.abandoned.remove(&(at, task.clone()));
        }
        if let Some(at) = call.delivered {
            remove(&mut self.delivered, &call.principal, &(at, task.clone()));
        } else if let Some(scope) = call.scope.clone() {
            let key = (call.principal.clone(), scope);
            remove(&mut self.open, &key, &(call.number, task.clone()));
        }
    }
}

/// Removes an entry from an index, and its set if that is empty then.
fn remove<K: Eq + std::hash::Hash, T: Ord>(
    index: &mut HashMap<K, BTreeSet<T>>,
    key: &K,
    entry: &T,
) {
    if let Some(entries) = index.get_mut(key) {
        entries.remove(entry);
        if entries.is_empty() {
            index.remove(key);
        }
    }
}
