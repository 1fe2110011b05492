//! Events of a task: status, input requests and partial results.

use super::{
    complete::TaskEvent,
    handle::TaskHandle,
    segments::{CatchUp, Feed, fed},
};
use crate::client::{
    error::Result,
    input::{InputResponse, PendingInput},
    segment::segment,
    tracker::Tracker,
};

/// Stream of the events of a task.
#[derive(Debug)]
pub struct TaskEvents<'a> {
    handle: &'a mut TaskHandle,
    feed: Option<Feed>,
    tracker: Tracker,
    /// Fetches the segments emitted before the held input requests.
    catching_up: Option<CatchUp>,
    is_terminal: bool,
}

impl TaskHandle {
    /// Returns the events of the task. Input requests are events, to be answered with
    /// [`TaskHandle::respond`], unless [`TaskEvents::with_input_handler`] is set.
    pub fn events(&mut self) -> TaskEvents<'_> {
        self.stop_answering();
        TaskEvents::new(self)
    }
}

impl<'a> TaskEvents<'a> {
    fn new(handle: &'a mut TaskHandle) -> Self {
        let tracker = Tracker::new(handle.core().limits().max_segment_bytes);
        let mut events =
            Self { handle, feed: None, tracker, catching_up: None, is_terminal: false };
        events.follow();
        events
    }

    /// Starts to read partial results, if there is a task.
    fn follow(&mut self) {
        self.feed = Feed::of(self.handle.core(), self.handle.task_id());
        // Segments and input requests arrive separately, and segments come first.
        self.handle.hold_questions(self.feed.is_some());
    }

    /// Passes input requests to the input handler, as [`TaskHandle::wait`] does, instead of
    /// returning them.
    #[must_use]
    pub fn with_input_handler(self) -> Self {
        self.handle.set_answering(true);
        self
    }

    /// Returns the next event, or `None` after the last. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<TaskEvent>> {
        if self.is_terminal {
            return None;
        }
        if self.handle.is_starting() {
            match self.handle.start().await {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => self.follow(),
                Err(error) => {
                    self.is_terminal = true;
                    return Some(Err(error));
                }
            }
        }
        loop {
            if let Some((number, block)) = self.tracker.give() {
                let segment = segment(number, block).map(Box::new);
                return Some(segment.map(TaskEvent::Segment));
            }
            if self.handle.is_holding() {
                self.catch_up().await;
                continue;
            }
            let event = tokio::select! {
                biased;
                fed = fed(&mut self.feed, &mut self.tracker) => match fed {
                    Ok(()) => continue,
                    // A failure of the partial results does not affect the task.
                    Err(error) => {
                        tracing::warn!(%error, "cannot read the partial results of a task");
                        self.feed = None;
                        self.handle.hold_questions(false);
                        continue;
                    }
                },
                event = self.handle.drive_on() => event,
            };
            self.is_terminal = match &event {
                Ok(TaskEvent::Done(_)) => true,
                Ok(_) => false,
                Err(error) => !error.is_transient(),
            };
            return Some(event);
        }
    }

    /// Fetches the segments emitted so far and releases the held input requests. Cancel safe.
    async fn catch_up(&mut self) {
        let (core, id) = (self.handle.core(), self.handle.task_id().unwrap_or_default());
        let after = self.tracker.contiguous();
        let catching_up = self.catching_up.get_or_insert_with(|| CatchUp::new(core, id, after));
        let has_all = catching_up.finish(&mut self.tracker).await;
        self.catching_up = None;
        if has_all {
            self.handle.release_questions();
        }
    }

    /// Responds to an input request, like [`TaskHandle::respond`].
    ///
    /// # Errors
    ///
    /// Same as [`TaskHandle::respond`].
    pub async fn respond(&mut self, input: &PendingInput, response: InputResponse) -> Result<()> {
        self.handle.respond(input, response).await
    }

    /// Cancels the task, like [`TaskHandle::cancel`]. The outcome arrives as an event.
    ///
    /// # Errors
    ///
    /// Same as [`TaskHandle::cancel`].
    pub async fn cancel(&mut self) -> Result<()> {
        self.handle.cancel().await
    }
}
