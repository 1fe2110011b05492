//! Next request of a call at its upstream: send the request, or continue what an earlier attempt left.
//!
//! An attempt ends with the connection, the upstream or the gateway. A task of the upstream, a stream
//! with event IDs, and a request to a process that survived the gateway are continued. Any other lost
//! request is sent again if that is safe: `on_crash`, or an idempotency key.

use std::{future::Future, ops::ControlFlow, time::Duration};

use outlive::{
    client::{
        Error as UpstreamError, ServerErrorKind,
        relay::{RelayOutcome, StreamPoint},
        transport::TransportErrorKind,
    },
    server::{Error, Result},
};
use tokio::time::Instant;

use super::{
    access::{self, Waits},
    ended::Ended,
    failure,
    journal::{PipePoint, Started, Tracked, UpstreamTask, resent_key, started_key},
    outage::Outage,
    survival::supervisor,
    task_requests::retry_after,
};
use crate::upstream::{AcquireError, Lease, cancelled};

/// Times that a request is sent again because its connection had closed before.
const MAX_CLOSED: u32 = 2;

/// Pause before that, until the pool has observed the end of the connection.
const CLOSED_PAUSE: Duration = Duration::from_millis(20);

/// Delay before a lost request is sent again.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);

/// Delay before another machine is checked again.
const OTHER_MACHINE_PAUSE: Duration = Duration::from_secs(1);

/// Time over which a connection shows that the upstream could be reached.
const REACHABLE: Duration = Duration::from_secs(60);

/// The next request of a call to its upstream.
#[derive(Debug)]
pub(super) enum Next {
    /// The call itself.
    Send,
    /// The rest of a response stream.
    Stream(StreamPoint),
    /// The state of a task of the upstream.
    Task(UpstreamTask),
    /// The response of a process that survived the gateway.
    Pipe(PipePoint),
}

/// The attempts of one request.
pub(super) struct Attempts<'a> {
    tracked: Tracked<'a>,
    /// The start of the request, if an earlier run recorded it.
    earlier: Option<Started>,
    begun: Instant,
    closed: u32,
    outage: Outage,
    /// When the last connection was acquired.
    acquired: Instant,
    /// Whether the upstream may have executed an earlier attempt.
    is_repeated: bool,
    /// Whether the last attempt had an idempotency key.
    is_keyed: bool,
    waits: Waits,
    /// Whether the request was sent again after its user had to log in.
    has_logged_in: bool,
}

type Outcome = std::result::Result<RelayOutcome, Ended>;

impl<'a> Attempts<'a> {
    /// Returns the first request of this run.
    ///
    /// # Errors
    ///
    /// If an earlier run started the request, and it is unknown whether the upstream executed it.
    pub(super) fn start(tracked: Tracked<'a>) -> Result<(Self, Next)> {
        // Most calls are new, and need no journal.
        let has_records = tracked.cx.has_records();
        if has_records {
            // The messages that the upstream sends again depend on its state.
            tracked.cx.skip_records();
        }
        let earlier = if has_records { tracked.started()? } else { None };
        let mut attempts = Self {
            tracked,
            earlier: earlier.clone(),
            begun: Instant::now(),
            closed: 0,
            outage: Outage::default(),
            acquired: Instant::now(),
            is_repeated: false,
            is_keyed: false,
            waits: Waits::new(tracked.cx, tracked.number)?,
            has_logged_in: false,
        };
        if has_records && let Some(task) = tracked.task()? {
            return Ok((attempts, Next::Task(task)));
        }
        let Some(started) = earlier else { return Ok((attempts, Next::Send)) };
        if let Some(point) = tracked.stream()? {
            return Ok((attempts, Next::Stream(point)));
        }
        if let Some(point) = &started.pipe {
            // Reads the entry, which this run does not reach.
            let resent = resent_key(tracked.number, point.request);
            let _: Option<bool> = tracked.cx.get(resent)?;
            return Ok((attempts, Next::Pipe(point.clone())));
        }
        match attempts.repeat(&started)? {
            true => Ok((attempts, Next::Send)),
            false => Err(failure::unknown(tracked.reached)),
        }
    }

    /// Returns whether the next request has an idempotency key, if the upstream accepts keys.
    pub(super) fn begin(&mut self, accepts_keys: bool) -> bool {
        self.is_keyed = accepts_keys && self.tracked.policy.is_some();
        self.is_keyed
    }

    /// Returns the right to use the connection for the next request. `next` becomes the call itself if
    /// the process of its request has ended.
    pub(super) async fn reach(&mut self, next: &mut Next) -> Result<Lease> {
        let point = match (&*next, &self.earlier) {
            (Next::Pipe(point), _) => Some(point.clone()),
            // The task is in the memory of the process.
            (Next::Task(_), Some(Started { pipe, .. })) => pipe.clone(),
            _ => None,
        };
        let Some(point) = point else { return self.acquire(next).await };
        if let Some(lease) = Box::pin(self.resume(&point)).await? {
            return Ok(lease);
        }
        if let Next::Pipe(_) = next {
            *next = self.repeat_gone()?;
        }
        self.acquire(next).await
    }

    /// Returns the right to use the connection to the process of a request, if it runs.
    async fn resume(&mut self, point: &PipePoint) -> Result<Option<Lease>> {
        let Tracked { cx, reached, .. } = self.tracked;
        let Some(supervisor) = supervisor(reached) else { return Ok(None) };
        while point.machine != supervisor.machine() {
            if !supervisor.is_alive(&point.machine).await {
                return Ok(None);
            }
            // The next worker may be the one on the machine of the process.
            cx.yield_to_replica().retry_after(OTHER_MACHINE_PAUSE).await?;
            self.unless_cancelled(tokio::time::sleep(OTHER_MACHINE_PAUSE)).await?;
        }
        let resumed = reached.member.runtime.resume(&point.process);
        let lease = self.unless_cancelled(resumed).await?;
        lease.map_err(|error| failure::of_acquire(reached, error))
    }

    /// Returns the next request after one of an earlier run is lost.
    ///
    /// # Errors
    ///
    /// If the call must not be sent again.
    fn repeat_gone(&mut self) -> Result<Next> {
        let may_repeat = match self.earlier.clone() {
            Some(started) => self.repeat(&started)?,
            None => false,
        };
        match may_repeat {
            true => Ok(Next::Send),
            false => Err(failure::unknown(self.tracked.reached)),
        }
    }

    /// Returns the right to use the upstream connection of the call. Only the first attempt of a call
    /// fails at once if the upstream cannot be reached.
    async fn acquire(&mut self, next: &Next) -> Result<Lease> {
        let Tracked { cx, reached, .. } = self.tracked;
        let is_patient = self.is_repeated || !matches!(next, Next::Send);
        loop {
            let error = match access::acquire(cx, reached, &mut self.waits).await {
                Ok(lease) => {
                    self.acquired = Instant::now();
                    return Ok(lease);
                }
                Err(error) => error,
            };
            let named = match &error {
                AcquireError::Problem { retry_after, .. } => *retry_after,
                AcquireError::Full { .. } => Some(REPEAT_PAUSE),
                AcquireError::Call(_) => return Err(failure::of_acquire(reached, error)),
            };
            let Some(delay) = self.outage.failed(named).filter(|_| is_patient) else {
                return Err(failure::of_acquire(reached, error));
            };
            cx.set_status_message(format!(
                "waits until upstream `{}` can be reached",
                reached.name()
            ));
            self.unless_cancelled(tokio::time::sleep(delay)).await?;
        }
    }

    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            output = future => Ok(output),
            () = self.tracked.cx.cancelled() => Err(cancelled()),
        }
    }

    /// Decides whether an attempt was the last. Waits before the next one.
    pub(super) async fn after(
        &mut self,
        next: &Next,
        outcome: Outcome,
    ) -> Result<ControlFlow<Outcome, Next>> {
        let error = match outcome {
            Err(Ended::Lost(error)) => return self.lost(error).await,
            Err(Ended::Gone) => return self.repeat_gone().map(ControlFlow::Continue),
            Err(Ended::WithoutToken { may_log_in, .. })
                if may_log_in && matches!(next, Next::Send) && !self.has_logged_in =>
            {
                self.has_logged_in = true;
                return Ok(ControlFlow::Continue(Next::Send));
            }
            Err(Ended::Failed(error) | Ended::WithoutToken { error, .. }) => error,
            outcome => return Ok(ControlFlow::Break(outcome)),
        };
        let last = |error| -> Result<ControlFlow<Outcome, Next>> {
            Ok(ControlFlow::Break(Err(Ended::Failed(error))))
        };
        if is_unsent(&error) && self.closed < MAX_CLOSED {
            self.closed += 1;
            self.unless_cancelled(tokio::time::sleep(CLOSED_PAUSE)).await?;
            return Ok(ControlFlow::Continue(Next::Send));
        }
        // The upstream still executes the first attempt with this key.
        if self.is_repeated
            && let Some(ServerErrorKind::RateLimited { .. }) = error.kind()
            && self.begun.elapsed() < self.tracked.timeout
        {
            let delay = retry_after(&error).unwrap_or(REPEAT_PAUSE).max(REPEAT_PAUSE);
            self.unless_cancelled(tokio::time::sleep(delay)).await?;
            return Ok(ControlFlow::Continue(Next::Send));
        }
        let is_lost = matches!(error, UpstreamError::Transport(_)) && error.may_have_executed();
        if !is_lost || self.tracked.policy.is_none() {
            return last(error);
        }
        // Nothing is recorded of a call that cannot be a task.
        let started = self.tracked.started()?.or_else(|| self.earlier.clone());
        let started = started.unwrap_or_else(|| Started::new(self.is_keyed, 0));
        match self.repeat(&started)? {
            true => {
                self.unless_cancelled(tokio::time::sleep(REPEAT_PAUSE)).await?;
                Ok(ControlFlow::Continue(Next::Send))
            }
            // The request was sent by an earlier run.
            false if matches!(next, Next::Stream(_) | Next::Pipe(_)) => {
                let error = failure::unknown(self.tracked.reached);
                Ok(ControlFlow::Break(Err(Ended::Final(error))))
            }
            false if self.tracked.may_repeat(&started) => {
                let reason = failure::of_call(self.tracked.reached, error, None);
                let times = started.attempt + 1;
                let error = Error::new(format!("the call was sent {times} times; last: {reason}"));
                Ok(ControlFlow::Break(Err(Ended::Final(error))))
            }
            false => last(error),
        }
    }

    /// Continues with the task of the upstream over another connection.
    async fn lost(&mut self, error: UpstreamError) -> Result<ControlFlow<Outcome, Next>> {
        if self.acquired.elapsed() > REACHABLE {
            self.outage.end();
        }
        let task = self.tracked.task()?;
        match (task, self.outage.failed(None)) {
            (Some(task), Some(delay)) => {
                self.unless_cancelled(tokio::time::sleep(delay)).await?;
                Ok(ControlFlow::Continue(Next::Task(task)))
            }
            _ => Ok(ControlFlow::Break(Err(Ended::Failed(error)))),
        }
    }

    /// Counts an attempt after one that may have executed the call. Returns `false` if there must not
    /// be another one.
    fn repeat(&mut self, started: &Started) -> Result<bool> {
        let attempt = started.attempt + 1;
        let most = self.tracked.policy.map_or(1, |policy| policy.max_attempts);
        if !self.tracked.may_repeat(started) || attempt >= most {
            return Ok(false);
        }
        self.is_repeated = true;
        let started = Started::new(started.keyed, attempt);
        self.tracked.cx.put(started_key(self.tracked.number), &started)?;
        Ok(true)
    }
}

/// Returns whether the upstream has certainly not seen the request, because its pipe had closed.
fn is_unsent(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Transport(error)
        if !error.may_have_been_sent() && *error.kind() == TransportErrorKind::Closed)
}
