//! [`DeliveryQueue`] of the memory store.

use std::time::Duration;

use super::state::{MemoryStore, done};
use crate::{
    store::{Delivery, DeliveryQueue, StoreFuture},
    time::millis,
};

impl DeliveryQueue for MemoryStore {
    fn due<'a>(
        &'a self,
        target: &'a str,
        lease: Duration,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        let now = self.now();
        let mut tasks = self.lock();
        let deliveries = &mut tasks.deliveries;
        let due = deliveries.due_by(target, now, limit);
        let leased = due.iter().filter_map(|id| {
            deliveries.change(id, |delivery| {
                delivery.attempts += 1;
                delivery.due_at = Some(now.saturating_add(millis(lease)));
                delivery.clone()
            })
        });
        done(Ok(leased.collect()))
    }

    fn sent<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, ()> {
        self.lock().deliveries.remove(delivery);
        done(Ok(()))
    }

    fn failed<'a>(
        &'a self,
        delivery: &'a str,
        attempt: u32,
        retry_after: Option<Duration>,
        error: &'a str,
    ) -> StoreFuture<'a, ()> {
        let now = self.now();
        self.lock().deliveries.change(delivery, |delivery| {
            if delivery.attempts == attempt {
                delivery.due_at = retry_after.map(|delay| now.saturating_add(millis(delay)));
                delivery.error = Some(error.to_owned());
            }
        });
        done(Ok(()))
    }

    fn next_delivery<'a>(&'a self, targets: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let now = self.now();
        let tasks = self.lock();
        let next = targets.iter().filter_map(|target| tasks.deliveries.next_due(target)).min();
        done(Ok(next.map(|due| Duration::from_millis(due.saturating_sub(now)))))
    }

    fn failing(&self, limit: usize) -> StoreFuture<'_, Vec<Delivery>> {
        done(Ok(self.lock().deliveries.failing().take(limit).cloned().collect()))
    }

    fn send_again<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, bool> {
        let now = self.now();
        let changed = self.lock().deliveries.change(delivery, |delivery| {
            (delivery.due_at, delivery.attempts, delivery.error) = (Some(now), 0, None);
        });
        done(Ok(changed.is_some()))
    }
}
