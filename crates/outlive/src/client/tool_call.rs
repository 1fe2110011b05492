//! Execution of a tool call: saves it, encodes it, resends it if that is safe, and validates the
//! result.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use outlive_protocol::{TaskDialect, VersionRules, era::client::TaskSnapshot};
use outlive_schema::Schema;
use outlive_wire::{CallToolResult, Method, TaskSupport, code};
use serde_json::Value;

use super::{
    attempt::{Waiting, Wanted},
    call_store::{CallStage, Record, SavedCall, SavedRound},
    core::Core,
    error::{ClientError, Error, Result},
    link::{Connection, Link},
    lists::Paginated,
    notice::ServerNotification,
    random::random_id,
    request_builder::{given, sealed},
    send::{Boxed, CallOutcome, converse_noting, jitter},
    tasks::TaskHandle,
    tool_cache::KnownTool,
    tools::{IDEMPOTENCY_KEY, StartTool, Tasks, ToolCall},
};

/// Extension or capability of servers that support idempotency keys.
const KNOWS_KEYS: &str = "dev.outlive/idempotency";

/// Maximum number of resends of a call with an idempotency key.
const RESENDS: u32 = 5;

/// Calls the tool and waits for the result.
pub(crate) async fn result(
    core: &Arc<Core>,
    tool: ToolCall,
    waiting: Waiting,
) -> Result<CallToolResult> {
    let cancels = tool.cancels_on_drop;
    let calling = Calling::begin(core, tool).await?;
    match calling.make(waiting, None).await? {
        Made::Result(result) => {
            calling.finish(&result).await?;
            Ok(result)
        }
        Made::Task(rules, task) => Box::pin(bring_to_end(calling, rules, task, cancels)).await,
    }
}

/// Waits for the task of a call.
async fn bring_to_end(
    calling: Calling,
    rules: &'static VersionRules,
    task: Box<TaskSnapshot>,
    cancels: bool,
) -> Result<CallToolResult> {
    let core = Arc::clone(&calling.core);
    let mut handle = TaskHandle::begun(&core, calling.into_record()?, rules, *task).await?;
    handle.set_cancel_on_drop(cancels);
    let result = handle.wait().await;
    // A saved call that cannot be deleted is not a failure of the call.
    if result.is_ok() || handle.is_terminal() {
        let _ = handle.delete_saved().await;
    }
    result
}

/// Calls the tool and returns a handle with the outcome.
pub(crate) async fn begin(
    core: &Arc<Core>,
    tool: ToolCall,
    waiting: Waiting,
) -> Result<TaskHandle> {
    let calling = Calling::begin(core, tool).await?;
    let made = calling.make(waiting, None).await?;
    calling.handle(made).await
}

/// Returns a handle of a call whose input requests are events. The call runs while the events are
/// read.
async fn begin_with_events(
    core: &Arc<Core>,
    tool: ToolCall,
    mut waiting: Waiting,
) -> Result<TaskHandle> {
    let inputs = core.dispatch.input_events(core.limits().max_open_inputs);
    let handler = Arc::clone(inputs.handler());
    waiting.answerer = Some(handler);
    // The reader of the events determines the response time.
    waiting.timeout = None;
    let mut calling = Calling::begin(core, tool).await?;
    let record = match &calling.record {
        Some(record) => record.clone(),
        None => Record::new(None, calling.saved(random_id())?),
    };
    calling.record = Some(record.clone());
    let call = Box::pin(async move {
        let made = calling.make(waiting, None).await?;
        calling.handle(made).await
    });
    Ok(TaskHandle::starting(core, record, call, inputs))
}

/// Repeats the call of another process, with its saved round.
pub(crate) async fn again(core: &Arc<Core>, saved: SavedCall) -> Result<TaskHandle> {
    let round = match &saved.stage {
        CallStage::Calling(round) => round.clone(),
        _ => None,
    };
    let tool =
        ToolCall { tasks: Tasks::Wanted, ..ToolCall::new(saved.tool.clone(), &saved.arguments) };
    let key = saved.key.clone();
    let record = Record::new(core.settings.notebook.clone(), saved);
    let calling = Calling { core: Arc::clone(core), tool, key, record: Some(record) };
    let made = calling.make(Waiting::new(core), round).await?;
    calling.handle(made).await
}

/// A call before it is sent.
struct Calling {
    core: Arc<Core>,
    tool: ToolCall,
    /// Idempotency key, if the server supports it.
    key: Option<String>,
    /// Saved form of the call. Without a call store, created only if the call becomes a task or
    /// returns a handle.
    record: Option<Record>,
}

/// Outcome of a call.
enum Made {
    Result(CallToolResult),
    /// A task, with the version rules that created it.
    Task(&'static VersionRules, Box<TaskSnapshot>),
}

impl Calling {
    /// Prepares a call and saves it if there is a call store.
    async fn begin(core: &Arc<Core>, tool: ToolCall) -> Result<Self> {
        if let Err(why) = &tool.arguments {
            return Err(ClientError::BadArguments(why.clone()).into());
        }
        let mut calling = Self { core: Arc::clone(core), tool, key: None, record: None };
        let has_notebook = core.settings.notebook.is_some();
        if !has_notebook && calling.tool.key.is_none() {
            return Ok(calling);
        }
        let here = core.established().await?;
        let id = random_id();
        if knows_keys(core, &here) {
            calling.key = calling.tool.key.clone().or_else(|| Some(id.clone()));
        }
        if has_notebook {
            known_tool(core, &here, &calling.tool).await?;
            let record = Record::new(core.settings.notebook.clone(), calling.saved(id)?);
            record.write().await?;
            calling.record = Some(record);
        }
        Ok(calling)
    }

    /// Returns the call as data.
    fn saved(&self, id: String) -> Result<SavedCall> {
        let known = self.core.dispatch.book().get(&self.tool.name);
        let hints = known.as_ref().and_then(|known| known.tool.annotations.as_ref());
        let arguments = given(self.tool.arguments.clone())?;
        Ok(SavedCall {
            id,
            server: self.core.dispatch.label().to_string(),
            account: self.core.settings.account.clone(),
            tool: self.tool.name.clone(),
            arguments: serde_json::from_str(&arguments)
                .map_err(|error| ClientError::BadArguments(error.to_string()))?,
            key: self.key.clone(),
            idempotent: hints.is_some_and(|it| {
                it.idempotent_hint == Some(true) || it.read_only_hint == Some(true)
            }),
            stage: CallStage::Calling(None),
            answers: BTreeMap::new(),
        })
    }

    /// Returns the saved form of the call.
    fn into_record(mut self) -> Result<Record> {
        match self.record.take() {
            Some(record) => Ok(record),
            None => Ok(Record::new(None, self.saved(random_id())?)),
        }
    }

    /// Returns a handle with the outcome.
    async fn handle(self, made: Made) -> Result<TaskHandle> {
        let core = Arc::clone(&self.core);
        let record = self.into_record()?;
        match made {
            Made::Result(result) => TaskHandle::finished(&core, record, result).await,
            Made::Task(rules, task) => TaskHandle::begun(&core, record, rules, *task).await,
        }
    }

    /// Saves the result and then deletes the call, because the caller receives the result.
    async fn finish(&self, result: &CallToolResult) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        record.change(|saved| saved.stage = CallStage::Done(Box::new(result.clone()))).await?;
        // A saved call that cannot be deleted is not a failure of the call.
        let _ = record.erase().await;
        Ok(())
    }

    async fn make(&self, mut waiting: Waiting, round: Option<SavedRound>) -> Result<Made> {
        let Self { core, tool, key, record } = self;
        if let Some(key) = tool.key.as_ref().or(key.as_ref()) {
            waiting.add_meta(IDEMPOTENCY_KEY, &Value::from(key.as_str()).to_string());
        }
        let mut lost = 0;
        let mut fixed = false;
        let mut insisted = false;
        loop {
            let here = core.established().await?;
            let known = known_tool(core, &here, tool).await?;
            let wanted = written(core, &here, tool, known.as_deref(), &waiting, insisted);
            let may_insist = !insisted && !wanted.holds_tasks && asks_for_tasks(&here, tool);
            let error = match converse_noting(core, wanted, round.clone(), record.as_ref()).await {
                Ok(CallOutcome::Complete(answered)) => {
                    let result: CallToolResult = answered.read()?;
                    if tool.is_checked {
                        Box::pin(check(core, tool, known.as_deref(), &result)).await?;
                    }
                    return Ok(Made::Result(result));
                }
                Ok(CallOutcome::Task(here, task)) => return Ok(Made::Task(here.rules, task)),
                Err(error) => error,
            };
            match error.server_error().map(|refused| refused.code) {
                // The cached tool list, which determines the headers, may be stale.
                Some(code::HEADER_MISMATCH) if !fixed => {
                    fixed = true;
                    Box::pin(relist(core)).await?;
                }
                // The tool requires a task, which its list entry does not state.
                Some(code::METHOD_NOT_FOUND | code::INVALID_REQUEST) if may_insist => {
                    insisted = true;
                }
                // After a lost attempt, a later error does not show whether the first attempt
                // executed.
                None if key.is_some()
                    && (error.may_have_executed() || lost > 0)
                    && is_lost(&error)
                    && lost < RESENDS =>
                {
                    lost += 1;
                    let wait = Duration::from_millis(100) * (1 << lost);
                    tokio::time::sleep(wait + jitter(wait / 4)).await;
                }
                _ => {
                    let may_have_run = error.may_have_executed() || (lost > 0 && is_lost(&error));
                    if let (false, Some(record)) = (may_have_run, record) {
                        let _ = record.erase().await;
                    }
                    return Err(error);
                }
            }
        }
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::Transport(_))
}

/// Encodes the call for the protocol version of the connection.
fn written(
    core: &Core,
    here: &Connection,
    tool: &ToolCall,
    known: Option<&KnownTool>,
    waiting: &Waiting,
    insist: bool,
) -> Wanted {
    let arguments = tool.arguments.as_deref().unwrap_or("{}");
    let name = Value::from(tool.name.as_str());
    let dialect = here.rules.tasks;
    let support = known.map_or(TaskSupport::Forbidden, KnownTool::task_support);
    let asks = asks_for_tasks(here, tool)
        && (insist
            || support == TaskSupport::Required
            || (support == TaskSupport::Optional
                && (tool.tasks == Tasks::Wanted || core.settings.notebook.is_some())));
    let holds_tasks = match dialect {
        TaskDialect::None => false,
        TaskDialect::Requested => asks,
        TaskDialect::Offered => tool.tasks != Tasks::Never,
    };
    let task = match (dialect, asks, tool.ttl) {
        (TaskDialect::Requested, true, Some(ttl)) => {
            format!(r#","task":{{"ttl":{}}}"#, ttl.as_millis())
        }
        (TaskDialect::Requested, true, None) => r#","task":{}"#.to_owned(),
        _ => String::new(),
    };
    let params = format!(r#"{{"name":{name},"arguments":{arguments}{task}}}"#);
    let mirrors = matches!(here.link, Link::Http { .. }) && !here.rules.sessions;
    let repeated = match known {
        Some(known) if mirrors => known.repeated(arguments),
        _ => Vec::new(),
    };
    let mut wanted = Wanted::new(core, Method::ToolsCall, params).named(tool.name.as_str());
    (wanted.repeated, wanted.holds_tasks) = (repeated, holds_tasks);
    wanted.waiting = waiting.clone();
    if asks {
        // A requested task is returned immediately and polled later. With a progress token, the
        // server would send progress on the stream of `tasks/result`; without one it sets the
        // status message.
        wanted.waiting.on_progress = None;
    }
    wanted
}

/// Returns whether the client may request tasks for tool calls from this server.
fn asks_for_tasks(here: &Connection, tool: &ToolCall) -> bool {
    let declared = here.server.capabilities.tasks.as_ref();
    tool.tasks != Tasks::Never
        && here.rules.tasks == TaskDialect::Requested
        && declared.is_some_and(|tasks| tasks.pointer("/requests/tools/call").is_some())
}

/// Returns the cached tool. Fetches the list only if the call depends on it.
async fn known_tool(
    core: &Arc<Core>,
    here: &Connection,
    tool: &ToolCall,
) -> Result<Option<Arc<KnownTool>>> {
    let book = core.dispatch.book();
    if let Some(known) = book.get(&tool.name) {
        return Ok(Some(known));
    }
    if asks_for_tasks(here, tool) && !book.is_whole() {
        // Boxed, to keep the futures of calls without a list request small.
        Box::pin(relist(core)).await?;
    }
    Ok(book.get(&tool.name))
}

/// Fetches the complete tool list.
async fn relist(core: &Arc<Core>) -> Result<()> {
    core.dispatch.tell(ServerNotification::ToolsChanged);
    let mut tools: Paginated<outlive_wire::Tool> = Paginated::new(core, Method::ToolsList);
    while let Some(tool) = tools.next().await {
        tool?;
    }
    Ok(())
}

/// Validates a result against the output schema of the tool.
async fn check(
    core: &Arc<Core>,
    tool: &ToolCall,
    known: Option<&KnownTool>,
    result: &CallToolResult,
) -> Result<()> {
    let listed;
    let known = match known {
        Some(known) => Some(known),
        None => {
            relist(core).await?;
            listed = core.dispatch.book().get(&tool.name);
            listed.as_deref()
        }
    };
    let Some(schema) = known.and_then(|known| known.tool.output_schema.as_ref()) else {
        return Ok(());
    };
    if result.is_error == Some(true) {
        return Ok(());
    }
    let limit = core.limits().max_schema_bytes;
    if schema.get().len() > limit {
        return Err(Error::broke(format!("the output schema has more than {limit} bytes")));
    }
    let schema = Schema::output_from_json(schema)
        .map_err(|error| Error::broke(format!("the output schema is invalid: {error}")))?;
    let Some(content) = &result.structured_content else {
        let why =
            format!("`{}` has an output schema but returned no structured content", tool.name);
        return Err(ClientError::SchemaViolated(why).into());
    };
    schema.check(content.get()).map_err(|why| ClientError::SchemaViolated(why.to_string()).into())
}

/// Returns whether the server supports idempotency keys.
fn knows_keys(core: &Core, here: &Connection) -> bool {
    let offered = &here.server.capabilities;
    let says = |said: &Option<outlive_wire::JsonObject>| {
        said.as_ref().is_some_and(|said| said.contains_key(KNOWS_KEYS))
    };
    core.settings.knows_keys.unwrap_or(says(&offered.extensions) || says(&offered.experimental))
}

impl sealed::Run for ToolCall {
    type Output = CallToolResult;

    fn run(self, call: sealed::Parts) -> Boxed<'static, CallToolResult> {
        Box::pin(async move { result(&call.core, self, call.waiting).await })
    }
}

impl sealed::Run for StartTool {
    type Output = TaskHandle;

    fn run(self, call: sealed::Parts) -> Boxed<'static, TaskHandle> {
        Box::pin(async move {
            let tool = self.0.wanting_a_task();
            let cancels = tool.cancels_on_drop;
            let mut handle = match tool.has_events {
                true => begin_with_events(&call.core, tool, call.waiting).await?,
                false => begin(&call.core, tool, call.waiting).await?,
            };
            handle.set_cancel_on_drop(cancels);
            Ok(handle)
        })
    }
}
