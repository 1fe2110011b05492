//! Responds to the call that created a task with the task's content as it grows: several responses
//! with one ID, in a dialect of 2025-11-25.
//!
//! The stream reads segments from the store, so it works for tasks on every replica. Segments of a
//! task in this process come from memory. The stream buffers one message; a slow reader receives
//! larger messages later.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use outlive_protocol::{
    Call, MethodResult, Notify, Outcome, PartialResponse, ProtocolError, Segments, TaskState,
    TaskView,
};
use outlive_tasks::store::{TaskId, TaskOutcome, TaskRecord};
use tokio::time::{Instant, sleep_until};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    tasks::{
        inputs::{Dialogue, take, tell_progress},
        lookup::{LOOK, look_without_parts, whole},
        segments::{as_content, is_all, page, page_at_hand, rest},
    },
};

/// Streams the content of a task as responses to the call that created it.
pub(crate) async fn stream(
    env: Arc<Env>,
    call: Arc<Call>,
    made: Box<TaskView>,
) -> Result<Outcome, ProtocolError> {
    let id = TaskId::new(made.id.as_str());
    Streams::enter(&call, &id);
    let tasks = env.tasks()?;
    let window = Instant::now() + tasks.config.immediate_window;
    let mut expires = Instant::now() + made_for(&made);
    let mut stream = Stream { env: &env, tasks, call: &call, id, made: Some(made), sent: 0 };
    let mut dialogue = Dialogue::default();
    let mut told = None;
    let watch = tasks.engine().watch(&stream.id);
    loop {
        // Backpressure: segments are read only when the stream can accept them.
        poll_fn(|cx| call.port().poll_room(cx)).await;
        if Instant::now() >= expires {
            // The store decides whether the TTL has expired, and needs a sweep to do so.
            tasks.engine().sweep().await;
            expires = Instant::now() + LOOK;
        }
        let changed = watch.notified();
        let again = Instant::now() + LOOK;
        // The common case is more segments and no other change.
        if told != Some(true)
            && let Some(is_all) = stream.read_on().await?
        {
            if is_all {
                tokio::select! {
                    () = changed => {}
                    () = sleep_until(again.min(expires)) => {}
                }
            }
            continue;
        }
        // The record is read before the segments: if it is terminal, all segments are stored.
        let view = look_without_parts(tasks, &call, &stream.id).await?;
        let read = stream.read(&view).await?;
        match read {
            Read::Last(rest) => return Ok(Outcome::Complete(MethodResult::Rest(rest))),
            // There may be more segments.
            Read::Some => continue,
            Read::None => {}
        }
        let asks = !view.input_requests.is_empty();
        if stream.made.is_some() && (asks || Instant::now() >= window) {
            stream.push(None);
            continue;
        }
        tell_progress(&env, &call, &view);
        stream.tell_status(&view, &mut told);
        dialogue.ask(&env, &call, &stream.id, view.input_requests.clone());
        let wake = if stream.made.is_some() { window.min(again) } else { again };
        tokio::select! {
            () = changed => {}
            () = sleep_until(wake) => {}
            () = sleep_until(expires) => {}
            (name, answer) = dialogue.answered() => {
                take(tasks, &call, &stream.id, name, answer).await?;
            }
        }
    }
}

/// Returns the TTL of a new task, at most an hour. Tasks without a TTL or with a longer one are
/// checked every hour.
fn made_for(made: &TaskView) -> Duration {
    const LONG: Duration = Duration::from_secs(3600);
    made.ttl.map_or(LONG, Duration::from_millis).min(LONG)
}

struct Stream<'a> {
    env: &'a Env,
    tasks: &'a TaskBackend,
    call: &'a Call,
    id: TaskId,
    /// The task as created, until the first response has announced it to the client.
    made: Option<Box<TaskView>>,
    /// Sequence number of the last sent segment.
    sent: u64,
}

/// Result of a read. All segments except the final ones are sent already.
enum Read {
    None,
    Some,
    Last(Box<outlive_protocol::FinalSegments>),
}

impl Stream<'_> {
    /// Reads the segments since the last read and sends them.
    async fn read(&mut self, view: &TaskRecord) -> Result<Read, ProtocolError> {
        if let Some(outcome @ (TaskOutcome::Cancelled | TaskOutcome::Expired)) = &view.outcome {
            // Segments of a cancelled or expired task are no longer sent.
            let nothing = Segments { first: self.sent + 1, blocks: Vec::new() };
            return Ok(Read::Last(Box::new(rest(&self.id, nothing, self.sent, outcome)?)));
        }
        let page = page(self.tasks, self.call, &self.id, self.sent).await?;
        let blocks = Segments { first: self.sent + 1, blocks: page.blocks };
        if is_all(&blocks, page.last)
            && let Some(outcome) = view.outcome.clone()
        {
            let outcome = whole(self.tasks, self.call, &self.id, outcome).await?;
            self.tasks.note(self.call, &self.id, "retrieved", None);
            let last = rest(&self.id, blocks, page.last, &outcome)?;
            let failed = last.end.as_ref().is_some_and(|end| end.is_error == Some(true));
            let last = if failed && page.last == 0 { as_content(last)? } else { last };
            return Ok(Read::Last(Box::new(last)));
        }
        if blocks.blocks.is_empty() {
            // If the task has ended since the record was read, another read follows.
            return Ok(if page.ended { Read::Some } else { Read::None });
        }
        self.sent += blocks.blocks.len() as u64;
        self.push(Some(blocks));
        Ok(Read::Some)
    }

    /// Sends new segments of a task that neither has ended nor requires input. Returns whether they
    /// were the last ones, or `None` if the record must be read.
    async fn read_on(&mut self) -> Result<Option<bool>, ProtocolError> {
        let page = match page_at_hand(self.tasks, self.call, &self.id, self.sent) {
            Some(page) => page,
            None => page(self.tasks, self.call, &self.id, self.sent).await?,
        };
        if page.ended || page.input_required || page.blocks.is_empty() {
            return Ok(None);
        }
        let blocks = Segments { first: self.sent + 1, blocks: page.blocks };
        let is_all = is_all(&blocks, page.last);
        self.sent += blocks.blocks.len() as u64;
        self.push(Some(blocks));
        Ok(Some(is_all))
    }

    /// Sends segments. The first response announces the task.
    fn push(&mut self, blocks: Option<Segments>) {
        let (id, task) = (self.id.as_str().to_owned(), self.made.take());
        self.call.port().partial(Box::new(PartialResponse { id, task, blocks }));
    }

    /// Notifies the client when the status changes between `working` and `input_required`. The
    /// terminal status is the last response.
    fn tell_status(&self, view: &TaskRecord, told: &mut Option<bool>) {
        let asks = !view.input_requests.is_empty();
        if told.replace(asks).is_some_and(|before| before != asks) {
            let bound = self.env.profile.limits.max_queued_notifications;
            let shown = self.tasks.show(view.clone());
            self.call.port().send(Notify::Task(Box::new(shown)), bound);
        }
    }
}

/// Tasks whose content is being streamed on a session. Their status stays `working` on this session
/// until the last response is written.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<TaskId, Weak<Call>>>);

impl Streams {
    fn enter(call: &Arc<Call>, id: &TaskId) {
        let Some(session) = call.session() else { return };
        let streams = session.state(Self::default);
        let mut streams = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|_, call| call.strong_count() > 0);
        streams.insert(id.clone(), Arc::downgrade(call));
    }

    /// Returns the view of a task as the session of a call sees it.
    pub(crate) fn seen_from(call: &Call, mut shown: TaskView) -> TaskView {
        let Some(session) = call.session().filter(|_| shown.state.is_terminal()) else {
            return shown;
        };
        let streams = session.state(Self::default);
        let streams = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The run drops its call after it has written the last response.
        let id = TaskId::new(shown.id.as_str());
        if streams.get(&id).is_some_and(|call| call.strong_count() > 0) {
            shown.state = TaskState::Working;
        }
        shown
    }
}
