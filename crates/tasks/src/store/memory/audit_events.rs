//! Audit events in memory.

use std::collections::VecDeque;

use super::row::Row;
use crate::{
    store::{AuditEvent, AuditRecord, UnixMillis},
    time::millis,
};

/// Audit events, oldest first, each with the time of its expiry.
#[derive(Default)]
pub(super) struct AuditEvents {
    events: VecDeque<(AuditRecord, UnixMillis)>,
    /// Number of the last event, which may already be swept.
    last: u64,
}

impl AuditEvents {
    pub(super) fn append(
        &mut self,
        events: Vec<AuditEvent>,
        (now, retention): (UnixMillis, u64),
        max_events: u64,
    ) {
        let until = now.saturating_add(retention);
        for event in events {
            self.last += 1;
            self.events.push_back((AuditRecord { number: self.last, at: now, event }, until));
        }
        let surplus = (self.events.len() as u64).saturating_sub(max_events);
        self.events.drain(..usize::try_from(surplus).unwrap_or(usize::MAX));
    }

    /// Appends the event of the end of a task, if the task has one.
    pub(super) fn end(&mut self, row: &Row) {
        let (Some(audit), Some(outcome)) = (&row.end_audit, &row.outcome) else { return };
        let event = audit.event(&row.principal, outcome.kind());
        self.append(vec![event], (row.updated, millis(audit.retention)), u64::MAX);
    }

    pub(super) fn read(&self, task: Option<&str>, after: u64, limit: usize) -> Vec<AuditRecord> {
        let from = self.events.partition_point(|(audit, _)| audit.number <= after);
        let all = self.events.range(from..).map(|(audit, _)| audit);
        let wanted = all.filter(|audit| task.is_none_or(|task| audit.event.task == task));
        wanted.take(limit).cloned().collect()
    }

    /// Removes expired events from the front. With a constant retention, events expire in their
    /// order. After a change of the retention, some events are removed late.
    pub(super) fn sweep(&mut self, now: UnixMillis) {
        while self.events.front().is_some_and(|(_, until)| *until <= now) {
            self.events.pop_front();
        }
    }
}
