//! [`KeyValueStore`] of the SQLite store.

use std::sync::Arc;
use std::time::Duration;

use outlive_wire::RawJson;

use super::{batch::Batch, key_value, store::SqliteStore};
use crate::store::{Charge, KeyValueStore, StoreFuture};

impl KeyValueStore for SqliteStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        let (key, charge) = (key.to_owned(), charge.cloned());
        let keep =
            move |batch: &mut Batch<'_>| key_value::keep(batch, &key, &value, ttl, charge.as_ref());
        Box::pin(self.writer.write(keep))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        let (key, charge) = (key.to_owned(), charge.cloned());
        let replace = move |batch: &mut Batch<'_>| {
            key_value::replace(batch, &key, &value, ttl, charge.as_ref())
        };
        Box::pin(self.writer.write(replace))
    }

    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        let (key, file) = (key.to_owned(), Arc::clone(&self.file));
        let look = move |connection: &_| key_value::kept(connection, &key, file.clock.now());
        Box::pin(self.readers.read(&self.file, look))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let key = key.to_owned();
        Box::pin(self.writer.write(move |batch| key_value::forget(batch, &key)))
    }
}
