//! Records of the audit log.

use serde::{Deserialize, Serialize};

use super::id::UnixMillis;
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
}

impl AuditEvent {
    /// Creates an event without a reason.
    pub fn new(
        task: impl Into<String>,
        principal: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        let (task, principal, action) = (task.into(), principal.into(), action.into());
        Self { task, principal, action, reason: None }
    }
}

setters!(AuditEvent { reason: Option<String> });

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
