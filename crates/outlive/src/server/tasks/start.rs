//! How a call becomes a task: at once, or when it takes too long.

use std::{
    future::{Future, poll_fn, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use outlive_protocol::{
    Call, CallEnd, CallFuture, ClientTaskSupport, MethodResult, Outcome, ProtocolError, StoredCall,
    TaskState, TaskView, era,
};
use outlive_tasks::{
    JournalSnapshot,
    engine::{self, CreateError, Promotion, TaskRun, UnacknowledgedTask},
    store::{IdempotencyKey, NewTask, TaskId, TaskOutcome},
};
use outlive_wire::{CallToolResult, ErrorObject, code};
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;

use super::{
    TaskPolicy, Tasks, error_of, millis, modes::Way, once::Once, refusal, stream::stream,
    unavailable, unknown_task,
};
use crate::server::{Cx, core::Core, durable::Durability, durable::random_id, tool::ToolEntry};

/// Which way a call goes.
pub(in crate::server) enum Course {
    /// It is answered when it is done.
    Inline,
    /// It becomes a task if it is not done after this time.
    Auto(Duration, Wish),
    /// It is a task from the beginning.
    Task(Wish),
}

/// What a caller says about the task that it may get.
#[derive(Clone, Copy, Default)]
pub(in crate::server) struct Wish {
    /// How long it should exist, in milliseconds.
    ttl: Option<u64>,
    /// How the call is to be answered.
    way: Way,
}

/// Decides which way a call goes, by what its tool allows and its caller can hold.
pub(in crate::server) fn course(
    core: &Core,
    call: &Call,
    entry: &ToolEntry,
) -> Result<Course, ProtocolError> {
    let policy = entry.policy();
    let Some(tasks) = &core.tasks else { return Ok(Course::Inline) };
    // Nothing is read for the tools that never become one.
    if policy == TaskPolicy::Never && !call.requests_task() {
        return Ok(Course::Inline);
    }
    let request = era::codec(call.rules().era).task_request(call)?;
    match (policy, request.support) {
        (TaskPolicy::Never, ClientTaskSupport::Requests { .. }) => {
            Err(ProtocolError::Custom(ErrorObject {
                code: code::METHOD_NOT_FOUND,
                message: "this tool runs no tasks; call it without `params.task`".to_owned(),
                data: None,
            }))
        }
        (TaskPolicy::Never, _) | (_, ClientTaskSupport::Unsupported) => Ok(Course::Inline),
        (_, ClientTaskSupport::Requests { ttl }) => {
            let way = Way::of(tasks, call, request.response_modes, entry.is_incremental())?;
            Ok(match way.immediate {
                true => Course::Auto(tasks.config.immediate_window, Wish { ttl, way }),
                false => Course::Task(Wish { ttl, way }),
            })
        }
        (TaskPolicy::Auto { after }, ClientTaskSupport::Accepts) => {
            Ok(Course::Auto(after, Wish::default()))
        }
        (TaskPolicy::Auto { .. }, _) => Ok(Course::Inline),
        (TaskPolicy::Always, ClientTaskSupport::Accepts) => Ok(Course::Task(Wish::default())),
        (TaskPolicy::Always, _) => Err(era::task_required(call.rules())),
    }
}

impl Course {
    /// Sends a call its way. `start` makes its work.
    pub(in crate::server) fn take(
        self,
        cx: Cx,
        entry: &Arc<ToolEntry>,
        start: impl FnOnce(&Cx) -> CallFuture + Send + 'static,
    ) -> CallFuture {
        let once = match Once::of(&cx, entry) {
            Ok(once) => once,
            Err(fault) => return Box::pin(ready(Err(fault))),
        };
        let entry = Arc::clone(entry);
        match (self, once) {
            (Self::Inline, None) => start(&cx),
            (Self::Inline, Some(once)) => Box::pin(once.run(cx, start)),
            (Self::Auto(after, wish), once) => {
                let key = once.as_ref().map(Once::key);
                let tool = Arc::clone(&entry);
                let auto = move |cx: &Cx| Auto::start(cx.clone(), entry, after, wish, key, start);
                let work = match once {
                    None => auto(&cx),
                    Some(once) => Box::pin(once.run(cx.clone(), auto)),
                };
                answered(cx, tool, wish, work)
            }
            (Self::Task(wish), once) => {
                let (asker, tool) = (cx.clone(), Arc::clone(&entry));
                let work = Box::pin(async move { create(&cx, &entry, wish, once).await });
                answered(asker, tool, wish, work)
            }
        }
    }
}

/// Answers a call in the way that was agreed on.
fn answered(cx: Cx, entry: Arc<ToolEntry>, wish: Wish, work: CallFuture) -> CallFuture {
    let way = wish.way;
    if way == Way::default() {
        return work;
    }
    Box::pin(async move {
        match work.await? {
            Outcome::Task(made) if way.streaming => {
                stream(Arc::clone(cx.core()), Arc::clone(cx.call()), made).await
            }
            Outcome::Task(mut made) => {
                made.fell_back = way.fell_back;
                Ok(Outcome::Task(made))
            }
            Outcome::Complete(MethodResult::Tool(result)) => {
                Ok(tracked(&cx, &entry, wish, result).await)
            }
            done => Ok(done),
        }
    })
}

/// A result that was there at once; kept as a task, where that is switched on.
async fn tracked(cx: &Cx, entry: &ToolEntry, wish: Wish, result: CallToolResult) -> Outcome {
    let kept = async {
        let tasks = cx.core().tasks().ok().filter(|tasks| tasks.config.track_immediate)?;
        let task = new_task(cx, entry, wish, None, Durability::of(cx).keep()).ok()?;
        let (id, outcome) = (task.id.clone(), TaskOutcome::Result(to_raw_value(&result).ok()?));
        match tasks.engine().store_finished(task, outcome).await {
            Ok(()) => Some(id),
            Err(why) => {
                tracing::warn!(reason = %why, "a result could not be stored as a task");
                None
            }
        }
    };
    Outcome::Complete(match kept.await {
        Some(id) => MethodResult::TaskResult(Box::new(result), id.as_str().to_owned()),
        None => MethodResult::Tool(result),
    })
}

/// Makes a task of a call that has not begun.
async fn create(
    cx: &Cx,
    entry: &ToolEntry,
    wish: Wish,
    once: Option<Once>,
) -> Result<Outcome, ProtocolError> {
    if let Some(once) = &once
        && let Some(done) = once.done(cx).await?
    {
        return Ok(done);
    }
    let once = once.map(|once| once.key());
    // What earlier rounds have recorded and answered is part of it.
    let durability = Durability::of(cx);
    durability.fetch(cx.core()).await?;
    let journal = durability.keep();
    let tasks = cx.core().tasks()?;
    let task = new_task(cx, entry, wish, once, journal)?;
    let (id, ttl) = (task.id.clone(), task.ttl);
    tasks.admit(cx.call(), &task).await?;
    let created_or_not = tasks.engine().create(task).await;
    if created_or_not.is_err() {
        tasks.peers.leave(&id);
    }
    match created_or_not {
        Ok(task) => Ok(created(tasks, entry, ttl, task)),
        Err(CreateError::Before(id)) => existing(cx, &id).await?.ok_or_else(unknown_task),
        Err(refused) => Err(refusal(tasks, cx.call(), refused)),
    }
}

/// The answer that says so. The task is there: its creation has been committed. Who has left before
/// does not learn of the task, and a task that nobody knows of is cancelled, unless its caller has a
/// key to ask for it again.
fn created(
    tasks: &Tasks,
    entry: &ToolEntry,
    ttl: Option<Duration>,
    task: UnacknowledgedTask,
) -> Outcome {
    let view = TaskView {
        id: task.task().as_str().to_owned(),
        created: task.created_at(),
        updated: task.created_at(),
        ttl: ttl.map(millis),
        poll: millis(tasks.config.poll),
        message: None,
        progress: None,
        immediate: entry.immediate().map(str::to_owned),
        fell_back: false,
        // However far it has come meanwhile: a task begins at work.
        state: TaskState::Working,
    };
    task.acknowledge();
    Outcome::Task(Box::new(view))
}

/// A task that was made before, as it is; `None` if it has been forgotten.
pub(super) async fn existing(cx: &Cx, id: &TaskId) -> Result<Option<Outcome>, ProtocolError> {
    let tasks = cx.core().tasks()?;
    let view = tasks.engine().view(cx.principal().key(), id).await;
    let shown = view.map_err(|error| unavailable(&error))?.map(|view| {
        let entry = cx.core().tools.get(&view.tool, cx.principal());
        let immediate = entry.and_then(|entry| entry.immediate().map(str::to_owned));
        Outcome::Task(Box::new(TaskView { immediate, ..tasks.show(view) }))
    });
    Ok(shown)
}

fn new_task(
    cx: &Cx,
    entry: &ToolEntry,
    wish: Wish,
    once: Option<IdempotencyKey>,
    mut journal: JournalSnapshot,
) -> Result<NewTask, ProtocolError> {
    entry.revisions().sign(&mut journal);
    let tasks = cx.core().tasks()?;
    let config = &tasks.config;
    let stored = StoredCall::of(cx.call()).map_err(ProtocolError::internal)?;
    let ttl = config.granted_ttl(wish.ttl);
    let rules = cx.call().rules();
    Ok(NewTask {
        id: TaskId::new(
            random_id().ok_or_else(|| ProtocolError::internal("no random bytes for a task"))?,
        ),
        principal: cx.principal().key().to_owned(),
        tool: entry.info.name.clone(),
        origin: match rules.streaming_task_origin {
            Some(origin) if wish.way.streaming => origin.to_owned(),
            _ => rules.task_origin.to_owned(),
        },
        listed: !cx.principal().is_anonymous(),
        request: to_raw_value(&stored).map_err(ProtocolError::internal)?,
        ttl: Some(ttl),
        max_ttl: config.max_ttl,
        journal,
        worker: None,
        idempotency: once,
        clean_up: entry.hook().is_some(),
        quota: tasks.quota(cx.call()),
        max_bytes: tasks.allowance(cx.principal().key()).max_bytes,
    })
}

/// A call that becomes a task when it takes too long: its run moves to the engine, which commits
/// it and then says so. The handler is never begun twice.
struct Auto {
    cx: Cx,
    entry: Arc<ToolEntry>,
    once: Option<IdempotencyKey>,
    after: Duration,
    wish: Wish,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stage: Stage,
    /// What it becomes, or does not after all.
    admitted: Option<TaskId>,
}

enum Stage {
    Inline(CallFuture),
    Moving(oneshot::Receiver<Promotion>),
    /// What is left to be polled is the answer: how far the task is, or, if it could not even be
    /// asked for, what the call comes to.
    Answering(CallFuture),
    /// It could not be a task, and goes on here.
    Back(engine::Work),
    Over,
}

impl Auto {
    fn start(
        cx: Cx,
        entry: Arc<ToolEntry>,
        after: Duration,
        wish: Wish,
        once: Option<IdempotencyKey>,
        start: impl FnOnce(&Cx) -> CallFuture,
    ) -> CallFuture {
        if entry.is_durable() {
            Durability::of(&cx).allow_task(true);
            if entry.promotes_at_step() {
                Durability::of(&cx).promote_at_step();
            }
        }
        let stage = Stage::Inline(start(&cx));
        Box::pin(Self { cx, entry, once, after, wish, timer: None, stage, admitted: None })
    }

    fn adopt(
        &mut self,
        work: CallFuture,
    ) -> Result<oneshot::Receiver<Promotion>, (ProtocolError, CallFuture)> {
        let cx = &self.cx;
        let core = cx.core();
        let durability = Durability::of(cx);
        let once = self.once.clone();
        let task = match new_task(cx, &self.entry, self.wish, once, durability.keep()) {
            Ok(task) => task,
            Err(fault) => return Err((fault, work)),
        };
        let Ok(tasks) = core.tasks() else { return Err((ProtocolError::Internal, work)) };
        if let Err(over) = tasks.admits(cx.call(), &task) {
            return Err((over.into(), work));
        }
        self.admitted = Some(task.id.clone());
        durability.set_task(core, cx.call(), Some(task.id.as_str()));
        let run = TaskRun {
            journal: Arc::clone(&durability.journal),
            work: as_task(Arc::clone(core), Arc::clone(cx.call()), work),
            cancel: canceller(cx.call()),
            resumes: self.entry.is_durable(),
            cleans_up: self.entry.hook().is_some(),
        };
        Ok(tasks.engine().promote(task, run))
    }
}

impl Future for Auto {
    type Output = Result<Outcome, ProtocolError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.stage {
                Stage::Inline(work) => {
                    if let Poll::Ready(outcome) = work.as_mut().poll(task) {
                        self.stage = Stage::Over;
                        return Poll::Ready(outcome);
                    }
                    let timer = self.timer.take();
                    let clock = &self.cx.core().profile.clock;
                    let mut timer = timer.unwrap_or_else(|| clock.sleep(self.after));
                    let durability = self.cx.call().attached::<Durability>();
                    let must = durability.is_some_and(Durability::wants_task);
                    if !must && timer.as_mut().poll(task).is_pending() {
                        self.timer = Some(timer);
                        return Poll::Pending;
                    }
                    let Stage::Inline(work) = std::mem::replace(&mut self.stage, Stage::Over)
                    else {
                        continue;
                    };
                    self.stage = match self.adopt(work) {
                        Ok(moving) => Stage::Moving(moving),
                        Err((fault, work)) => {
                            tracing::warn!(%fault, "a call could not become a task");
                            Durability::of(&self.cx).allow_task(false);
                            Stage::Answering(work)
                        }
                    };
                }
                Stage::Moving(moving) => {
                    let Poll::Ready(adopted) = Pin::new(moving).poll(task) else {
                        return Poll::Pending;
                    };
                    self.stage = match adopted {
                        Ok(Promotion::Task(task)) => {
                            self.stage = Stage::Over;
                            let tasks = self.cx.core().tasks()?;
                            let ttl = tasks.config.granted_ttl(self.wish.ttl);
                            return Poll::Ready(Ok(created(tasks, &self.entry, Some(ttl), task)));
                        }
                        Ok(Promotion::Refused(work, why)) => {
                            tracing::warn!(reason = %why, "a call could not become a task; it runs on inline");
                            if let (Ok(tasks), Some(id)) = (self.cx.core().tasks(), &self.admitted)
                            {
                                tasks.peers.leave(id);
                            }
                            let durability = Durability::of(&self.cx);
                            durability.set_task(self.cx.core(), self.cx.call(), None);
                            durability.allow_task(false);
                            durability.journal.stop_writing();
                            Stage::Back(work)
                        }
                        Err(_) => return Poll::Ready(Err(ProtocolError::Internal)),
                    };
                }
                Stage::Answering(work) => return work.as_mut().poll(task),
                Stage::Back(work) => return work.as_mut().poll(task).map(as_outcome),
                Stage::Over => return Poll::Ready(Err(ProtocolError::Internal)),
            }
        }
    }
}

/// The work of a call as that of a task.
pub(super) fn as_task(core: Arc<Core>, call: Arc<Call>, mut work: CallFuture) -> engine::Work {
    Box::pin(async move {
        let done = poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            let durability = call.attached::<Durability>();
            match durability.and_then(Durability::unreadable) {
                Some(why) => Poll::Ready(Err(super::internal(why))),
                None => polled.map(Ok),
            }
        });
        let done = match done.await {
            Ok(done) => done,
            Err(error) => return TaskOutcome::Error(error),
        };
        // A handler that was asked to stop and then fails has stopped: that is no failure of the tool.
        let has_failed = match &done {
            Ok(Outcome::Complete(MethodResult::Tool(result))) => result.is_error == Some(true),
            Ok(_) => false,
            Err(_) => true,
        };
        let was_asked = match call.attached::<Durability>() {
            Some(durability) => durability.is_task_cancelled(),
            None => call.port().is_cancelled(),
        };
        let is_cancelled = has_failed && was_asked;
        let end = if is_cancelled { CallEnd::TaskCancelled } else { CallEnd::Task(&done) };
        call.report(end, || core.profile.clock.now());
        if is_cancelled {
            return TaskOutcome::Cancelled;
        }
        match done {
            Ok(Outcome::Complete(MethodResult::Tool(result))) => match to_raw_value(&result) {
                Ok(raw) => TaskOutcome::Result(raw),
                Err(error) => TaskOutcome::Error(super::internal(&error.to_string())),
            },
            Ok(other) => {
                tracing::error!(?other, "a task ended with something that is no result");
                TaskOutcome::Error(super::internal("internal error"))
            }
            Err(fault) => TaskOutcome::Error(error_of(&core, &call, &fault)),
        }
    })
}

/// And back again.
fn as_outcome(outcome: TaskOutcome) -> Result<Outcome, ProtocolError> {
    match outcome {
        TaskOutcome::Result(raw) => match serde_json::from_str(raw.get()) {
            Ok(result) => Ok(Outcome::Complete(MethodResult::Tool(result))),
            Err(error) => Err(ProtocolError::internal(error)),
        },
        TaskOutcome::Error(error) => Err(ProtocolError::Custom(error)),
        TaskOutcome::Cancelled | TaskOutcome::Expired => Err(ProtocolError::Internal),
    }
}

/// Tells the handler of a task that it should stop.
pub(super) fn canceller(call: &Arc<Call>) -> Box<dyn Fn() + Send + Sync> {
    let call = Arc::clone(call);
    Box::new(move || {
        // Noted first: a handler that the port wakes reads it.
        if let Some(durability) = call.attached::<Durability>() {
            durability.cancel_task();
        }
        call.port().cancel();
    })
}
