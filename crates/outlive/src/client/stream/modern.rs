//! Segments of a call that may be a task.

use std::sync::Arc;

use super::brought::Brought;
use crate::client::{
    core::Core,
    error::Result,
    tasks::{Feed, TaskEvent, TaskHandle, fed},
    tracker::Tracker,
};

/// Segments of a call that may be a task, and its result.
#[derive(Debug)]
pub(crate) struct Segments {
    handle: TaskHandle,
    feed: Option<Feed>,
}

impl Segments {
    pub(crate) fn new(core: &Arc<Core>, handle: TaskHandle) -> Self {
        let feed = Feed::of(core, handle.task_id());
        Self { handle, feed }
    }

    /// Passes the next segments to the tracker, or returns the end.
    pub(crate) async fn bring(&mut self, tracker: &mut Tracker) -> Result<Brought> {
        tokio::select! {
            biased;
            fed = fed(&mut self.feed, tracker) => fed?,
            event = self.handle.drive_on() => {
                if let TaskEvent::Done(result) = event? {
                    return Ok(Brought::Whole(result));
                }
            }
        }
        Ok(Brought::More)
    }
}
