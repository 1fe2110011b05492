//! Deliveries of notifications: one row per event and target, from the commit of the event until a
//! receiver has accepted it.

use std::time::Duration;

use super::{
    id::{TaskId, UnixMillis},
    subscription::TaskEvent,
    traits::StoreFuture,
};
use crate::setters::setters;

/// Time after its event for which a delivery is stored: two weeks. A sweep deletes older ones, sent
/// or not.
pub const DELIVERY_RETENTION: Duration = Duration::from_secs(1_209_600);

/// Maximum number of stored deliveries of all targets. A sweep deletes the oldest above it.
pub const MAX_DELIVERIES: usize = 100_000;

/// Deliveries of notifications.
///
/// The store writes a delivery in the transaction of its event, for every
/// [`Subscription`](super::Subscription) of the task. A lease gives each delivery one sender.
pub trait DeliveryQueue: Send + Sync + 'static {
    /// Leases due deliveries to a target, the first due first. A delivery whose lease has ended is
    /// due again.
    fn due<'a>(
        &'a self,
        target: &'a str,
        lease: Duration,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>>;

    /// Deletes a delivery that its receiver accepted, even if another sender has its lease.
    fn sent<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, ()>;

    /// Records a failed attempt. The delivery is due again after `retry_after`, or dead if there is
    /// no such time. Ignored if the lease of `attempt` has ended and another sender has the
    /// delivery.
    fn failed<'a>(
        &'a self,
        delivery: &'a str,
        attempt: u32,
        retry_after: Option<Duration>,
        error: &'a str,
    ) -> StoreFuture<'a, ()>;

    /// Returns the time until a delivery to one of the targets is due; zero if one is due now.
    fn next_delivery<'a>(&'a self, targets: &'a [String]) -> StoreFuture<'a, Option<Duration>>;

    /// Returns deliveries with a failed attempt, newest event first: dead ones and those that are
    /// tried again.
    fn failing(&self, limit: usize) -> StoreFuture<'_, Vec<Delivery>>;

    /// Makes a delivery due now, with all attempts. Returns whether it exists.
    fn send_again<'a>(&'a self, delivery: &'a str) -> StoreFuture<'a, bool>;
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// ID of the delivery, the same for every attempt.
    pub id: String,
    /// Task of the event.
    pub task: TaskId,
    /// Event.
    pub event: TaskEvent,
    /// Name of the target.
    pub target: String,
    /// Wire key of the input request; `None` for events of the task itself.
    pub input_request: Option<String>,
    /// When the event was committed.
    pub at: UnixMillis,
    /// Number of attempts, with the leased one.
    pub attempts: u32,
    /// When the next attempt is due; `None` if the delivery is dead.
    pub due_at: Option<UnixMillis>,
    /// Error of the last attempt.
    pub error: Option<String>,
}

impl Delivery {
    /// Creates a delivery without attempts.
    pub fn new(
        id: impl Into<String>,
        task: TaskId,
        event: TaskEvent,
        target: impl Into<String>,
        at: UnixMillis,
    ) -> Self {
        Self {
            id: id.into(),
            task,
            event,
            target: target.into(),
            input_request: None,
            at,
            attempts: 0,
            due_at: Some(at),
            error: None,
        }
    }
}

setters!(Delivery {
    input_request: Option<String>,
    attempts: u32,
    due_at: Option<UnixMillis>,
    error: Option<String>,
});
