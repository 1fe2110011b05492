//! Response modes of a call.

use std::sync::Arc;

use outlive_protocol::{CallFuture, MethodResult, Outcome, ProtocolError, RelayedKind};
use outlive_tasks::{
    engine::CreateError,
    store::{Attended, Bridge, TaskId, TaskOutcome},
};
use outlive_wire::CallToolResult;
use serde_json::value::to_raw_value;

use crate::server::{
    env::{address_quotas::Over, task_backend::TaskBackend},
    exec::{
        bridge::{WaitOptions, attend, no_such_task, wait},
        executable::Executable,
        plan::{ExecutionPlan, ReplyMode, TaskOptions},
        promote::new_task,
    },
    extract::cx::Cx,
    results::{
        cut::CutOptions,
        deliver::{cut_in_memory, needs_cut},
        notice::Rest,
    },
    tasks::{
        attendance::{Arrival, Attendance},
        streaming::stream,
    },
};

/// Responds in the mode of the plan. [`ReplyMode::Single`] returns `work` unchanged.
pub(crate) fn with_mode(
    plan: ExecutionPlan,
    cx: Cx,
    target: Arc<Executable>,
    work: CallFuture,
) -> CallFuture {
    let ReplyMode::Negotiated { streaming, fell_back } = plan.reply else { return work };
    Box::pin(async move {
        match work.await?.typed() {
            Outcome::Task(task) if streaming => {
                stream(Arc::clone(cx.env()), Arc::clone(cx.call()), task).await
            }
            Outcome::Task(mut task) => {
                task.fell_back = fell_back;
                Ok(Outcome::Task(task))
            }
            Outcome::Complete(MethodResult::Tool(result)) => {
                Ok(immediate(&cx, &target, plan.task, result).await)
            }
            done => Ok(done),
        }
    })
}

/// Waits for the task of a bridged call, if the call becomes one.
pub(crate) async fn bridged(
    cx: Cx,
    arrival: Arrival,
    options: WaitOptions,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    let view = match work.await? {
        Outcome::Task(view) => view,
        done => return Ok(done),
    };
    let (env, call, id) = (cx.env(), cx.call(), TaskId::new(view.id));
    let attendance = match call.idempotency_key() {
        // The creation recorded that this request waits.
        None => {
            let (tasks, bridged) = (env.tasks()?, cx.run().and_then(|run| run.bridged()));
            let waiting = bridged.map(|bridged| tasks.bridges.enter(&bridged.fingerprint));
            let attended = Attended::new(id, view.created, 0);
            Attendance::new(env, call, attended, arrival, waiting)
        }
        // An earlier request may have created the task under this key.
        Some(_) => match attend(env, call, &id, arrival).await? {
            Some(attendance) => attendance,
            None => return Ok(no_such_task()),
        },
    };
    wait(attendance, options).await
}

/// Cuts the result of a call that did not become a task to the limit of its host. The whole result
/// is stored as an ended task only if it is cut.
pub(crate) async fn cut(
    cx: Cx,
    target: Arc<Executable>,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    let outcome = work.await?;
    if !is_tool_result(&outcome) {
        return Ok(outcome);
    }
    let tasks = cx.env().tasks()?;
    let limit = match tasks.host_limits(cx.call()).await {
        Some(limits) => tasks.config.results.max_bytes(&limits, target.policy.max_inline),
        None => None,
    };
    let tool = target.name.as_str();
    let result = match outcome {
        // The members of a result are never longer than its text.
        Outcome::Complete(MethodResult::Relayed(result, kind))
            if limit.is_none_or(|limit| result.get().len() <= limit) =>
        {
            return Ok(Outcome::Complete(MethodResult::Relayed(result, kind)));
        }
        outcome => match outcome.typed() {
            Outcome::Complete(MethodResult::Tool(result)) => result,
            other => return Ok(other),
        },
    };
    let Some(limit) = limit.filter(|limit| needs_cut(&result, *limit)) else {
        return Ok(Outcome::Complete(MethodResult::Tool(result)));
    };
    let stored = store_result(&cx, &target, &result).await;
    let rest = match &stored {
        Ok(task) => Rest::Stored(task),
        Err(limit) => Rest::NotStored(limit),
    };
    let cut = cut_in_memory(&result, CutOptions { limit, tool, rest });
    Ok(Outcome::Complete(MethodResult::Tool(cut.unwrap_or(result))))
}

/// Returns whether an outcome is the result of a tool, of this or another server.
fn is_tool_result(outcome: &Outcome) -> bool {
    let Outcome::Complete(result) = outcome else { return false };
    matches!(result, MethodResult::Tool(_) | MethodResult::Relayed(_, RelayedKind::Tool))
}

/// Stores a result as an ended task. Returns the limit that does not allow it.
async fn store_result(
    cx: &Cx,
    target: &Executable,
    result: &CallToolResult,
) -> Result<TaskId, &'static str> {
    const NO_STORE: &str = "the task store";
    let tasks = cx.env().tasks().map_err(|_| NO_STORE)?;
    let raw = to_raw_value(result).map_err(|_| NO_STORE)?;
    let principal = cx.principal().key();
    for attempt in 0..2 {
        let (cx, run) = cx.with_run();
        let task = new_task(&cx, target, TaskOptions::default(), None, run.snapshot(cx.env()));
        let task = task.map_err(|_| NO_STORE)?.bridge(Some(read_only(tasks)));
        let id = task.id.clone();
        tasks.admits(cx.call(), &task).map_err(Over::limit)?;
        let stored = tasks.engine().store_finished(task, TaskOutcome::Result(raw.clone())).await;
        tasks.quotas.end(&id, if stored.is_ok() { raw.get().len() } else { 0 });
        match stored {
            Ok(()) => {
                let store = tasks.engine().store();
                // The client reads the rest later, so the task keeps its retention.
                if let Err(error) = store.deliver(principal, &id, None).await {
                    tracing::warn!(%error, "delivery of a cut result cannot be stored");
                }
                return Ok(id);
            }
            // Anonymous callers share one budget, so one must not delete the results of another.
            Err(CreateError::BytesExceeded) if attempt == 0 && !cx.principal().is_anonymous() => {
                let bytes = raw.get().len() as u64;
                if tasks.engine().store().evict(principal, bytes).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            Err(CreateError::BytesExceeded) => break,
            Err(error) => {
                tracing::warn!(reason = %error, "result of a call cannot be stored");
                return Err(NO_STORE);
            }
        }
    }
    Err(tasks.allowance(principal).limit)
}

/// Returns the bridge of an ended task: protocol methods do not see the task, no call joins it, and
/// the store can evict it.
fn read_only(tasks: &TaskBackend) -> Bridge {
    Bridge::new(None, "", tasks.worker_id().clone(), tasks.config.engine.retention)
}

/// Returns an immediate result. Stores it as an ended task if the configuration says so.
async fn immediate(
    cx: &Cx,
    target: &Executable,
    options: TaskOptions,
    result: CallToolResult,
) -> Outcome {
    let stored = async {
        let tasks = cx.env().tasks().ok().filter(|tasks| tasks.config.track_immediate)?;
        let (_, run) = cx.with_run();
        let task = new_task(cx, target, options, None, run.snapshot(cx.env())).ok()?;
        let (id, outcome) = (task.id.clone(), TaskOutcome::Result(to_raw_value(&result).ok()?));
        match tasks.engine().store_finished(task, outcome).await {
            Ok(()) => Some(id),
            Err(error) => {
                tracing::warn!(reason = %error, "immediate result cannot be stored as a task");
                None
            }
        }
    };
    Outcome::Complete(match stored.await {
        Some(id) => MethodResult::TaskResult(Box::new(result), id.as_str().to_owned()),
        None => MethodResult::Tool(result),
    })
}
