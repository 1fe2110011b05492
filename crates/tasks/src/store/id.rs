//! IDs, leases and times of a store.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// Milliseconds since 1970 by the clock of the store. The clocks of workers have no effect.
pub type UnixMillis = u64;

/// ID of a task: unguessable, and safe in an HTTP header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Creates an ID from a text, unchanged.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the beginning of the ID, for logs: enough to find the task in a list. The whole ID may be
    /// the only secret of an anonymous caller.
    pub fn prefix(&self) -> &str {
        const LENGTH: usize = 8;
        let end = self.0.char_indices().nth(LENGTH).map_or(self.0.len(), |(end, _)| end);
        &self.0[..end]
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// ID of a worker. A process gets a new ID each time it starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// Creates an ID from a text, unchanged.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time-limited right of one worker to write to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// Leased task.
    pub task: TaskId,
    /// Worker that has the lease.
    pub worker: WorkerId,
    /// Fencing token. Increases with every claim; the store rejects writes with an older epoch.
    pub epoch: u64,
}

impl Lease {
    /// Creates a lease.
    pub fn new(task: TaskId, worker: WorkerId, epoch: u64) -> Self {
        Self { task, worker, epoch }
    }
}

setters!(Lease { epoch: u64 });

#[cfg(test)]
mod tests {
    use super::TaskId;

    #[test]
    fn prefix_of_task_id_has_at_most_eight_characters() {
        assert_eq!(TaskId::new("0123456789abcdef").prefix(), "01234567");
        assert_eq!(TaskId::new("üüüüüüüüü").prefix(), "üüüüüüüü");
        assert_eq!(TaskId::new("t-1").prefix(), "t-1");
    }
}
