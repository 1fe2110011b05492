//! A task of the upstream that runs the call: it is followed until its outcome.
//!
//! A legacy upstream sends input requests and the result while the gateway waits for `tasks/result`.
//! Since 2026-07-28 both are in the state of the task, which the gateway polls. The task survives the
//! connection and the gateway: another run attaches by its ID.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outlive::{
    client::{
        ClientError, Error as UpstreamError,
        relay::{RelayExchange, RelayOutcome, RelayRequest, RelayedTask},
        tasks::{TaskSnapshot, TaskStatus},
    },
    server::{Durable, Error, Result},
    wire::{ErrorObject, Method, code},
};
use tokio::time::Instant;

use super::{
    ended::Ended,
    failure,
    join::Branch,
    journal::{Tracked, UpstreamTask, task_key},
    outage::Outage,
    segments::Segments,
    task_inputs::TaskInputs,
    task_requests::{TaskRequests, is_outage, retry_after},
    task_status::StatusMessages,
};
use crate::upstream::Connection;

/// Shortest, longest and default interval between two polls.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a request that waits for a result shows that the upstream can be reached.
const REACHABLE: Duration = Duration::from_secs(30);

/// Time for the cancellation of a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

type Outcome = std::result::Result<RelayOutcome, Ended>;

/// Forwards the events of an exchange.
pub(super) trait Follow: Send {
    /// Forwards the events of an exchange that waits for a task, until its outcome.
    fn follow_task<'a>(&'a mut self, exchange: RelayExchange) -> Branch<'a, Outcome>;
}

/// Records the task of the upstream that runs the call.
pub(super) async fn record(
    tracked: Tracked<'_>,
    connection: &Connection,
    snapshot: &TaskSnapshot,
) -> Result<UpstreamTask> {
    let version = connection.version.to_string();
    let task = UpstreamTask::new(snapshot, version, connection.is_legacy());
    tracked.cx.step(task_key(tracked.number), async || Ok(task)).await
}

/// Follows a task until its outcome. If the call is cancelled before it is a task, so is the task of
/// the upstream; else the cleanup of the call does that.
pub(super) async fn follow(
    tracked: Tracked<'_>,
    connection: &Arc<Connection>,
    task: &UpstreamTask,
    events: &mut dyn Follow,
) -> Outcome {
    let requests = TaskRequests::new(connection, &task.id);
    let mut guard = CancelOnDrop { cx: tracked.cx, requests: Some(requests.clone()) };
    let following = Following { tracked, task, requests };
    let outcome = match task.is_legacy {
        true => following.wait(events).await,
        false => following.poll().await,
    };
    let is_over = match &outcome {
        Ok(_) | Err(Ended::Lost(_) | Ended::Gone) => true,
        Err(Ended::Failed(error)) => !matches!(error, UpstreamError::Client(_)),
        Err(Ended::Cancelled | Ended::Final(_) | Ended::WithoutToken { .. }) => false,
    };
    if is_over {
        guard.requests = None;
    }
    outcome
}

/// A task that is followed over one connection.
struct Following<'a> {
    tracked: Tracked<'a>,
    task: &'a UpstreamTask,
    requests: TaskRequests,
}

/// The state of a task, or the reason why it cannot be read.
type Polled = std::result::Result<RelayedTask, UpstreamError>;

/// Next event of a polled task.
enum Event {
    Polled(Polled),
    /// The upstream has an input response.
    Responded(Result<()>),
    PollDue,
    TimedOut,
    Cancelled,
}

impl Following<'_> {
    /// Waits for the result of a task of a legacy upstream.
    async fn wait(self, events: &mut dyn Follow) -> Outcome {
        let mut outage = Outage::default();
        loop {
            let begun = Instant::now();
            let members = self.requests.members();
            let request = RelayRequest::new(Method::TasksResult.as_str())
                .params(&members)
                .timeout(self.tracked.timeout)
                .max_total_timeout(self.tracked.timeout);
            let result = async {
                let opened = self.requests.connection.client.relay(&request).await;
                events.follow_task(opened.map_err(Ended::Failed)?).await
            };
            let outcome = tokio::select! {
                biased;
                outcome = result => outcome,
                never = self.show_status() => match never {},
            };
            let error = match outcome {
                Err(Ended::Failed(error)) => error,
                outcome => return outcome,
            };
            if matches!(error, UpstreamError::Client(ClientError::TimedOut(_))) {
                return Err(Ended::Failed(error));
            }
            if let UpstreamError::Server(_) = error
                && !is_outage(&error)
            {
                return Err(self.explained(error).await);
            }
            // An error of the call itself is a result of the task, which a poll confirms.
            if let UpstreamError::Server(_) = error
                && self.has_failed().await
            {
                return Err(Ended::Failed(error));
            }
            if begun.elapsed() > REACHABLE {
                outage.end();
            }
            self.pause(&mut outage, error).await?;
        }
    }

    /// Returns the end of a task whose result is an error: that error, unless the task is unknown.
    async fn explained(&self, error: UpstreamError) -> Ended {
        match self.requests.clone().get(None).await {
            Err(polled) if is_unknown(&polled) => self.unknown(),
            _ => Ended::Failed(error),
        }
    }

    /// Returns whether the task has ended with an error.
    async fn has_failed(&self) -> bool {
        let polled = self.requests.clone().get(None).await;
        polled.is_ok_and(|task| task.snapshot.status.is_terminal())
    }

    /// Shows the status messages of a task of a legacy upstream.
    async fn show_status(&self) -> std::convert::Infallible {
        let mut messages = StatusMessages::default();
        let interval = interval(self.task.poll).max(INTERVAL);
        loop {
            tokio::time::sleep(interval).await;
            if let Ok(task) = self.requests.clone().get(None).await {
                messages.show(self.tracked.cx, &task.snapshot);
            }
        }
    }

    /// Polls a task until its outcome.
    async fn poll(self) -> Outcome {
        let Self { tracked, task, requests } = &self;
        let mut inputs = TaskInputs::new(*tracked, requests.clone(), task);
        let mut segments = Segments::new(*tracked, requests.connection.offered.partials);
        let mut messages = StatusMessages::default();
        let mut clock = Clock::new(tracked.timeout);
        let mut outage = Outage::default();
        let mut polling: Option<Branch<'static, Polled>> = None;
        // Another run may have found the task long ago.
        let mut due = Instant::now() + MIN_INTERVAL;
        loop {
            clock.pause(inputs.any_open());
            let deadline = clock.deadline();
            let event = tokio::select! {
                biased;
                () = tracked.cx.cancelled() => Event::Cancelled,
                polled = ready(&mut polling), if polling.is_some() => Event::Polled(polled),
                responded = inputs.next(), if inputs.any_open() => Event::Responded(responded),
                () = tokio::time::sleep_until(due), if polling.is_none() => Event::PollDue,
                () = until(deadline) => Event::TimedOut,
            };
            match event {
                Event::Cancelled => return Err(Ended::Cancelled),
                Event::TimedOut => {
                    return Err(Ended::Failed(ClientError::TimedOut(tracked.timeout).into()));
                }
                Event::PollDue => {
                    polling = Some(Box::pin(requests.clone().get(segments.after())));
                }
                Event::Responded(responded) => {
                    responded.map_err(Ended::Final)?;
                    // The upstream continues at once.
                    due = Instant::now() + MIN_INTERVAL;
                }
                Event::Polled(Ok(polled)) => {
                    polling = None;
                    outage.end();
                    let snapshot = *polled.snapshot;
                    let has_more = segments.take(*tracked, snapshot.meta.as_ref()).await;
                    messages.show(tracked.cx, &snapshot);
                    if snapshot.status.is_terminal() {
                        return self.outcome(snapshot, &segments);
                    }
                    let wait = if has_more { Duration::ZERO } else { interval(snapshot.poll) };
                    due = Instant::now() + wait;
                    inputs.update(snapshot.questions);
                }
                Event::Polled(Err(error)) => {
                    polling = None;
                    if is_unknown(&error) {
                        return Err(self.unknown());
                    }
                    due = Instant::now() + self.delay(&mut outage, error)?;
                }
            }
        }
    }

    /// Returns the outcome of a task that has ended.
    fn outcome(&self, snapshot: TaskSnapshot, segments: &Segments) -> Outcome {
        let reached = self.tracked.reached;
        match (snapshot.status, snapshot.result, snapshot.error) {
            (TaskStatus::Completed, Some(result), _) => {
                let result = Bytes::copy_from_slice(result.get().as_bytes());
                Ok(RelayOutcome::Complete(segments.rest(result)))
            }
            (TaskStatus::Failed, _, error) => {
                let message = snapshot.message.unwrap_or_else(|| "the task failed".to_owned());
                let error =
                    error.unwrap_or(ErrorObject { code: code::INTERNAL, message, data: None });
                Err(Ended::Final(failure::of_task(reached, error)))
            }
            (TaskStatus::Cancelled, ..) => {
                let name = reached.name();
                let text = format!("upstream `{name}` cancelled the task that ran the call");
                Err(Ended::Final(Error::new(text)))
            }
            _ => {
                let reason = "its task has ended without a result";
                Err(Ended::Final(failure::invalid(reached, reason)))
            }
        }
    }

    /// Waits before the next attempt to reach the upstream.
    async fn pause(
        &self,
        outage: &mut Outage,
        error: UpstreamError,
    ) -> std::result::Result<(), Ended> {
        let delay = self.delay(outage, error)?;
        tokio::select! {
            () = tokio::time::sleep(delay) => Ok(()),
            () = self.tracked.cx.cancelled() => Err(Ended::Cancelled),
        }
    }

    /// Returns the delay before the next attempt to reach the upstream.
    fn delay(
        &self,
        outage: &mut Outage,
        error: UpstreamError,
    ) -> std::result::Result<Duration, Ended> {
        // Another run may use another connection.
        if !self.requests.connection.is_open() {
            return Err(Ended::Lost(error));
        }
        tracing::debug!(%error, "cannot poll a task of an upstream");
        match outage.failed(retry_after(&error)) {
            Some(delay) => Ok(delay),
            None => Err(Ended::Failed(error)),
        }
    }

    fn unknown(&self) -> Ended {
        let name = self.tracked.reached.name();
        Ended::Final(Error::new(format!(
            "upstream `{name}` no longer knows the task that ran the call, so it is unknown whether \
             `{name}` executed the call; its task expired, or the upstream was restarted without its \
             tasks"
        )))
    }
}

/// Returns whether an error says that the task does not exist.
fn is_unknown(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Server(_)) && !is_outage(error)
}

/// Returns the interval between two polls.
fn interval(named: Option<u64>) -> Duration {
    named.map_or(INTERVAL, Duration::from_millis).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

async fn ready<T>(branch: &mut Option<Branch<'static, T>>) -> T {
    match branch {
        Some(branch) => branch.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The timeout of a call, which stops while an input request is open.
struct Clock {
    left: Duration,
    since: Option<Instant>,
}

impl Clock {
    fn new(timeout: Duration) -> Self {
        Self { left: timeout, since: Some(Instant::now()) }
    }

    fn pause(&mut self, paused: bool) {
        match (self.since, paused) {
            (Some(since), true) => {
                self.left = self.left.saturating_sub(since.elapsed());
                self.since = None;
            }
            (None, false) => self.since = Some(Instant::now()),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.since?.checked_add(self.left)
    }
}

/// Cancels a task of the upstream when an inline call ends before it.
struct CancelOnDrop<'a> {
    cx: &'a Durable,
    requests: Option<TaskRequests>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // The next round or another run continues the task, or the cleanup of a cancelled task ends
        // it.
        if self.cx.is_detached() || self.cx.is_task() && self.cx.is_cancelled() {
            return;
        }
        let (Some(requests), Ok(runtime)) =
            (self.requests.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, requests.cancel()).await;
        });
    }
}
