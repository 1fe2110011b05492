//! [`KeyValueStore`] of the PostgreSQL store.

use std::time::Duration;

use outlive_wire::RawJson;

use super::{column::owned, key_value, queue::Order, statement::CallResult, store::PostgresStore};
use crate::store::{Charge, KeyValueStore, StoreFuture};

impl KeyValueStore for PostgresStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        let call = key_value::put(&self.shared, key, &value, ttl, false, charge);
        let order = Order::Note(owned(key));
        Box::pin(
            self.writers.write(order, call, |rows| key_value::read_put(&rows).map(CallResult::new)),
        )
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        let call = key_value::put(&self.shared, key, &value, ttl, true, charge);
        let read = |rows: Vec<_>| key_value::read_put(&rows).map(|_| CallResult::new(()));
        Box::pin(self.writers.write(Order::Note(owned(key)), call, read))
    }

    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        let call = key_value::kept(&self.shared, key);
        Box::pin(self.readers.read(&self.shared, call, |rows| key_value::read(&rows)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let order = Order::Note(owned(key));
        Box::pin(self.writers.write(order, key_value::forget(key), |_| Ok(CallResult::new(()))))
    }
}
