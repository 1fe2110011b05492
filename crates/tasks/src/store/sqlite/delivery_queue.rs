//! [`DeliveryQueue`] of the SQLite store.

use std::{sync::Arc, time::Duration};

use super::{batch::Batch, delivery, store::SqliteStore};
use crate::store::{Delivery, DeliveryQueue, StoreFuture};

impl DeliveryQueue for SqliteStore {
    fn due<'a>(
        &'a self,
        target: &'a str,
        lease: Duration,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        let (target, file) = (target.to_owned(), Arc::clone(&self.file));
        Box::pin(async move {
            // A read first avoids the write lock if no delivery is due.
            let targets = [target.clone()];
            let look = move |connection: &_| delivery::next(connection, file.clock.now(), &targets);
            if self.readers.read(&self.file, look).await? != Some(Duration::ZERO) {
                return Ok(Vec::new());
            }
            let take = move |batch: &mut Batch<'_>| delivery::lease(batch, &target, lease, limit);
            self.writer.write(take).await
        })
    }

    fn sent<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, ()> {
        let delivery = delivery.to_owned();
        Box::pin(self.writer.write(move |batch| delivery::sent(batch, &delivery)))
    }

    fn failed<'a>(
        &'a self,
        delivery: &'a str,
        attempt: u32,
        retry_after: Option<Duration>,
        error: &'a str,
    ) -> StoreFuture<'a, ()> {
        let (delivery, error) = (delivery.to_owned(), error.to_owned());
        let record = move |batch: &mut Batch<'_>| {
            delivery::failed(batch, (&delivery, attempt), retry_after, &error)
        };
        Box::pin(self.writer.write(record))
    }

    fn next_delivery<'a>(&'a self, targets: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let (file, targets) = (Arc::clone(&self.file), targets.to_vec());
        let look = move |connection: &_| delivery::next(connection, file.clock.now(), &targets);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn failing(&self, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        let look = move |connection: &_| delivery::failing(connection, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn send_again<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, bool> {
        let delivery = delivery.to_owned();
        Box::pin(self.writer.write(move |batch| delivery::send_again(batch, &delivery)))
    }
}
