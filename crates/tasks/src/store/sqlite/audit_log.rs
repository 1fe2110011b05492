//! [`AuditLog`] of the SQLite store.

use std::time::Duration;

use super::{audit, batch::Batch, store::SqliteStore};
use crate::store::{AuditEvent, AuditLog, AuditRecord, StoreFuture};

impl AuditLog for SqliteStore {
    fn append(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        let record =
            move |batch: &mut Batch<'_>| audit::record(batch, &events, retention, max_events);
        Box::pin(self.writer.write(record))
    }

    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        let task = task.map(str::to_owned);
        let look = move |connection: &_| audit::audit(connection, task.as_deref(), after, limit);
        Box::pin(self.readers.read(&self.file, look))
    }
}
