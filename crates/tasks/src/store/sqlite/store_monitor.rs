//! [`StoreMonitor`] of the SQLite store.

use std::sync::Arc;

use super::{clock::from_column, phase_counts, principal_quota, store::SqliteStore};
use crate::store::{StoreFuture, StoreMonitor, StoreStats};

impl StoreMonitor for SqliteStore {
    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let file = Arc::clone(&self.file);
        let look = move |connection: &_| phase_counts::census(connection, file.clock.now());
        Box::pin(self.readers.read(&self.file, look))
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.readers.read(&self.file, phase_counts::ready))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        let principal = principal.to_owned();
        let look =
            move |connection: &_| Ok(from_column(principal_quota::bytes(connection, &principal)?));
        Box::pin(self.readers.read(&self.file, look))
    }
}
