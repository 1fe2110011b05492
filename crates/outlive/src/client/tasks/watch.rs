//! Observation of a task by polling, and by subscription if the server supports it.

use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use outlive_protocol::{
    Incoming, IncomingKind, TaskDialect, VersionRules,
    era::client::{Outgoing, TaskSnapshot, read_task},
};
use outlive_wire::{Method, code};
use serde_json::Value;
use tokio::{sync::broadcast, time::Instant};

use crate::client::{
    attempt::Wanted,
    core::Core,
    error::{ClientError, Error, Result, ServerError, ServerErrorKind},
    exchange::Exchange,
    notice::ServerNotification,
    send::{Boxed, jitter, send},
};

/// Factor by which the poll interval grows while a subscription is open.
const LISTENING: u32 = 10;

/// Longest poll interval while the server is unreachable, when a poll puts no load on it.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Consecutive polls that may fail with an internal error of the server.
const FAILED_LOOKS: u32 = 5;

/// Timeout for the acknowledgment of a subscription.
const AGREEING: Duration = Duration::from_secs(5);

/// Event of an observation.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A snapshot of the task.
    Task(Box<TaskSnapshot>),
    /// The server is unreachable, with the reason. Reported once per outage.
    Unreachable(String),
    /// The server is reachable again.
    Reachable,
}

/// Observes one task.
pub(crate) struct Observer {
    core: Arc<Core>,
    id: String,
    poll: Option<u64>,
    next_look: Instant,
    failures: u32,
    failing_since: Option<Instant>,
    /// First snapshot after an outage, returned after [`Heard::Reachable`].
    seen_again: Option<TaskSnapshot>,
    looking: Option<Boxed<'static, TaskSnapshot>>,
    opening: Option<Pin<Box<dyn Future<Output = Option<Exchange>> + Send>>>,
    listening: Option<Exchange>,
    told: broadcast::Receiver<ServerNotification>,
    newest: Option<String>,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Observer {
    /// Starts to observe a task. `at_once` polls before the first interval.
    pub(crate) fn new(
        core: &Arc<Core>,
        id: String,
        rules: &'static VersionRules,
        poll: Option<u64>,
        at_once: bool,
    ) -> Self {
        let mut observer = Self {
            core: Arc::clone(core),
            id,
            poll,
            next_look: Instant::now(),
            failures: 0,
            failing_since: None,
            seen_again: None,
            looking: None,
            opening: None,
            listening: None,
            told: core.dispatch.notices(),
            newest: None,
        };
        if !at_once {
            observer.next_look = Instant::now() + observer.interval();
        }
        if rules.tasks == TaskDialect::Offered {
            let (core, id) = (Arc::clone(core), observer.id.clone());
            observer.opening = Some(Box::pin(async move { listen(&core, &id).await }));
        }
        observer
    }

    /// Polls as soon as possible, because the task may have changed.
    pub(crate) fn look_now(&mut self) {
        self.next_look = Instant::now();
    }

    /// Returns the next snapshot that is not older than the last, or a change of reachability.
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Heard> {
        loop {
            let seen = match self.seen_again.take() {
                Some(seen) => Some(Heard::Task(Box::new(seen))),
                None => self.event().await?,
            };
            let snapshot = match seen {
                Some(Heard::Task(snapshot)) => snapshot,
                Some(other) => return Ok(other),
                None => continue,
            };
            if self.is_old(&snapshot) {
                continue;
            }
            self.newest.clone_from(&snapshot.updated);
            self.poll = snapshot.poll.or(self.poll);
            return Ok(Heard::Task(snapshot));
        }
    }

    async fn event(&mut self) -> Result<Option<Heard>> {
        let next_look = self.next_look;
        let is_looking = self.looking.is_some();
        tokio::select! {
            biased;
            seen = poll_future(&mut self.looking), if is_looking => {
                self.looking = None;
                self.looked(seen)
            }
            opened = poll_future(&mut self.opening), if self.opening.is_some() => {
                self.opening = None;
                self.listening = opened;
                Ok(None)
            }
            message = next_message(&mut self.listening), if self.listening.is_some() => {
                Ok(self.heard(message).map(|task| Heard::Task(Box::new(task))))
            }
            notice = self.told.recv() => match notice {
                Ok(ServerNotification::Task(task)) if task.id == self.id => Ok(Some(Heard::Task(task))),
                Ok(ServerNotification::Reconnected) => {
                    self.look_now();
                    Ok(None)
                }
                Err(broadcast::error::RecvError::Closed) => Err(ClientError::Closed.into()),
                _ => Ok(None),
            },
            () = tokio::time::sleep_until(next_look), if !is_looking => {
                let (core, id) = (Arc::clone(&self.core), self.id.clone());
                self.looking = Some(Box::pin(async move { look(&core, &id).await }));
                Ok(None)
            }
        }
    }

    /// Handles the outcome of a poll.
    fn looked(&mut self, seen: Result<TaskSnapshot>) -> Result<Option<Heard>> {
        let now = Instant::now();
        match seen {
            Ok(snapshot) => {
                let was_failing = self.failing_since.take().is_some();
                self.failures = 0;
                self.poll = snapshot.poll.or(self.poll);
                self.next_look = now + self.interval();
                if was_failing {
                    self.seen_again = Some(snapshot);
                    return Ok(Some(Heard::Reachable));
                }
                Ok(Some(Heard::Task(Box::new(snapshot))))
            }
            Err(error) if error.is_transient() || self.may_be_passing(&error) => {
                let since = *self.failing_since.get_or_insert(now);
                if now - since > self.core.limits().max_total_timeout {
                    return Err(error);
                }
                self.failures += 1;
                let asked_for = error.server_error().and_then(ServerError::retry_after);
                let backing_off = self.interval() * (1 << self.failures.min(6));
                let ceiling = match &error {
                    Error::Transport(_) => {
                        self.core.limits().max_poll_interval.min(MAX_RETRY_INTERVAL)
                    }
                    _ => self.core.limits().max_poll_interval,
                };
                self.next_look = now + asked_for.unwrap_or(backing_off.min(ceiling));
                tracing::debug!(task_id = self.id, %error, "cannot poll a task");
                Ok((self.failures == 1).then(|| Heard::Unreachable(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether a failed poll may be temporary. A failed task is not a failed poll.
    fn may_be_passing(&self, error: &Error) -> bool {
        error.kind() == Some(ServerErrorKind::Internal) && self.failures < FAILED_LOOKS
    }

    /// Handles a message of the subscription, or its end.
    fn heard(&mut self, message: Option<Incoming>) -> Option<TaskSnapshot> {
        let Some(message) = message else {
            // Polls immediately, because notifications may be lost.
            self.listening = None;
            self.look_now();
            return None;
        };
        match message.kind() {
            IncomingKind::Notification { method: Some(Method::Tasks), .. } => {
                let snapshot = read_task(message.params_text()).ok()?;
                // The notification lacks the result or input requests, which a poll returns.
                let is_bare = match snapshot.status.as_str() {
                    "completed" => snapshot.result.is_none(),
                    "failed" => snapshot.error.is_none(),
                    "input_required" => snapshot.questions.is_none(),
                    _ => false,
                };
                if snapshot.id != self.id || is_bare {
                    self.look_now();
                    return None;
                }
                self.next_look = Instant::now() + self.interval();
                Some(snapshot)
            }
            IncomingKind::Notification { .. } => None,
            _ => {
                if let Some(listening) = &mut self.listening {
                    listening.settle();
                }
                self.listening = None;
                self.look_now();
                None
            }
        }
    }

    /// Returns the delay before the next poll.
    fn interval(&self) -> Duration {
        let limits = self.core.limits();
        let named = self.poll.map_or(limits.default_poll_interval, Duration::from_millis);
        let slower = if self.listening.is_some() { LISTENING } else { 1 };
        let span = (named.max(limits.min_poll_interval) * slower).min(limits.max_poll_interval);
        span + jitter(span / 10)
    }

    /// Compares timestamps as text, which is valid if they have the same format and length.
    fn is_old(&self, snapshot: &TaskSnapshot) -> bool {
        match (&self.newest, &snapshot.updated) {
            (Some(newest), Some(updated)) => newest.len() == updated.len() && updated < newest,
            _ => false,
        }
    }
}

async fn poll_future<T>(future: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    poll_fn(|cx| match future {
        Some(future) => future.as_mut().poll(cx),
        None => std::task::Poll::Pending,
    })
    .await
}

async fn next_message(listening: &mut Option<Exchange>) -> Option<Incoming> {
    match listening {
        Some(exchange) => exchange.next().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Polls a task once.
pub(crate) async fn look(core: &Arc<Core>, id: &str) -> Result<TaskSnapshot> {
    let answered = send(core, &about(core, Method::TasksGet, id, "")).await?;
    let result = answered.result().map_err(gone)?;
    let snapshot = read_task(result).map_err(Error::broke)?;
    match snapshot.id == id {
        true => Ok(snapshot),
        false => Err(Error::broke("it returned another task than requested")),
    }
}

/// Creates a request about a task. `more` has additional members of its parameters.
pub(crate) fn about(core: &Core, method: Method, id: &str, more: &str) -> Wanted {
    let comma = if more.is_empty() { "" } else { "," };
    let params = format!(r#"{{"taskId":{}{comma}{more}}}"#, Value::from(id));
    let mut wanted = Wanted::new(core, method, params).named(id);
    wanted.holds_tasks = true;
    wanted
}

/// Converts the error for an unknown task into [`ServerErrorKind::TaskGone`].
pub(crate) fn gone(error: Error) -> Error {
    match error {
        Error::Server(refused) if refused.code == code::INVALID_PARAMS => {
            Error::Server(ServerError { kind: ServerErrorKind::TaskGone, ..refused })
        }
        error => error,
    }
}

/// Subscribes to a task. Returns `None` if the server does not support it.
async fn listen(core: &Arc<Core>, id: &str) -> Option<Exchange> {
    let params = format!(r#"{{"notifications":{{"taskIds":[{}]}}}}"#, Value::from(id));
    subscribe(core, &params, |message| has_agreed(message, id)).await
}

/// Opens a subscription and waits for its acknowledgment. Returns `None` if the server rejects it.
pub(crate) async fn subscribe(
    core: &Arc<Core>,
    params: &str,
    has_agreed: impl Fn(&Incoming) -> bool,
) -> Option<Exchange> {
    let here = core.established().await.ok()?;
    if !here.rules.has(Method::Listen) {
        return None;
    }
    let request = Outgoing {
        id: Some(core.next_id()),
        method: Method::Listen.as_str(),
        params,
        holds_tasks: true,
        ..Outgoing::default()
    };
    let opening = async {
        let mut exchange = Exchange::open(&here, &request).await.ok()?;
        loop {
            let message = exchange.next().await.ok()??;
            match message.kind() {
                IncomingKind::Notification { method: Some(Method::Acknowledged), .. } => {
                    return has_agreed(&message).then_some(exchange);
                }
                IncomingKind::Notification { .. } => {}
                _ => {
                    exchange.settle();
                    return None;
                }
            }
        }
    };
    tokio::time::timeout(AGREEING, opening).await.ok().flatten()
}

fn has_agreed(message: &Incoming, id: &str) -> bool {
    let params: Value = message.params().unwrap_or_default();
    let agreed = params.pointer("/notifications/taskIds").and_then(Value::as_array);
    agreed.is_some_and(|ids| ids.iter().any(|agreed| agreed.as_str() == Some(id)))
}
