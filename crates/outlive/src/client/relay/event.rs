//! Events and outcomes of a relayed request.

use std::time::Duration;

use bytes::Bytes;
use outlive_protocol::era::client::{TaskSnapshot, read_task};
use outlive_wire::{LoggingMessageNotificationParams, RawJson, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::RelayInput;
use crate::client::{
    attempt::Progress,
    error::{Error, Result},
};

/// Event of a relayed request.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayEvent {
    /// Progress.
    Progress(Progress),
    /// A log message on the request's own stream. On a pipe no log message names its request; see
    /// [`Client::notifications`](crate::client::Client::notifications).
    Log(LoggingMessageNotificationParams),
    /// An input request of a legacy server.
    Input(RelayInput),
    /// The server withdrew the input request with this ID, or its connection ended.
    InputWithdrawn(RequestId),
    /// The outcome, which is the last event.
    Outcome(RelayOutcome),
}

/// Outcome of a relayed request. An error of the server is
/// [`Error::Server`](crate::client::Error::Server).
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayOutcome {
    /// The result: the JSON text of an object.
    Complete(Bytes),
    /// The server requests input before it can complete the call; 2026-07-28. The next round is
    /// another request.
    InputRequired(RelayRound),
    /// The call became a task.
    Task(RelayedTask),
}

/// Result of a round that requests input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayRound {
    /// The result: the JSON text of an object.
    pub result: Bytes,
    /// Input requests by key, in the order of the server. Each is an object with `method` and
    /// `params`.
    pub requests: Vec<(String, RawJson)>,
    /// Request state for the next round.
    pub request_state: Option<String>,
    retry_after: Option<Duration>,
}

impl RelayRound {
    pub(super) fn new(
        result: Bytes,
        requests: Vec<(String, RawJson)>,
        request_state: Option<String>,
        meta: Option<&RawValue>,
    ) -> Self {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "dev.outlive/retryAfterMs")]
            retry_after: Option<u64>,
        }
        let named: Option<Named> = meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
        let retry_after = named.and_then(|named| named.retry_after).map(Duration::from_millis);
        Self { result, requests, request_state, retry_after }
    }

    /// Returns the delay before the next round, if the server names one. Servers that request no
    /// input want the request again with its request state.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// A call that became a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayedTask {
    /// The result: the JSON text of an object.
    pub result: Bytes,
    /// The state of the task.
    pub snapshot: Box<TaskSnapshot>,
}

impl RelayedTask {
    /// Parses the result of `tasks/get`.
    ///
    /// # Errors
    ///
    /// If it is not a task.
    pub fn read(result: Bytes) -> Result<Self> {
        let text = std::str::from_utf8(&result).map_err(|error| Error::broke(error.to_string()))?;
        let snapshot = Box::new(read_task(text).map_err(Error::broke)?);
        Ok(Self { result, snapshot })
    }
}
