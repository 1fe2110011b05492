//! Response modes of a call.

use std::sync::Arc;

use outlive_protocol::{CallFuture, MethodResult, Outcome};
use outlive_tasks::store::TaskOutcome;
use outlive_wire::CallToolResult;
use serde_json::value::to_raw_value;

use crate::server::{
    exec::{
        executable::Executable,
        plan::{ExecutionPlan, ReplyMode, TaskOptions},
        promote::new_task,
    },
    extract::cx::Cx,
    tasks::streaming::stream,
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
