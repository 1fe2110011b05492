//! A call of a tool on its way: written down where that is wanted, sent as its revision has it, sent again
//! where that does no harm, and held against what the server promised.

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
    send::{Boxed, Came, converse_noting, jitter},
    tasks::TaskHandle,
    tool_cache::KnownTool,
    tools::{IDEMPOTENCY_KEY, StartTool, Tasks, ToolCall},
};

/// What a server that knows such keys says of itself.
const KNOWS_KEYS: &str = "dev.outlive/idempotency";

/// How often a call with a key is sent again after it got lost.
const RESENDS: u32 = 5;

/// Makes the call, and brings it to its end.
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

/// Waits for a task that a call has become.
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
    // The result is the caller's now; a failure to forget it is no failure of the call.
    if result.is_ok() || handle.is_terminal() {
        let _ = handle.delete_saved().await;
    }
    result
}

/// Makes the call; what it came to is in the handle.
pub(crate) async fn begin(
    core: &Arc<Core>,
    tool: ToolCall,
    waiting: Waiting,
) -> Result<TaskHandle> {
    let calling = Calling::begin(core, tool).await?;
    let made = calling.make(waiting, None).await?;
    calling.handle(made).await
}

/// Returns a handle on a call whose input requests are events. The call is made while they are read.
async fn begin_with_events(
    core: &Arc<Core>,
    tool: ToolCall,
    mut waiting: Waiting,
) -> Result<TaskHandle> {
    let inputs = core.dispatch.input_events(core.limits().max_open_inputs);
    let handler = Arc::clone(inputs.handler());
    waiting.answerer = Some(handler);
    // The reader of the events takes the time that it needs.
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

/// Makes a call that another process has begun, with the round that it was in.
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

/// A call that is about to be made.
struct Calling {
    core: Arc<Core>,
    tool: ToolCall,
    /// The key by which the server knows it again, if it knows keys.
    key: Option<String>,
    /// What is written down about it. Without a notebook there is nothing to write until the call has
    /// become a task or somebody holds it, and most calls do neither.
    record: Option<Record>,
}

/// What a call came to.
enum Made {
    Result(CallToolResult),
    /// A task, and the revision that it was made in.
    Task(&'static VersionRules, Box<TaskSnapshot>),
}

impl Calling {
    /// Writes a call down, if there is a notebook.
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

    /// The call as plain data.
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

    /// What is written down about it.
    fn into_record(mut self) -> Result<Record> {
        match self.record.take() {
            Some(record) => Ok(record),
            None => Ok(Record::new(None, self.saved(random_id())?)),
        }
    }

    /// Somebody wants to hold it.
    async fn handle(self, made: Made) -> Result<TaskHandle> {
        let core = Arc::clone(&self.core);
        let record = self.into_record()?;
        match made {
            Made::Result(result) => TaskHandle::finished(&core, record, result).await,
            Made::Task(rules, task) => TaskHandle::begun(&core, record, rules, *task).await,
        }
    }

    /// Notes the result, and strikes the call: its result is the caller's now.
    async fn finish(&self, result: &CallToolResult) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        record.change(|saved| saved.stage = CallStage::Done(Box::new(result.clone()))).await?;
        // A failure to forget it is no failure of the call.
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
                Ok(Came::Complete(answered)) => {
                    let result: CallToolResult = answered.read()?;
                    if tool.is_checked {
                        Box::pin(check(core, tool, known.as_deref(), &result)).await?;
                    }
                    return Ok(Made::Result(result));
                }
                Ok(Came::Task(here, task)) => return Ok(Made::Task(here.rules, task)),
                Err(error) => error,
            };
            match error.server_error().map(|refused| refused.code) {
                // What the headers repeat is taken from a list that may be old.
                Some(code::HEADER_MISMATCH) if !fixed => {
                    fixed = true;
                    Box::pin(relist(core)).await?;
                }
                // It runs only as a task, which the list did not say.
                Some(code::METHOD_NOT_FOUND | code::INVALID_REQUEST) if may_insist => {
                    insisted = true;
                }
                // Once it got lost, what comes of a later try says nothing of the first.
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

/// The request, as the connection's revision wants it.
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
        // A task that is asked for is answered with at once, and looked at later. With a token it would
        // tell its progress to those who wait for its result; without one, it says it in words.
        wanted.waiting.on_progress = None;
    }
    wanted
}

/// Whether a client may ask this server to make tasks of tool calls.
fn asks_for_tasks(here: &Connection, tool: &ToolCall) -> bool {
    let declared = here.server.capabilities.tasks.as_ref();
    tool.tasks != Tasks::Never
        && here.rules.tasks == TaskDialect::Requested
        && declared.is_some_and(|tasks| tasks.pointer("/requests/tools/call").is_some())
}

/// What the list says of a tool. Where nothing depends on it, the list is not asked for.
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
        // In a box, so that calls that need no list have no room for it.
        Box::pin(relist(core)).await?;
    }
    Ok(book.get(&tool.name))
}

/// Reads the whole list again.
async fn relist(core: &Arc<Core>) -> Result<()> {
    core.dispatch.tell(ServerNotification::ToolsChanged);
    let mut tools: Paginated<outlive_wire::Tool> = Paginated::new(core, Method::ToolsList);
    while let Some(tool) = tools.next().await {
        tool?;
    }
    Ok(())
}

/// Holds a result against the tool's own schema for it.
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
        return Err(Error::broke(format!("its output schema has more than {limit} bytes")));
    }
    let schema = Schema::output_from_json(schema)
        .map_err(|error| Error::broke(format!("its output schema is none: {error}")))?;
    let Some(content) = &result.structured_content else {
        let why = format!("`{}` promises structured content and has none", tool.name);
        return Err(ClientError::SchemaViolated(why).into());
    };
    schema.check(content.get()).map_err(|why| ClientError::SchemaViolated(why.to_string()).into())
}

/// Whether the server gives the same answer to the same key.
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
