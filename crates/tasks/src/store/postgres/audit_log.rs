//! [`AuditLog`] of the PostgreSQL store.

use std::time::Duration;

use super::{audit, queue::Order, statement::CallResult, store::PostgresStore};
use crate::store::{AuditEvent, AuditLog, AuditRecord, StoreFuture};

impl AuditLog for PostgresStore {
    fn append(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        let call = audit::record(&self.shared, &events, retention, max_events);
        Box::pin(self.writers.write(Order::Event, call, |_| Ok(CallResult::new(()))))
    }

    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        let call = audit::audit(task, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| audit::read(&rows)))
    }
}
