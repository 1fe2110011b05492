//! Records of the audit log.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{id::UnixMillis, outcome::OutcomeKind};
use crate::setters::setters;

/// An action of a principal or a worker on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEvent {
    /// Task ID, or a digest of the ID if the ID alone grants access to the task.
    pub task: String,
    /// Principal that performed the action.
    pub principal: String,
    /// Action, in lower case with dashes between words.
    pub action: String,
    /// Reason or result of the action.
    pub reason: Option<String>,
    /// Worker that performed the action.
    pub worker: Option<String>,
}

impl AuditEvent {
    /// Creates an event without a reason.
    pub fn new(
        task: impl Into<String>,
        principal: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        let (task, principal, action) = (task.into(), principal.into(), action.into());
        Self { task, principal, action, reason: None, worker: None }
    }
}

setters!(AuditEvent { reason: Option<String>, worker: Option<String> });

/// The audit event `ended` that a store appends in the transaction that ends a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndAudit {
    /// Task of the event: the task ID, or its digest.
    pub task: String,
    /// Retention of the event.
    pub retention: Duration,
}

impl EndAudit {
    /// Creates the event of a task.
    pub fn new(task: impl Into<String>, retention: Duration) -> Self {
        Self { task: task.into(), retention }
    }

    /// Returns the event for the log. Its reason is the kind of the outcome, and it has no worker.
    pub fn event(&self, principal: &str, outcome: OutcomeKind) -> AuditEvent {
        let event = AuditEvent::new(self.task.as_str(), principal, "ended");
        event.reason(Some(outcome.to_string()))
    }
}

/// An event in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Sequence number.
    pub number: u64,
    /// When the store recorded the event.
    pub at: UnixMillis,
    /// Recorded event.
    pub event: AuditEvent,
}

impl AuditRecord {
    /// Creates a record.
    pub fn new(number: u64, at: UnixMillis, event: AuditEvent) -> Self {
        Self { number, at, event }
    }
}
