//! Hints that tasks changed, for pages that update themselves.

use std::fmt;

use outlive_tasks::store::{ChangeSource, TaskId};
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::{error::PeopleError, roles::Visitor, state::People};

/// Maximum number of hints that wait for a reader. A slow reader misses the oldest.
const MAX_WAITING: usize = 1_024;

/// Hints that tasks changed.
pub struct Changes(broadcast::Receiver<TaskId>);

impl People {
    /// Returns hints that tasks changed, of all callers. Must be called inside a Tokio runtime.
    ///
    /// A hint carries no permission: read the task with another function before a part of it leaves
    /// the server. Hints may be missed or repeated, so a reader must also poll.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) for the holder of an answer link.
    pub async fn changes(&self, visitor: &Visitor) -> Result<Changes, PeopleError> {
        if visitor.linked_digest().is_some() {
            return Err(PeopleError::NotFound);
        }
        // One listener for all readers: a store keeps its listeners as long as it is open.
        let sender = self.changes_channel().get_or_init(|| {
            let (sender, _) = broadcast::channel(MAX_WAITING);
            let listener = sender.clone();
            self.store().subscribe(std::sync::Arc::new(move |task: &TaskId, _: ChangeSource| {
                // Fails only without readers.
                let _ = listener.send(task.clone());
            }));
            sender
        });
        Ok(Changes(sender.subscribe()))
    }
}

impl Changes {
    /// Waits for the next hint. Returns `None` when the server has stopped. Dropping the future
    /// loses no hint.
    pub async fn next(&mut self) -> Option<TaskId> {
        loop {
            match self.0.recv().await {
                Ok(task) => return Some(task),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Changes {
    /// Returns the next hint that is available without waiting.
    pub fn next_ready(&mut self) -> Option<TaskId> {
        loop {
            match self.0.try_recv() {
                Ok(task) => return Some(task),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changes")
    }
}
