//! [`MetricStore`] of the PostgreSQL store.

use super::{metric, queue::Order, statement::CallResult, store::PostgresStore};
use crate::store::{MetricRow, MetricStore, StoreFuture, UnixMillis};

impl MetricStore for PostgresStore {
    fn add_metrics<'a>(&'a self, rows: &'a [MetricRow]) -> StoreFuture<'a, ()> {
        let call = metric::add(&self.shared, rows);
        Box::pin(self.writers.write(Order::Alone, call, |_| Ok(CallResult::new(()))))
    }

    fn metrics(&self, since: UnixMillis) -> StoreFuture<'_, Vec<MetricRow>> {
        let call = metric::since(since);
        Box::pin(self.readers.read(&self.shared, call, |rows| metric::read(&rows)))
    }
}
