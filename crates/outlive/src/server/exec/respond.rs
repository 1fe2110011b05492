//! Response modes of a call.

use std::sync::Arc;

use outlive_protocol::{CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{Attended, TaskId, TaskOutcome};
use outlive_wire::CallToolResult;
use serde_json::value::to_raw_value;

use crate::server::{
    exec::{
        bridge::{WaitOptions, attend, no_such_task, wait},
        executable::Executable,
        plan::{ExecutionPlan, ReplyMode, TaskOptions},
        promote::new_task,
    },
    extract::cx::Cx,
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
        match work.await? {
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
            let bridged = cx.run().and_then(|run| run.bridged());
            let fingerprint = bridged.map(|bridged| Arc::clone(&bridged.fingerprint));
            let attended = Attended::new(id, view.created, 0);
            Attendance::new(env, call, attended, arrival, fingerprint)
        }
        // An earlier request may have created the task under this key.
        Some(_) => match attend(env, call, &id, arrival).await? {
            Some(attendance) => attendance,
            None => return Ok(no_such_task()),
        },
    };
    wait(attendance, options).await
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
