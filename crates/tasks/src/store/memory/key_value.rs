//! What is kept beside the tasks: notes, and what has happened.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use outlive_wire::RawJson;

use super::{MemoryStore, locked, millis};
use crate::store::{AuditEvent, AuditRecord, Charge, StoreError, UnixMillis, budget};

/// Notes by their key, each until some time.
#[derive(Default)]
pub(super) struct Notes(HashMap<String, Note>);

pub(super) struct Note {
    pub(super) body: RawJson,
    pub(super) until: UnixMillis,
    /// The principal that is charged for it.
    pub(super) principal: Option<String>,
}

impl Notes {
    /// Puts a note in the place of the one that is there, which is returned.
    pub(super) fn put(&mut self, key: &str, note: Note) -> Option<Note> {
        self.0.insert(key.to_owned(), note)
    }

    /// The note under a key, its time over or not.
    pub(super) fn get(&self, key: &str) -> Option<&Note> {
        self.0.get(key)
    }

    pub(super) fn kept(&self, key: &str, now: UnixMillis) -> Option<RawJson> {
        let note = self.0.get(key)?;
        (note.until > now).then(|| note.body.clone())
    }

    pub(super) fn forget(&mut self, key: &str) -> Option<Note> {
        self.0.remove(key)
    }

    /// Forgets what is over, and returns it.
    pub(super) fn sweep(&mut self, now: UnixMillis) -> Vec<(String, Note)> {
        self.0.extract_if(|_, note| note.until <= now).collect()
    }
}

impl MemoryStore {
    /// Stores a note, unless one is there that is not to be replaced: that one is returned.
    pub(super) fn put(
        &self,
        key: &str,
        body: RawJson,
        ttl: Duration,
        is_to_replace: bool,
        charge: Option<&Charge>,
    ) -> Result<Option<RawJson>, StoreError> {
        let now = self.now();
        let mut notes = locked(&self.notes);
        if let (Some(there), false) = (notes.kept(key, now), is_to_replace) {
            return Ok(Some(there));
        }
        let bytes = budget::key_value(key, body.get());
        let mut tasks = self.lock();
        let old = notes
            .get(key)
            .and_then(|old| Some((old.principal.clone()?, budget::key_value(key, old.body.get()))));
        if let Some(Charge { principal, max_bytes }) = charge {
            let freed = old.as_ref().filter(|(owner, _)| owner == principal);
            let stored = tasks.bytes(principal) - freed.map_or(0, |(_, bytes)| *bytes);
            if (stored + bytes) as u64 > *max_bytes {
                return Err(StoreError::OverBytes);
            }
        }
        if let Some((principal, bytes)) = old {
            tasks.discharge(&principal, bytes);
        }
        let principal = charge.map(|charge| charge.principal.clone());
        if let Some(principal) = &principal {
            tasks.charge(principal, bytes);
        }
        notes.put(key, Note { body, until: now.saturating_add(millis(ttl)), principal });
        Ok(None)
    }

    /// A note is gone.
    pub(super) fn discharge(&self, key: &str, note: Note) {
        if let Some(principal) = note.principal {
            self.lock().discharge(&principal, budget::key_value(key, note.body.get()));
        }
    }
}

/// What has happened, oldest first, each until some time.
#[derive(Default)]
pub(super) struct Events {
    events: VecDeque<(AuditRecord, UnixMillis)>,
    /// The number of the last one, which may have been swept.
    last: u64,
}

impl Events {
    pub(super) fn record(
        &mut self,
        events: Vec<AuditEvent>,
        (now, retention): (UnixMillis, u64),
        max_events: u64,
    ) {
        let until = now.saturating_add(retention);
        for event in events {
            self.last += 1;
            self.events.push_back((AuditRecord { number: self.last, at: now, event }, until));
        }
        let surplus = (self.events.len() as u64).saturating_sub(max_events);
        self.events.drain(..usize::try_from(surplus).unwrap_or(usize::MAX));
    }

    pub(super) fn after(&self, task: Option<&str>, after: u64, limit: usize) -> Vec<AuditRecord> {
        let from = self.events.partition_point(|(audit, _)| audit.number <= after);
        let all = self.events.range(from..).map(|(audit, _)| audit);
        let wanted = all.filter(|audit| task.is_none_or(|task| audit.event.task == task));
        wanted.take(limit).cloned().collect()
    }

    /// Only the oldest are looked at: all are kept for as long, unless that was changed, and then some
    /// are kept for longer.
    pub(super) fn sweep(&mut self, now: UnixMillis) {
        while self.events.front().is_some_and(|(_, until)| *until <= now) {
            self.events.pop_front();
        }
    }
}
