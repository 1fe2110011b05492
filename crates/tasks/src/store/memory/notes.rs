//! What is kept beside the tasks: notes, and what has happened.

use std::collections::{HashMap, VecDeque};

use outlive_wire::RawJson;

use crate::store::{Audit, AuditEvent, Millis};

/// Notes by their key, each until some time.
#[derive(Default)]
pub(super) struct Notes(HashMap<String, (RawJson, Millis)>);

impl Notes {
    pub(super) fn keep(
        &mut self,
        key: &str,
        note: RawJson,
        until: Millis,
        now: Millis,
    ) -> Option<RawJson> {
        let before = self.kept(key, now);
        if before.is_none() {
            self.replace(key, note, until);
        }
        before
    }

    pub(super) fn replace(&mut self, key: &str, note: RawJson, until: Millis) {
        self.0.insert(key.to_owned(), (note, until));
    }

    pub(super) fn kept(&self, key: &str, now: Millis) -> Option<RawJson> {
        let (note, until) = self.0.get(key)?;
        (*until > now).then(|| note.clone())
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(super) fn sweep(&mut self, now: Millis) {
        self.0.retain(|_, (_, until)| *until > now);
    }
}

/// What has happened, oldest first, each until some time.
#[derive(Default)]
pub(super) struct Events {
    events: VecDeque<(Audit, Millis)>,
    /// The number of the last one, which may have been swept.
    last: u64,
}

impl Events {
    pub(super) fn record(&mut self, events: Vec<AuditEvent>, until: Millis, now: Millis) {
        for event in events {
            self.last += 1;
            self.events.push_back((Audit { number: self.last, at: now, event }, until));
        }
    }

    pub(super) fn after(&self, task: Option<&str>, after: u64, limit: usize) -> Vec<Audit> {
        let from = self.events.partition_point(|(audit, _)| audit.number <= after);
        let all = self.events.range(from..).map(|(audit, _)| audit);
        let wanted = all.filter(|audit| task.is_none_or(|task| audit.event.task == task));
        wanted.take(limit).cloned().collect()
    }

    /// Only the oldest are looked at: all are kept for as long, unless that was changed, and then some
    /// are kept for longer.
    pub(super) fn sweep(&mut self, now: Millis) {
        while self.events.front().is_some_and(|(_, until)| *until <= now) {
            self.events.pop_front();
        }
    }
}
