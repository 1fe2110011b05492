//! The tools `task_result`, `task_cancel` and `task_answer`, for clients without tasks.
//!
//! They are listed for these clients if a tool that the caller sees may become a task. Every client
//! can call them. Unknown, foreign and deleted tasks get one text.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use outlive_tasks::store::{CancelOutcome, TaskId, TaskRecord};
use outlive_wire::{Schema, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

use crate::server::{
    dispatch::{
        core::ServerCore,
        fallback_answer,
        fallback_task::{self, denied, failed, find, read_arguments, reply, tool_of},
        view_poll::{self, Seen},
    },
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::{
        bridge::{WaitOptions, attend, has_view, no_such_task, wait},
        gate::wait::GateWait,
        plan::is_bridged,
        round::{Attempts, continue_round},
    },
    hosts::{
        AnswerBy,
        reserved::{TASK_ANSWER, TASK_CANCEL, TASK_RESULT},
    },
    register::registered_tool::RegisteredTool,
    results::{
        body::ResultReader,
        error::ReadError,
        read::{continue_text, find_text},
    },
    run::{
        bridged::scope,
        replay_policy::ReplayPolicy,
        request_state::{self, Opened},
    },
    tasks::{attendance::Arrival, pending_result::words},
    view,
};

/// Wait of `task_result` in a host that shows the task view.
const VIEW_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of running tasks that an error lists.
const MAX_LISTED: usize = 10;

/// Starts a call of a fallback tool. Returns `None` if the server has no such tool.
pub(crate) fn start(core: &Arc<ServerCore>, call: &Arc<Call>, name: &str) -> Option<CallFuture> {
    core.env.hosts()?;
    let (core, call) = (Arc::clone(core), Arc::clone(call));
    Some(match name {
        TASK_RESULT => Box::pin(task_result(core, call)),
        TASK_CANCEL => Box::pin(task_cancel(core, call)),
        TASK_ANSWER => Box::pin(fallback_answer::task_answer(core, call)),
        _ => return None,
    })
}

/// Returns the fallback tools to list for a call.
pub(crate) fn listed(core: &ServerCore, call: &Call) -> Vec<Arc<Tool>> {
    let hosts = core.env.hosts();
    let Some(hosts) = hosts.filter(|hosts| is_bridged(call, hosts)) else { return Vec::new() };
    let tools = &core.registered.tools;
    let may_become_task =
        tools.find(call.principal(), |tool| tool.exec.policy.has_tasks().then_some(()));
    if may_become_task.is_none() && core.catalog.is_none() {
        return Vec::new();
    }
    let result = match has_view(&core.env, call) {
        true => Arc::clone(&SHOWN_RESULT),
        false => Arc::clone(&TOOLS[0]),
    };
    let mut tools = vec![result, Arc::clone(&TOOLS[1])];
    if fallback_answer::is_listed(core, call, hosts) {
        tools.push(Arc::clone(&TOOLS[2]));
    }
    tools
}

/// Definitions of the tools. Models read them in every turn, so they are short.
static TOOLS: LazyLock<[Arc<Tool>; 3]> = LazyLock::new(|| {
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    let mut result = tool(
        TASK_RESULT,
        "Waits for a call that is still running, and returns its result.",
        &json!({"type": "object", "properties": {
            "task": {"type": "string", "description": "The task ID. Optional if only one task is running."},
            "wait_seconds": {"type": "integer", "minimum": 0, "description": "0 returns the status without waiting."},
            "from": {"type": "integer", "minimum": 0, "description": "For a result that was cut: the byte to continue reading from."},
            "find": {"type": "string", "description": "For a result that was cut: only lines with this text."},
        }}),
    );
    result.annotations = Some(annotations);
    let cancel = tool(
        TASK_CANCEL,
        "Stops a call that is still running.",
        &json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}),
    );
    let answer = tool(
        TASK_ANSWER,
        "Gives a running call the user's answer to its input request. Ask the user first; never answer for them.",
        &json!({"type": "object", "properties": {
            "task": {"type": "string"},
            "input_request": {"type": "string"},
            "action": {"enum": ["accept", "decline", "cancel"]},
            "content": {"type": "object"},
        }, "required": ["task", "action"]}),
    );
    [Arc::new(result), Arc::new(cancel), Arc::new(answer)]
});

/// `task_result` for hosts that show the task view.
static SHOWN_RESULT: LazyLock<Arc<Tool>> = LazyLock::new(|| {
    let mut tool = Tool::clone(&TOOLS[0]);
    tool.meta = Some(view::resource::tool_meta());
    Arc::new(tool)
});

fn tool(name: &str, description: &str, schema: &Value) -> Tool {
    let schema: Schema = to_raw_value(schema).unwrap_or_default().into();
    let mut tool = Tool::new(name, schema);
    tool.description = Some(description.to_owned());
    tool
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultArguments {
    task: Option<String>,
    wait_seconds: Option<u64>,
    from: Option<u64>,
    find: Option<String>,
    /// Only the task view sends it.
    seen: Option<Seen>,
}

async fn task_result(core: Arc<ServerCore>, call: Arc<Call>) -> Result<Outcome, ProtocolError> {
    let arguments: ResultArguments = match read_arguments(&call)? {
        Ok(arguments) => arguments,
        Err(reply) => return Ok(reply),
    };
    let env = &core.env;
    let at_most = arguments.wait_seconds.map(Duration::from_secs);
    // The page waits instead of the model.
    let at_most = at_most.or_else(|| has_view(&core.env, &call).then_some(VIEW_WAIT));
    let mut options = WaitOptions { at_most, is_poll: true, ..WaitOptions::default() };
    // The task of a round is in its request state.
    match request_state::open(env, &call, &ReplayPolicy::default())? {
        Some(Opened::Task(round)) => {
            return continue_round(Arc::clone(env), call, round, options).await;
        }
        Some(Opened::Run(_)) => return Err(ProtocolError::InvalidRequestState),
        None => {}
    }
    let (tasks, arrival) = (env.tasks()?, Arrival::first(env));
    let attempts = Attempts::new(tasks, &call, arrival, &options).await;
    let found = loop {
        match attempts.run(named_or_only(env, &call, arguments.task.as_deref())).await {
            Ok(found) => break found,
            Err(error) => attempts.wait(tasks, error).await?,
        }
    };
    let (task, record) = match found {
        Ok(found) => found,
        Err(reply) => return Ok(reply),
    };
    if let Some(seen) = arguments.seen {
        return view_poll::poll(&core, &call, &task, seen, at_most).await;
    }
    let tool = tool_of(&core, &call, &record.tool).await;
    let max_inline = tool.as_ref().and_then(|tool| tool.exec.policy.max_inline);
    if arguments.from.is_some() || arguments.find.is_some() {
        let (from, find) = (arguments.from, arguments.find.as_deref());
        return read_on(&core, &call, &record, max_inline, from, find).await;
    }
    let answers_by = |by| fallback_task::answers_by(&core, tool.as_deref(), by);
    options.answers_by_tool = answers_by(AnswerBy::Tool);
    options.answers_by_link = answers_by(AnswerBy::Link);
    options.max_inline = max_inline;
    options.gate = tool.as_ref().and_then(|tool| gate(&core, &call, tool));
    let attended = loop {
        match attempts.run(attend(env, &call, &task, arrival)).await {
            Ok(attended) => break attended,
            Err(error) => attempts.wait(tasks, error).await?,
        }
    };
    match attended {
        Some(attendance) => wait(attendance, options).await,
        None => Ok(denied(env, &call, &task)),
    }
}

/// Reads a result that was cut: from a byte on, or the lines with a text.
async fn read_on(
    core: &ServerCore,
    call: &Call,
    record: &TaskRecord,
    max_inline: Option<usize>,
    from: Option<u64>,
    find: Option<&str>,
) -> Result<Outcome, ProtocolError> {
    let tasks = core.env.tasks()?;
    let (store, principal) = (&**tasks.engine().store(), call.principal().key());
    let reader = record
        .outcome
        .as_ref()
        .and_then(|outcome| ResultReader::from_outcome(store, principal, &record.id, outcome));
    let Some(reader) = reader else {
        return Ok(match &record.outcome {
            None => failed("the task has no result yet; call without `from` and `find`".to_owned()),
            Some(_) => no_such_task(),
        });
    };
    let read = match (from, find) {
        (_, Some(find)) => find_text(&reader, find).await,
        (from, None) => {
            let limits = tasks.host_limits(call).await;
            let limit = limits
                .and_then(|limits| tasks.config.results.max_bytes(&limits, max_inline))
                .unwrap_or(usize::MAX);
            continue_text(&reader, &record.id, from.unwrap_or_default(), limit).await
        }
    };
    match read {
        Ok(text) => Ok(reply(text)),
        Err(ReadError::Range(reason)) => Ok(failed(reason)),
        Err(ReadError::Unknown) => Ok(no_such_task()),
        Err(ReadError::Store(error)) => Err(unavailable(&error)),
    }
}

/// Returns how a request waits for a call of a gated tool.
fn gate(core: &ServerCore, call: &Call, tool: &RegisteredTool) -> Option<GateWait> {
    tool.exec.policy.gate.as_ref()?;
    Some(GateWait::of(core.env.tasks.as_ref()?, call))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    task: String,
}

async fn task_cancel(core: Arc<ServerCore>, call: Arc<Call>) -> Result<Outcome, ProtocolError> {
    let arguments: CancelArguments = match read_arguments(&call)? {
        Ok(arguments) => arguments,
        Err(reply) => return Ok(reply),
    };
    let env = &core.env;
    let tasks = env.tasks()?;
    let (task, record) = match find(env, &call, &arguments.task).await? {
        Some(found) => found,
        None => return Ok(no_such_task()),
    };
    let cancelled = tasks.engine().cancel(call.principal().key(), &task, false).await;
    let (tool, id) = (&record.tool, task.as_str());
    let text = match cancelled.map_err(|error| unavailable(&error))? {
        None => return Ok(denied(env, &call, &task)),
        Some(CancelOutcome::AlreadyEnded) => {
            format!(
                "`{tool}` (task {id}) has already ended; call {TASK_RESULT} to read its result."
            )
        }
        Some(CancelOutcome::Cancelled) => {
            tasks.quotas.leave(&task);
            note_cancel(tasks, &call, &task, "cancelled");
            format!("`{tool}` (task {id}) is cancelled.")
        }
        Some(CancelOutcome::Requested) => {
            note_cancel(tasks, &call, &task, "cancel-requested");
            let grace = words(tasks.config.engine.cancel_grace.as_secs());
            format!("Cancellation of `{tool}` (task {id}) is requested; it has {grace} to stop.")
        }
    };
    Ok(reply(text))
}

fn note_cancel(tasks: &TaskBackend, call: &Call, task: &TaskId, how: &'static str) {
    tasks.note(call, task, how, Some(format!("cancelled with {TASK_CANCEL}")));
}

/// Returns the task that a model names, or the only one that runs.
async fn named_or_only(
    env: &Env,
    call: &Call,
    named: Option<&str>,
) -> Result<Result<(TaskId, TaskRecord), Outcome>, ProtocolError> {
    let only = match named {
        Some(_) => None,
        None => match only_task(env, call).await? {
            Ok(only) => Some(only),
            Err(reply) => return Ok(Err(reply)),
        },
    };
    let id = named.or(only.as_deref()).unwrap_or_default();
    Ok(find(env, call, id).await?.ok_or_else(no_such_task))
}

/// Returns the ID of the only task that runs.
async fn only_task(env: &Env, call: &Call) -> Result<Result<String, Outcome>, ProtocolError> {
    let tasks = env.tasks()?;
    let Some(scope) = scope(call) else {
        return Ok(Err(failed("pass the task ID as `task`".to_owned())));
    };
    let open = tasks.engine().store().open_calls(call.principal().key(), &scope, MAX_LISTED).await;
    let open = open.map_err(|error| unavailable(&error))?;
    let listed = open.iter().map(|open| format!("{} (task {})", open.tool, open.task.as_str()));
    Ok(match &*open {
        [only] => Ok(only.task.as_str().to_owned()),
        [] => Err(failed("no task is running; call the tool to start one".to_owned())),
        _ => Err(failed(format!(
            "several tasks are running: {}; pass one as `task`",
            listed.collect::<Vec<_>>().join(", ")
        ))),
    })
}
