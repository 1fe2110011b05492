//! A call that made a task and is answered with its content as it grows: several responses with one
//! id, in a dialect of 2025-11-25.
//!
//! The stream reads what the store has: a block is there before it is sent, whichever replica the
//! task runs on; if it runs on this one, the block is still at hand. It holds one message at a time;
//! a reader that is slow reads larger pieces later.

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
        lookup::{LOOK, look},
        segments::{as_content, is_all, page, page_at_hand, rest},
    },
};

/// Answers a call with the content of the task that it has made.
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
        // Nothing is read that could not be sent.
        poll_fn(|cx| call.port().poll_room(cx)).await;
        if Instant::now() >= expires {
            // Whether it is over is for the store to say, and nobody may have asked it.
            tasks.engine().sweep().await;
            expires = Instant::now() + LOOK;
        }
        let changed = watch.notified();
        let again = Instant::now() + LOOK;
        // Nearly always there is nothing but more of them to know.
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
        // Before the blocks: when it has ended, all of them are there.
        let view = look(tasks, &call, &stream.id).await?;
        let read = stream.read(&view).await?;
        match read {
            Read::Last(rest) => return Ok(Outcome::Complete(MethodResult::Rest(rest))),
            // There may be more where that came from.
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

/// How long a task exists that has just been made. One without an end, or with one that is far away,
/// is looked at now and then.
fn made_for(made: &TaskView) -> Duration {
    const LONG: Duration = Duration::from_secs(3600);
    made.ttl.map_or(LONG, Duration::from_millis).min(LONG)
}

struct Stream<'a> {
    env: &'a Env,
    tasks: &'a TaskBackend,
    call: &'a Call,
    id: TaskId,
    /// The task as it was made, until the client has been told of it.
    made: Option<Box<TaskView>>,
    /// The number of the last block that was sent.
    sent: u64,
}

/// What was found, and sent if it was not the end.
enum Read {
    None,
    Some,
    Last(Box<outlive_protocol::FinalSegments>),
}

impl Stream<'_> {
    /// Reads what has been emitted since the last time, and sends it.
    async fn read(&mut self, view: &TaskRecord) -> Result<Read, ProtocolError> {
        if let Some(outcome @ (TaskOutcome::Cancelled | TaskOutcome::Expired)) = &view.outcome {
            // Nothing more is sent, though it may have been emitted.
            let nothing = Segments { first: self.sent + 1, blocks: Vec::new() };
            return Ok(Read::Last(Box::new(rest(&self.id, nothing, self.sent, outcome)?)));
        }
        let page = page(self.tasks, self.call, &self.id, self.sent).await?;
        let blocks = Segments { first: self.sent + 1, blocks: page.blocks };
        if let Some(outcome) = view.outcome.as_ref().filter(|_| is_all(&blocks, page.last)) {
            self.tasks.note(self.call, &self.id, "retrieved", None);
            let last = rest(&self.id, blocks, page.last, outcome)?;
            let failed = last.end.as_ref().is_some_and(|end| end.is_error == Some(true));
            let last = if failed && page.last == 0 { as_content(last)? } else { last };
            return Ok(Read::Last(Box::new(last)));
        }
        if blocks.blocks.is_empty() {
            // It has ended since it was looked at.
            return Ok(if page.ended { Read::Some } else { Read::None });
        }
        self.sent += blocks.blocks.len() as u64;
        self.push(Some(blocks));
        Ok(Read::Some)
    }

    /// Sends more blocks of a task that neither has ended nor asks; says whether these were all.
    /// `None` if there is something else to know.
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

    /// Sends a piece; the first one says which task it belongs to.
    fn push(&mut self, blocks: Option<Segments>) {
        let (id, task) = (self.id.as_str().to_owned(), self.made.take());
        self.call.port().partial(Box::new(PartialResponse { id, task, blocks }));
    }

    /// Tells that the task waits for an answer, or goes on. How it has ended is the last response.
    fn tell_status(&self, view: &TaskRecord, told: &mut Option<bool>) {
        let asks = !view.input_requests.is_empty();
        if told.replace(asks).is_some_and(|before| before != asks) {
            let bound = self.env.profile.limits.max_queued_notifications;
            let shown = self.tasks.show(view.clone());
            self.call.port().send(Notify::Task(Box::new(shown)), bound);
        }
    }
}

/// The tasks whose content is being sent on a session. Until the last of it is on its way, such a task
/// has not ended for whoever asks there.
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

    /// A task as it is for the session that a call came on.
    pub(crate) fn seen_from(call: &Call, mut shown: TaskView) -> TaskView {
        let Some(session) = call.session().filter(|_| shown.state.is_terminal()) else {
            return shown;
        };
        let streams = session.state(Self::default);
        let streams = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Its run lets go of a call when it has written the last response.
        let id = TaskId::new(shown.id.as_str());
        if streams.get(&id).is_some_and(|call| call.strong_count() > 0) {
            shown.state = TaskState::Working;
        }
        shown
    }
}
