//! [`MetricStore`] of the SQLite store.

use super::{metric, store::SqliteStore};
use crate::store::{MetricRow, MetricStore, StoreFuture, UnixMillis};

impl MetricStore for SqliteStore {
    fn add_metrics<'a>(&'a self, rows: &'a [MetricRow]) -> StoreFuture<'a, ()> {
        let rows = rows.to_vec();
        Box::pin(self.writer.write(move |batch| metric::add(batch, &rows)))
    }

    fn metrics(&self, since: UnixMillis) -> StoreFuture<'_, Vec<MetricRow>> {
        let look = move |connection: &_| metric::since(connection, since);
        Box::pin(self.readers.read(&self.file, look))
    }
}
