//! Requests about a task of an upstream.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use outlive::{
    client::{
        ClientError, Error as UpstreamError, ServerErrorKind,
        relay::{RelayEvent, RelayOutcome, RelayRequest, RelayedTask},
    },
    wire::{Method, RawJson},
};
use serde_json::Value;

use crate::upstream::Connection;

/// Timeout of one request. A task that is polled may be in an outage of its upstream.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Member of `_meta` in `tasks/get`: the last segment that the gateway has.
const AFTER: &str = "dev.outlive/afterSeq";

type Result<T> = std::result::Result<T, UpstreamError>;

/// A task of an upstream, over one connection.
#[derive(Clone)]
pub(super) struct TaskRequests {
    pub(super) connection: Arc<Connection>,
    /// JSON text of the ID.
    id: Arc<str>,
}

impl TaskRequests {
    pub(super) fn new(connection: &Arc<Connection>, id: &str) -> Self {
        let id = Value::from(id).to_string().into();
        Self { connection: Arc::clone(connection), id }
    }

    /// Returns the members of parameters that name the task.
    pub(super) fn members(&self) -> [&str; 2] {
        [r#""taskId":"#, &self.id]
    }

    /// Polls the task, with the segments after a number.
    pub(super) async fn get(self, after: Option<u64>) -> Result<RelayedTask> {
        let mut meta = String::new();
        if let Some(after) = after {
            // Writing to a string does not fail.
            let _ = write!(meta, r#""{AFTER}":{after}"#);
        }
        RelayedTask::read(self.send(Method::TasksGet, "", &meta).await?)
    }

    /// Sends an input response.
    pub(super) async fn update(&self, key: &str, response: &RawJson) -> Result<()> {
        let key = Value::from(key);
        let responses = format!(r#","inputResponses":{{{key}:{}}}"#, response.get());
        self.send(Method::TasksUpdate, &responses, "").await.map(drop)
    }

    /// Cancels the task.
    pub(super) async fn cancel(&self) -> Result<()> {
        self.send(Method::TasksCancel, "", "").await.map(drop)
    }

    async fn send(&self, method: Method, more: &str, meta: &str) -> Result<Bytes> {
        let [name, id] = self.members();
        let members = [name, id, more];
        let request = RelayRequest::new(method.as_str())
            .params(&members)
            .meta(meta)
            .class(self.connection.class())
            .timeout(TIMEOUT)
            .max_total_timeout(TIMEOUT);
        let mut exchange = self.connection.client.relay(&request).await?;
        loop {
            match exchange.next().await? {
                RelayEvent::Outcome(RelayOutcome::Complete(result)) => return Ok(result),
                RelayEvent::Outcome(_) => {
                    let what = "the result of a request about a task is another task";
                    return Err(ClientError::NotOffered(what.to_owned()).into());
                }
                // Input requests of the task arrive elsewhere.
                _ => {}
            }
        }
    }
}

/// Returns whether a failed request about a task says nothing about the task itself: the upstream
/// cannot be reached, is overloaded, or has no valid token.
pub(super) fn is_outage(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Server(error) => matches!(
            error.kind,
            ServerErrorKind::Internal
                | ServerErrorKind::RateLimited { .. }
                | ServerErrorKind::Unauthorized
                | ServerErrorKind::Forbidden
        ),
        UpstreamError::Client(ClientError::NotOffered(_)) => false,
        _ => true,
    }
}

/// Returns the delay before a retry that an upstream names.
pub(super) fn retry_after(error: &UpstreamError) -> Option<Duration> {
    match error.kind() {
        Some(ServerErrorKind::RateLimited { retry_after }) => retry_after,
        _ => None,
    }
}
