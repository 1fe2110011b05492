//! Keeps the journal up to date while a request is open: that it was started, and how far its
//! response stream was read.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use outlive::{
    client::{
        ClientError, Error as UpstreamError,
        relay::{RelayEvent, RelayExchange, StreamPoint, StreamPosition},
    },
    server::{
        Result,
        durable::{ParkGuard, PromotionGuard, Secret},
    },
};
use tokio::time::Instant;

use super::{
    journal::{Started, Tracked, resent_key, started_key, stream_key},
    survival::Survival,
};
use crate::upstream::Connection;

/// Interval in which the position in a stream is recorded.
const INTERVAL: Duration = Duration::from_secs(1);

/// The journal of one open request. Has no effect on a call that cannot be a task.
pub(super) struct Tracker<'a> {
    tracked: Tracked<'a>,
    connection: &'a Arc<Connection>,
    stage: Stage,
    /// `None` for a call that cannot be a task.
    position: Option<SharedPosition>,
    /// The point that the journal has.
    recorded: Option<StreamPoint>,
    /// Present if the process of the request survives the gateway.
    survival: Option<Survival>,
    /// Keeps the run in memory, because no other run can continue the request.
    parking: Option<ParkGuard>,
    promotion: Option<PromotionGuard>,
}

/// Event that the tracker waits for.
enum Stage {
    /// Nothing: no other run continues the call.
    Inert,
    /// The promotion of the call.
    Inline,
    /// The time of the next record.
    Task { due: Option<Instant> },
}

/// The position of the open exchange, which the promotion reads too.
#[derive(Clone, Default)]
struct SharedPosition(Arc<Mutex<Option<StreamPosition>>>);

impl SharedPosition {
    fn point(&self) -> Option<StreamPoint> {
        self.lock().as_ref().and_then(StreamPosition::point)
    }

    fn lock(&self) -> MutexGuard<'_, Option<StreamPosition>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Tracker<'a> {
    /// Records that a request is about to be sent. In a task, returns when the record is stored.
    /// `recorded` is the point at which an earlier request continues.
    pub(super) async fn start(
        tracked: Tracked<'a>,
        connection: &'a Arc<Connection>,
        keyed: bool,
        recorded: Option<StreamPoint>,
        survival: Option<Survival>,
    ) -> Result<Self> {
        let position = tracked.may_continue().then(SharedPosition::default);
        let (mut parking, mut promotion) = (None, None);
        let cx = tracked.cx;
        let stage = match &position {
            None => Stage::Inert,
            Some(_) if cx.is_task() => {
                record_start(tracked, keyed, survival.as_ref()).await?;
                if let Some(survival) = &survival {
                    survival.retain_next(cx);
                }
                parking = recorded.is_none().then(|| cx.prevent_parking());
                Stage::Task { due: None }
            }
            Some(position) => {
                let started = Started::new(keyed, 0).on(survival.as_ref().map(Survival::point));
                let (number, position) = (tracked.number, position.clone());
                let survival = survival.clone();
                promotion = Some(cx.on_promotion(move |journal| {
                    if let Some(survival) = &survival {
                        survival.retain();
                    }
                    let mut recorded = journal.put(started_key(number), &started);
                    if let Some(point) = position.point() {
                        recorded =
                            recorded.and(journal.put(stream_key(number), &Secret::new(point)));
                    }
                    if let Err(error) = recorded {
                        tracing::warn!(%error, "cannot record a request of a call that becomes a task");
                    }
                }));
                Stage::Inline
            }
        };
        Ok(Self { tracked, connection, stage, position, recorded, survival, parking, promotion })
    }

    /// Continues a request that an earlier run has sent to a process.
    pub(super) fn resume(
        tracked: Tracked<'a>,
        connection: &'a Arc<Connection>,
        survival: Survival,
    ) -> Self {
        Self {
            tracked,
            connection,
            stage: Stage::Task { due: None },
            position: None,
            recorded: None,
            survival: Some(survival),
            parking: Some(tracked.cx.prevent_parking()),
            promotion: None,
        }
    }

    /// Keeps the journal up to date. Cancel safe.
    pub(super) async fn run(&mut self) -> Infallible {
        loop {
            match self.stage {
                Stage::Inert | Stage::Task { due: None } => pending().await,
                // The engine polls the handler after the promotion.
                Stage::Inline => {
                    poll_fn(|_| match self.tracked.cx.is_task() {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    })
                    .await;
                }
                Stage::Task { due: Some(due) } => tokio::time::sleep_until(due).await,
            }
            self.record();
        }
    }

    /// Starts to follow an exchange.
    pub(super) fn follow(mut self, mut exchange: RelayExchange) -> TrackedExchange<'a> {
        let is_http = || !self.tracked.reached.member.settings().is_command();
        if let Some(position) = &self.position
            && self.connection.is_legacy()
            && is_http()
        {
            *position.lock() = Some(exchange.position());
        }
        if let Stage::Task { .. } = self.stage {
            self.record();
        }
        TrackedExchange { exchange: Some(exchange), tracker: Some(self) }
    }

    /// Records the position in the stream. A run whose request has none stays in memory.
    fn record(&mut self) {
        self.promotion = None;
        let cx = self.tracked.cx;
        if let Some(survival) = &self.survival {
            survival.label(cx);
        }
        let point = self.position.as_ref().and_then(SharedPosition::point);
        if let Some(point) = point.filter(|point| self.recorded.as_ref() != Some(point)) {
            match cx.put(stream_key(self.tracked.number), &Secret::new(point.clone())) {
                Ok(()) => self.recorded = Some(point),
                Err(error) => tracing::debug!(%error, "cannot record the position in a stream"),
            }
        }
        match self.recorded {
            Some(_) => self.parking = None,
            None if self.parking.is_none() => self.parking = Some(cx.prevent_parking()),
            None => {}
        }
        let has_position = self.position.as_ref().is_some_and(|it| it.lock().is_some());
        self.stage = Stage::Task { due: has_position.then(|| Instant::now() + INTERVAL) };
    }

    /// Returns whether the run is being dropped, and another one continues the request.
    fn is_continued(&self) -> bool {
        let cx = self.tracked.cx;
        let survives = self.survival.is_some() && cx.is_task();
        (self.recorded.is_some() || survives) && cx.is_detached()
    }
}

/// Records the start of a request of a task. Returns when the record is stored.
async fn record_start(
    tracked: Tracked<'_>,
    keyed: bool,
    survival: Option<&Survival>,
) -> Result<()> {
    let (cx, key) = (tracked.cx, started_key(tracked.number));
    let point = survival.map(Survival::point);
    let Some(started) = tracked.started()? else {
        let started = Started::new(keyed, 0).on(point);
        let _: Started = cx.step(key, async || Ok(started)).await?;
        return Ok(());
    };
    let Some(point) = point.filter(|point| started.pipe.as_ref() != Some(point)) else {
        return Ok(());
    };
    // An earlier attempt has another request. The step waits until both entries are stored.
    let resent = resent_key(tracked.number, point.request);
    cx.put(key, &started.on(Some(point)))?;
    let _: bool = cx.step(resent, async || Ok(true)).await?;
    Ok(())
}

/// An exchange whose request is not cancelled if another run continues it.
pub(super) struct TrackedExchange<'a> {
    /// `None` after it was cancelled.
    exchange: Option<RelayExchange>,
    tracker: Option<Tracker<'a>>,
}

impl TrackedExchange<'_> {
    /// Wraps an exchange that no other run continues.
    pub(super) fn untracked(exchange: RelayExchange) -> Self {
        Self { exchange: Some(exchange), tracker: None }
    }

    /// Returns the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> std::result::Result<RelayEvent, UpstreamError> {
        match (&mut self.exchange, &mut self.tracker) {
            (None, _) => Err(ClientError::Closed.into()),
            (Some(exchange), None) => exchange.next().await,
            (Some(exchange), Some(tracker)) => tokio::select! {
                biased;
                event = exchange.next() => event,
                never = tracker.run() => match never {},
            },
        }
    }

    /// Stops the timeouts, or starts them again.
    pub(super) fn pause_timeout(&mut self, paused: bool) {
        if let Some(exchange) = &mut self.exchange {
            exchange.pause_timeout(paused);
        }
    }

    /// Cancels the request.
    pub(super) fn cancel(&mut self, reason: &str) {
        if let Some(exchange) = self.exchange.take() {
            exchange.cancel(reason);
        }
    }
}

impl Drop for TrackedExchange<'_> {
    fn drop(&mut self) {
        let tracker = self.tracker.as_ref().filter(|tracker| tracker.is_continued());
        if let (Some(tracker), Some(exchange)) = (tracker, self.exchange.take()) {
            tracker.connection.leave_session();
            exchange.detach();
        }
    }
}
