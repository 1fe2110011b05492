//! [`AuditLog`] of the memory store.

use std::time::Duration;

use super::state::{MemoryStore, done};
use crate::{
    store::{AuditEvent, AuditLog, AuditRecord, StoreFuture},
    time::millis,
};

impl AuditLog for MemoryStore {
    fn append(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        self.lock().audit_events.append(events, (self.now(), millis(retention)), max_events);
        done(Ok(()))
    }

    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        done(Ok(self.lock().audit_events.read(task, after, limit)))
    }
}
