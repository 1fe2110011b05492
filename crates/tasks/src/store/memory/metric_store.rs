//! [`MetricStore`] of the memory store.

use super::state::{MemoryStore, done, locked};
use crate::store::{MetricRow, MetricStore, StoreFuture, UnixMillis};

impl MetricStore for MemoryStore {
    fn add_metrics<'a>(&'a self, rows: &'a [MetricRow]) -> StoreFuture<'a, ()> {
        locked(&self.metrics).add(rows, self.now());
        done(Ok(()))
    }

    fn metrics(&self, since: UnixMillis) -> StoreFuture<'_, Vec<MetricRow>> {
        done(Ok(locked(&self.metrics).rows_since(since)))
    }
}
