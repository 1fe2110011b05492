//! What happens to a task, one thing after the other: how far it is, what it asks, what it emits.

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

/// What happens to a task.
#[derive(Debug)]
pub struct TaskEvents<'a> {
    handle: &'a mut TaskHandle,
    feed: Option<Feed>,
    tracker: Tracker,
    /// Reads what was emitted before the questions that are held.
    catching_up: Option<CatchUp>,
    is_terminal: bool,
}

impl TaskHandle {
    /// Everything that happens to the task, one thing after the other. Questions are not put to the
    /// answerer unless [`TaskEvents::with_input_handler`] says so: they are events, to be answered with
    /// [`TaskHandle::respond`].
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

    /// Reads what the task emits, if there is a task.
    fn follow(&mut self) {
        self.feed = Feed::of(self.handle.core(), self.handle.task_id());
        // Its output and its questions come on different ways, and output goes first.
        self.handle.hold_questions(self.feed.is_some());
    }

    /// Puts questions to the answerer, as [`TaskHandle::wait`] does, in place of making events of them.
    #[must_use]
    pub fn with_input_handler(self) -> Self {
        self.handle.set_answering(true);
        self
    }

    /// The next event, or `None` after the last. Can be dropped while it waits.
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
                    // What is emitted cannot be read; the task itself is another matter.
                    Err(error) => {
                        tracing::warn!(%error, "partial results of a task do not come any more");
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

    /// Reads what the task has emitted until now, and lets the questions go that were held for it. Can be dropped
    /// while it waits.
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

    /// Responds to an input request, as [`TaskHandle::respond`].
    ///
    /// # Errors
    ///
    /// As [`TaskHandle::respond`].
    pub async fn respond(&mut self, input: &PendingInput, response: InputResponse) -> Result<()> {
        self.handle.respond(input, response).await
    }

    /// Asks the task to stop, as [`TaskHandle::cancel`]. What comes of that is among the events.
    ///
    /// # Errors
    ///
    /// As [`TaskHandle::cancel`].
    pub async fn cancel(&mut self) -> Result<()> {
        self.handle.cancel().await
    }
}
