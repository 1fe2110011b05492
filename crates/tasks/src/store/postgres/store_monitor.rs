//! [`StoreMonitor`] of the PostgreSQL store.

use super::{read, store::PostgresStore};
use crate::store::{StoreFuture, StoreMonitor, StoreStats};

impl StoreMonitor for PostgresStore {
    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let call = read::census(&self.shared);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_census(&rows)))
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.readers.read(&self.shared, read::ready(), |_| Ok(())))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        let call = read::stored_bytes(principal);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_stored_bytes(&rows)))
    }
}
