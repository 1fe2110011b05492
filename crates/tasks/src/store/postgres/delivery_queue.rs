//! [`DeliveryQueue`] of the PostgreSQL store.

use std::time::Duration;

use super::{delivery, queue::Order, statement::CallResult, store::PostgresStore};
use crate::store::{Delivery, DeliveryQueue, StoreFuture};

impl DeliveryQueue for PostgresStore {
    fn due<'a>(
        &'a self,
        target: &'a str,
        lease: Duration,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        let call = delivery::due(&self.shared, target, lease, limit);
        let read = |rows: Vec<_>| Ok(CallResult::new(delivery::read(&rows)?));
        Box::pin(self.writers.write(Order::Alone, call, read))
    }

    fn sent<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, ()> {
        let call = delivery::sent(delivery);
        Box::pin(self.writers.write(order(delivery), call, |_| Ok(CallResult::new(()))))
    }

    fn failed<'a>(
        &'a self,
        delivery: &'a str,
        attempt: u32,
        retry_after: Option<Duration>,
        error: &'a str,
    ) -> StoreFuture<'a, ()> {
        let call = delivery::failed(&self.shared, delivery, attempt, retry_after, error);
        Box::pin(self.writers.write(order(delivery), call, |_| Ok(CallResult::new(()))))
    }

    fn next_delivery<'a>(&'a self, targets: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let call = delivery::next(&self.shared, targets);
        Box::pin(self.readers.read(&self.shared, call, |rows| delivery::read_next(&rows)))
    }

    fn failing(&self, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        let call = delivery::failing(limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| delivery::read(&rows)))
    }

    fn send_again<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, bool> {
        let call = delivery::again(&self.shared, delivery);
        Box::pin(self.writers.write(order(delivery), call, |rows| delivery::read_again(&rows)))
    }
}

/// Returns the order of an operation on one delivery. Its row is locked before tasks, like a
/// key-value entry.
fn order(delivery: &str) -> Order {
    Order::Note(format!("delivery/{delivery}"))
}
