//! The sender: leases due deliveries, sends their messages, and records the results.
//!
//! One loop serves all targets. Each attempt runs beside the loop, and each target has a fixed number
//! of attempts, so a slow target delays no other. A lease gives each delivery one sender; the
//! deliveries of a crashed sender are due again when their leases end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use outlive_protocol::Clock;
use outlive_tasks::store::{Delivery, DeliveryQueue, StoreError, StoreFuture};
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    body::Body,
    schedule::delay_after,
    target::Target,
    transport::{Message, SendError},
};

/// Parallel attempts of a target.
const PARALLEL: usize = 4;

/// Longest time between two reads of the queue. Deliveries of other replicas are found by then.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two reads of the queue while tasks change.
const GATHER: Duration = Duration::from_millis(100);

/// Time after which the sender tries an unavailable store again.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// Time of a lease beyond the timeout of the attempt.
const LEASE_MARGIN: Duration = Duration::from_secs(45);

/// Builds messages when they are sent.
pub(crate) trait Composer: Send + Sync + 'static {
    /// Returns the content of a message to a target. Describes a deleted task by its ID alone.
    fn compose<'a>(&'a self, delivery: &'a Delivery, target: &'a Target) -> StoreFuture<'a, Body>;
}

/// Parts of a sender.
pub(crate) struct Outbox {
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    pub(crate) composer: Arc<dyn Composer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) targets: Vec<Target>,
}

/// A running sender. Dropping it aborts the attempts.
pub(crate) struct Sender {
    shared: Arc<Shared>,
    stopping: watch::Sender<bool>,
    /// Closed when the loop and its attempts have ended.
    ended: watch::Receiver<()>,
    work: AbortHandle,
}

struct Shared {
    queue: Arc<dyn DeliveryQueue>,
    composer: Arc<dyn Composer>,
    clock: Arc<dyn Clock>,
    lanes: Vec<Arc<Lane>>,
    /// Fires when a delivery may be due.
    wake: Arc<Notify>,
}

/// A target and its attempts.
struct Lane {
    target: Target,
    in_flight: AtomicUsize,
    /// Whether the receiver returned that it is gone.
    is_stopped: AtomicBool,
}

impl Sender {
    /// Starts a sender. Must be called inside a Tokio runtime.
    pub(crate) fn start(outbox: Outbox) -> Self {
        let Outbox { queue, composer, clock, targets } = outbox;
        let lane = |target| {
            let (in_flight, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
            Arc::new(Lane { target, in_flight, is_stopped })
        };
        let lanes = targets.into_iter().map(lane).collect();
        let wake = Arc::new(Notify::new());
        let shared = Arc::new(Shared { queue, composer, clock, lanes, wake });
        let (stopping, stopped) = watch::channel(false);
        let (ending, ended) = watch::channel(());
        let running = Arc::clone(&shared);
        let work = tokio::spawn(async move {
            running.run(stopped).await;
            drop(ending);
        });
        Self { shared, stopping, ended, work: work.abort_handle() }
    }

    /// Returns the signal for changed tasks, whose deliveries may be due.
    pub(crate) fn wake(&self) -> &Arc<Notify> {
        &self.shared.wake
    }

    /// Leases no further delivery, and waits for running attempts. The deliveries of attempts that
    /// do not end in time are due again when their leases end.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.stopping.send_replace(true);
        let mut ended = self.ended.clone();
        let all_ended = async { while ended.changed().await.is_ok() {} };
        if timeout(limit, all_ended).await.is_err() {
            tracing::warn!("notifications were being sent at shutdown; they are sent again");
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Shared {
    async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut attempts = JoinSet::new();
        while !*stopping.borrow_and_update() {
            while attempts.try_join_next().is_some() {}
            let pause = self.send_due(&mut attempts).await;
            tokio::select! {
                _ = stopping.changed() => {}
                Some(_) = attempts.join_next() => {}
                // Gathers the changes of a moment, so that a busy server reads the queue seldom.
                () = self.wake.notified() => sleep(GATHER).await,
                () = sleep(pause) => {}
            }
        }
        while attempts.join_next().await.is_some() {}
    }

    /// Starts an attempt for each due delivery, as many as the targets allow. Returns the time until
    /// the next read of the queue.
    async fn send_due(self: &Arc<Self>, attempts: &mut JoinSet<()>) -> Duration {
        let free: Vec<&Arc<Lane>> = self.lanes.iter().filter(|lane| lane.free() > 0).collect();
        let names: Vec<String> = free.iter().map(|lane| lane.target.name().to_owned()).collect();
        if names.is_empty() {
            return POLL_INTERVAL;
        }
        match self.queue.next_delivery(&names).await {
            Ok(Some(due)) if due.is_zero() => {}
            Ok(due) => return due.unwrap_or(POLL_INTERVAL).clamp(GATHER, POLL_INTERVAL),
            Err(error) => {
                tracing::warn!(%error, "notifications cannot be read; the store is tried again");
                return STORE_RETRY;
            }
        }
        let mut found = false;
        for lane in free {
            let lease = lane.target.transport().timeout() + LEASE_MARGIN;
            match self.queue.due(lane.target.name(), lease, lane.free()).await {
                Ok(due) => {
                    found |= !due.is_empty();
                    for delivery in due {
                        lane.in_flight.fetch_add(1, Ordering::AcqRel);
                        let place = Place(Arc::clone(lane));
                        attempts.spawn(Arc::clone(self).attempt(place, delivery));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "notifications cannot be leased; the store is tried again");
                    return STORE_RETRY;
                }
            }
        }
        // Another sender may have taken what was due.
        if found { Duration::ZERO } else { GATHER }
    }

    /// Sends one message, and records the result.
    async fn attempt(self: Arc<Self>, place: Place, delivery: Delivery) {
        let lane = &place.0;
        let sent = match lane.is_stopped.load(Ordering::Acquire) {
            true => Err(SendError::Gone("the receiver returned HTTP 410 before".to_owned())),
            false => match self.composer.compose(&delivery, &lane.target).await {
                Ok(body) => self.send(lane, &delivery, body).await,
                Err(error) => {
                    // No attempt was made: the delivery is due again when its lease ends.
                    tracing::warn!(%error, "a notification cannot be built; it is tried again");
                    return;
                }
            },
        };
        let recorded = match sent {
            Ok(()) => self.queue.sent(&delivery.id).await,
            Err(error) => self.fail(lane, &delivery, &error).await,
        };
        if let Err(error) = recorded {
            tracing::warn!(
                %error,
                "the result of a notification cannot be stored; the message is sent again"
            );
        }
    }

    async fn send(&self, lane: &Lane, delivery: &Delivery, body: Body) -> Result<(), SendError> {
        let body = body.write(lane.target.message_format());
        let timestamp = self.clock.wall().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let message = Message::new(&delivery.id, delivery.event, timestamp, body);
        let transport = lane.target.transport();
        let limit = transport.timeout();
        timeout(limit, transport.send(&message)).await.unwrap_or_else(|_| {
            Err(SendError::Failed(format!("the receiver did not respond within {limit:?}")))
        })
    }

    /// Records a failed attempt, and reports it in the log.
    async fn fail(
        &self,
        lane: &Lane,
        delivery: &Delivery,
        error: &SendError,
    ) -> Result<(), StoreError> {
        let target = lane.target.name();
        let (requested, is_gone) = match error {
            SendError::Failed(_) => (None, false),
            SendError::Busy(_, delay) => (Some(*delay), false),
            SendError::Gone(_) => (None, true),
        };
        if is_gone && !lane.is_stopped.swap(true, Ordering::AcqRel) {
            tracing::error!(
                target_name = target,
                "the receiver of notifications is gone (HTTP 410); the target stops until the server restarts"
            );
        }
        let delay = delay_after(delivery.attempts, requested, random()).filter(|_| !is_gone);
        let (event, attempts) = (delivery.event.as_str(), delivery.attempts);
        let task_id = delivery.task.prefix();
        match delay {
            Some(delay) => {
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(target_name = target, event, task_id, attempts, delay_ms, %error, "a notification failed");
            }
            None => {
                tracing::error!(target_name = target, event, task_id, attempts, %error, "a notification is not sent again; the overview of the console can send it");
            }
        }
        self.queue.failed(&delivery.id, attempts, delay, &error.to_string()).await
    }
}

impl Lane {
    /// Returns the number of attempts that can start now.
    fn free(&self) -> usize {
        PARALLEL.saturating_sub(self.in_flight.load(Ordering::Acquire))
    }
}

/// The place of one attempt at its target, until dropped.
struct Place(Arc<Lane>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Returns random bits for the schedule; zero if the operating system has none.
fn random() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes)
}
