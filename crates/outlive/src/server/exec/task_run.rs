//! Adapts a call for the task engine.

use std::{future::poll_fn, sync::Arc, task::Poll};

use outlive_protocol::{Call, CallEnd, CallFuture, MethodResult, Outcome, ProtocolError, era};
use outlive_tasks::{
    engine::{self, ReduceResult, TaskRun},
    store::TaskOutcome,
};
use outlive_wire::ErrorObject;
use serde_json::value::to_raw_value;

use crate::server::{
    env::{
        environment::Env,
        task_error::{internal, not_loaded},
    },
    exec::executable::Executable,
    results::deliver::reduce,
    run::state::RunState,
};

/// Converts a call into the form that the engine runs.
pub(crate) fn task_run(
    env: &Arc<Env>,
    call: &Arc<Call>,
    run: Arc<RunState>,
    target: &Executable,
    work: CallFuture,
) -> TaskRun {
    TaskRun {
        journal: Arc::clone(run.journal()),
        cancel: canceller(call, &run),
        reduce: run.bridged().map(|_| reducer(call)),
        work: as_task(Arc::clone(env), Arc::clone(call), run, work),
        resumes: target.policy.is_durable,
        cleans_up: target.policy.cleanup.is_some(),
    }
}

/// Returns the function that shortens a result for which the caller has no stored bytes left. Only
/// results of bridged calls are cut.
fn reducer(call: &Arc<Call>) -> ReduceResult {
    let call = Arc::clone(call);
    Arc::new(move |outcome, parts, limit| {
        reduce(outcome, parts, &call.name().unwrap_or_default(), limit)
    })
}

/// Converts the outcome of a call into the outcome of a task.
fn as_task(
    env: Arc<Env>,
    call: Arc<Call>,
    run: Arc<RunState>,
    mut work: CallFuture,
) -> engine::Work {
    Box::pin(async move {
        let done = poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            match run.incompatible() {
                Some(reason) => Poll::Ready(Err(internal(reason))),
                None => polled.map(Ok),
            }
        });
        let done = match done.await {
            Ok(done) => done,
            Err(error) => return TaskOutcome::Error(error),
        };
        // A handler that fails after its cancellation has stopped; the tool did not fail.
        let is_cancelled = has_failed(&done) && run.is_task_cancelled();
        let id = run.task_id();
        let id = id.as_ref().map_or("", |id| id.as_str());
        let end = match is_cancelled {
            true => CallEnd::TaskCancelled { task_id: id },
            false => CallEnd::Task { task_id: id, result: &done },
        };
        call.report(end, || env.profile.clock.now());
        match is_cancelled {
            true => TaskOutcome::Cancelled,
            false => task_outcome(&env, &call, done),
        }
    })
}

fn has_failed(done: &Result<Outcome, ProtocolError>) -> bool {
    match done {
        Ok(Outcome::Complete(MethodResult::Tool(result))) => result.is_error == Some(true),
        Ok(Outcome::Complete(MethodResult::Relayed(result, _))) => result.is_error(),
        Ok(_) => false,
        Err(_) => true,
    }
}

fn task_outcome(env: &Env, call: &Call, done: Result<Outcome, ProtocolError>) -> TaskOutcome {
    // Stores split large results only in our own serialization.
    match done.map(Outcome::typed) {
        Ok(Outcome::Complete(MethodResult::Tool(result))) => match to_raw_value(&result) {
            Ok(raw) => TaskOutcome::Result(raw),
            Err(error) => TaskOutcome::Error(internal(&error.to_string())),
        },
        Ok(other) => {
            tracing::error!(?other, "task ended with an outcome that is not a tool result");
            TaskOutcome::Error(internal("internal error"))
        }
        Err(error) => TaskOutcome::Error(error_of(env, call, &error)),
    }
}

/// Converts the outcome of a task into the outcome of a call.
pub(crate) fn as_outcome(outcome: TaskOutcome) -> Result<Outcome, ProtocolError> {
    match outcome {
        TaskOutcome::Result(raw) => match serde_json::from_str(raw.get()) {
            Ok(result) => Ok(Outcome::Complete(MethodResult::Tool(result))),
            Err(error) => Err(ProtocolError::internal(error)),
        },
        // Only the engine splits a result, when it commits the end of the task.
        TaskOutcome::LargeResult(_) => Err(not_loaded()),
        TaskOutcome::Error(error) => Err(ProtocolError::Custom(error)),
        TaskOutcome::Cancelled | TaskOutcome::Expired => Err(ProtocolError::Internal),
    }
}

/// Returns the function that cancels the handler of a task.
fn canceller(call: &Arc<Call>, run: &Arc<RunState>) -> Box<dyn Fn() + Send + Sync> {
    let (call, run) = (Arc::clone(call), Arc::clone(run));
    Box::new(move || {
        // Set before the cancellation wakes the handler, which reads it.
        run.cancel_task();
        call.port().wake_cancelled();
    })
}

/// Returns the error object as the client of the call receives it.
pub(crate) fn error_of(env: &Env, call: &Call, error: &ProtocolError) -> ErrorObject {
    #[derive(serde::Deserialize)]
    struct Response {
        error: ErrorObject,
    }
    let mut out = Vec::new();
    era::codec(call.rules().era).encode_error(Some(call.id()), error, &env.profile, &mut out);
    let response = serde_json::from_slice::<Response>(&out);
    response.map_or_else(|_| internal(&error.to_string()), |response| response.error)
}
