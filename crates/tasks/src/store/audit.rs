//! Records of the audit log.

use serde::{Deserialize, Serialize};

use super::id::UnixMillis;
use crate::setters::setters;

/// Something that a principal or a worker did to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The task: its ID, or a digest where the ID gives access to the task.
    pub task: String,
    /// Who did it.
    pub principal: String,
    /// What: one word, or several with dashes.
    pub action: String,
    /// Why, or how it went.
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
    /// Its sequence number.
    pub number: u64,
    /// When the store recorded it.
    pub at: UnixMillis,
    /// The event.
    pub event: AuditEvent,
}

impl AuditRecord {
    /// Creates a record.
    pub fn new(number: u64, at: UnixMillis, event: AuditEvent) -> Self {
        Self { number, at, event }
    }
}
