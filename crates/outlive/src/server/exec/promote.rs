//! Turns a call into a task: at its start, or when it runs too long.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError, StoredCall};
use outlive_tasks::{
    JournalSnapshot,
    engine::{self, CreateError, Engine, Promotion, UnacknowledgedTask},
    store::{IdempotencyKey, NewTask, TaskId},
};
use serde_json::value::to_raw_value;

use crate::server::{
    env::{
        bridges::Waiting,
        task_backend::TaskBackend,
        task_error::{unavailable, unknown_task},
    },
    exec::{
        executable::Executable,
        idempotency::{IdempotencyGuard, key_conflict},
        plan::TaskOptions,
        task_reply::{created, existing},
        task_run::{as_outcome, task_run},
    },
    extract::cx::Cx,
    random::random_id,
    run::{journal_offload, state::RunState},
    tasks::attending::Attending,
};

/// Creates a task for a call whose handler has not started.
pub(crate) fn create_task(
    cx: &Cx,
    target: &Arc<Executable>,
    options: TaskOptions,
    guard: Option<IdempotencyGuard>,
) -> CallFuture {
    let (cx, run) = cx.with_run();
    let target = Arc::clone(target);
    Box::pin(async move { create(&cx, &run, &target, options, guard).await })
}

async fn create(
    cx: &Cx,
    run: &RunState,
    target: &Executable,
    options: TaskOptions,
    guard: Option<IdempotencyGuard>,
) -> Result<Outcome, ProtocolError> {
    if let Some(guard) = &guard
        && let Some(done) = guard.done(cx).await?
    {
        return Ok(done);
    }
    let key = guard.map(|guard| guard.key());
    // The journal of earlier rounds is part of the task.
    journal_offload::fetch(cx.env(), run).await?;
    let tasks = cx.env().tasks()?;
    let task = new_task(cx, target, options, key, run.snapshot(cx.env()))?;
    let (id, ttl) = (task.id.clone(), task.ttl);
    tasks.admit(cx.call(), &task).await?;
    let result = store(cx, run, tasks.engine(), task).await;
    if result.is_err() {
        tasks.not_created(&id);
    }
    match result {
        Ok(task) => Ok(created(tasks, target, ttl, task)),
        Err(CreateError::Existing(id)) => existing(cx, target, &id).await?.ok_or_else(unknown_task),
        Err(error) => Err(create_error(tasks, cx.call(), error)),
    }
}

/// Stores a new task. The request of a bridged call then waits for it.
pub(crate) async fn store(
    cx: &Cx,
    run: &RunState,
    engine: &Engine,
    task: NewTask,
) -> Result<UnacknowledgedTask, CreateError> {
    let Some(waiting) = waiting(cx, run) else { return engine.create(task).await };
    let engine = engine.clone();
    let write = async move {
        let _waiting = waiting;
        engine.create(task).await
    };
    Attending::new(cx.env(), cx.call(), write, |task| task.ok().map(acknowledged)).await
}

/// Records that the request of a bridged call waits for its run. Returns `None` for another call.
fn waiting(cx: &Cx, run: &RunState) -> Option<Waiting> {
    let (tasks, bridged) = (cx.env().tasks.as_ref()?, run.bridged()?);
    Some(tasks.bridges.enter(&bridged.fingerprint))
}

/// Acknowledges a task and returns its ID. The request has ended, and leaves the task next.
fn acknowledged(task: UnacknowledgedTask) -> TaskId {
    let id = task.task().clone();
    task.acknowledge();
    id
}

/// Returns the error for a caller whose task was not created.
pub(crate) fn create_error(tasks: &TaskBackend, call: &Call, error: CreateError) -> ProtocolError {
    match error {
        CreateError::QuotaExceeded => ProtocolError::OverLimit {
            limit: if call.principal().is_anonymous() {
                "max_anonymous_tasks"
            } else {
                "max_tasks_per_caller"
            }
            .into(),
            retry_after: Duration::from_secs(1),
        },
        CreateError::BytesExceeded => tasks.over_bytes(call.principal()),
        CreateError::KeyConflict => key_conflict(),
        CreateError::Store(error) => unavailable(&error),
        other => ProtocolError::internal(format_args!("task not created: {other:?}")),
    }
}

/// Returns the task record for a call.
pub(crate) fn new_task(
    cx: &Cx,
    target: &Executable,
    options: TaskOptions,
    key: Option<IdempotencyKey>,
    mut journal: JournalSnapshot,
) -> Result<NewTask, ProtocolError> {
    target.policy.replay.sign(&mut journal);
    let tasks = cx.env().tasks()?;
    let config = &tasks.config;
    let stored = StoredCall::of(cx.call()).map_err(ProtocolError::internal)?;
    let ttl = config.granted_ttl(options.ttl);
    let rules = cx.call().rules();
    let id = random_id().ok_or_else(|| ProtocolError::internal("no random bytes for a task"))?;
    let origin = match rules.streaming_task_origin {
        Some(origin) if options.streaming => origin,
        _ => rules.task_origin,
    };
    let (principal, tool) = (cx.principal().key(), target.name.clone());
    let notify = tasks.subscriptions(&tool);
    let tags = match config.indexed {
        true => target.policy.tags(cx.call().arguments()?),
        false => Vec::new(),
    };
    let request = to_raw_value(&stored).map_err(ProtocolError::internal)?;
    Ok(NewTask::new(TaskId::new(id), principal, tool, origin, request)
        .listed(!cx.principal().is_anonymous())
        .ttl(Some(ttl))
        .max_ttl(config.max_ttl)
        .journal(journal)
        .idempotency(key)
        .bridge(cx.run().and_then(|run| run.bridged()).map(|bridged| bridged.record(tasks)))
        .rerun_of(cx.call().rerun_of().map(TaskId::new))
        .person(cx.principal().person().map(str::to_owned))
        .indexed(config.indexed)
        .clean_up(target.policy.cleanup.is_some())
        .notify(notify)
        .tags(tags)
        .quota(tasks.quota(cx.call()))
        .max_bytes(tasks.allowance(principal).max_bytes))
}

/// Runs a call inline and promotes it if it runs longer than `after`. The engine takes over the
/// run: the handler is not restarted.
pub(crate) fn inline_then_task(
    cx: &Cx,
    target: &Arc<Executable>,
    work: CallFuture,
    after: Duration,
    options: TaskOptions,
    key: Option<IdempotencyKey>,
) -> CallFuture {
    let (cx, run) = cx.with_run();
    let target = Arc::clone(target);
    let stage = Stage::Inline(work);
    Box::pin(InlineThenTask { cx, run, target, key, after, options, timer: None, stage, id: None })
}

/// A call that is promoted if it runs too long.
struct InlineThenTask {
    cx: Cx,
    run: Arc<RunState>,
    target: Arc<Executable>,
    key: Option<IdempotencyKey>,
    after: Duration,
    options: TaskOptions,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stage: Stage,
    /// ID of the task, after quota is reserved for it.
    id: Option<TaskId>,
}

enum Stage {
    Inline(CallFuture),
    /// The engine commits the task.
    Promoting(Promoting),
    /// The promotion failed, and the call runs inline to its end.
    StaysInline(CallFuture),
    /// The promotion failed after the engine took the future; the call runs inline to its end.
    Returned(engine::Work),
    Over,
}

/// A promotion that the engine commits.
type Promoting = Pin<Box<dyn Future<Output = Option<Promotion>> + Send>>;

impl InlineThenTask {
    /// Waits until the call has run for `after`, or its handler waits for the promotion.
    fn poll_due(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let clock = &self.cx.env().profile.clock;
        let mut timer = self.timer.take().unwrap_or_else(|| clock.sleep(self.after));
        if !self.run.is_promotion_requested() && timer.as_mut().poll(task).is_pending() {
            self.timer = Some(timer);
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Passes the run to the engine. Returns the reason and the run if that fails.
    fn promote(&mut self, work: CallFuture) -> Result<Promoting, (ProtocolError, CallFuture)> {
        let (cx, run) = (&self.cx, &self.run);
        run.prepare_promotion();
        let task = match new_task(
            cx,
            &self.target,
            self.options,
            self.key.clone(),
            run.snapshot(cx.env()),
        ) {
            Ok(task) => task,
            Err(error) => return Err((error, work)),
        };
        let Ok(tasks) = cx.env().tasks() else { return Err((ProtocolError::Internal, work)) };
        if let Err(over) = tasks.admits(cx.call(), &task) {
            return Err((over.into(), work));
        }
        self.id = Some(task.id.clone());
        run.promote(cx.env(), task.id.clone());
        let waiting = waiting(cx, run);
        let run = task_run(cx.env(), cx.call(), Arc::clone(run), &self.target, work);
        let promotion = tasks.engine().promote(task, run);
        let Some(waiting) = waiting else { return Ok(Box::pin(async { promotion.await.ok() })) };
        let promotion = async move {
            let _waiting = waiting;
            promotion.await.ok()
        };
        let attended = |promotion: Option<Promotion>| match promotion? {
            Promotion::Task(task) => Some(acknowledged(task)),
            Promotion::Refused(..) => None,
        };
        Ok(Box::pin(Attending::new(cx.env(), cx.call(), promotion, attended)))
    }

    /// Returns the outcome if the call is a task now. Returns `None` if it continues inline.
    fn promoted(&mut self, promotion: Promotion) -> Option<Result<Outcome, ProtocolError>> {
        let tasks = match self.cx.env().tasks() {
            Ok(tasks) => tasks,
            Err(error) => return Some(Err(error)),
        };
        match promotion {
            Promotion::Task(task) => {
                let ttl = tasks.config.granted_ttl(self.options.ttl);
                Some(Ok(created(tasks, &self.target, Some(ttl), task)))
            }
            Promotion::Refused(work, error) => {
                tracing::warn!(reason = %error, "call cannot become a task; continuing inline");
                if let Some(id) = &self.id {
                    tasks.not_created(id);
                }
                self.run.stay_inline(self.cx.env(), self.cx.call());
                self.stage = Stage::Returned(work);
                None
            }
        }
    }
}

impl Future for InlineThenTask {
    type Output = Result<Outcome, ProtocolError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.stage {
                Stage::Inline(work) => {
                    if let Poll::Ready(outcome) = work.as_mut().poll(task) {
                        self.stage = Stage::Over;
                        return Poll::Ready(outcome);
                    }
                    ready!(self.poll_due(task));
                    let stage = std::mem::replace(&mut self.stage, Stage::Over);
                    let Stage::Inline(work) = stage else { continue };
                    self.stage = match self.promote(work) {
                        Ok(promoting) => Stage::Promoting(promoting),
                        Err((error, work)) => {
                            tracing::warn!(%error, "call cannot become a task; continuing inline");
                            self.run.stay_inline(self.cx.env(), self.cx.call());
                            Stage::StaysInline(work)
                        }
                    };
                }
                Stage::Promoting(promoting) => {
                    let Some(promotion) = ready!(promoting.as_mut().poll(task)) else {
                        return Poll::Ready(Err(ProtocolError::Internal));
                    };
                    self.stage = Stage::Over;
                    if let Some(outcome) = self.promoted(promotion) {
                        return Poll::Ready(outcome);
                    }
                }
                Stage::StaysInline(work) => return work.as_mut().poll(task),
                Stage::Returned(work) => return work.as_mut().poll(task).map(as_outcome),
                Stage::Over => return Poll::Ready(Err(ProtocolError::Internal)),
            }
        }
    }
}
