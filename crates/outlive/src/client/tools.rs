//! Calling tools: what goes with the call, what becomes of it, and what its result must look like.

use std::{sync::Arc, time::Duration};

use outlive_protocol::era::client::TaskDialect;
use outlive_wire::{CallToolResult, Method, TaskSupport, code};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    book::KnownTool,
    call::{Call, Kind, Params, given, object, sealed},
    core::{Core, Established, Link},
    error::{Error, GaveUp, Result},
    lists::Pages,
    notebook::{Record, Round, SavedCall, Stage},
    request::{Boxed, Came, Waiting, Wanted, converse_noting, jitter},
    tasks::TaskHandle,
};
use crate::{hex::hex, server::Schema};

/// Where `_meta` has the key of a call that is to be done once.
const IDEMPOTENCY_KEY: &str = "dev.outlive/idempotencyKey";

/// What a server that knows such keys says of itself.
const KNOWS_KEYS: &str = "dev.outlive/idempotency";

/// How often a call with a key is sent again after it got lost.
const RESENDS: u32 = 5;

/// Calls a tool and waits for the result.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) name: String,
    arguments: Params,
    tasks: Tasks,
    key: Option<String>,
    ttl: Option<Duration>,
    is_checked: bool,
    pub(crate) cancels_on_drop: bool,
}

/// Calls a tool and gives a handle on the call.
#[derive(Clone, Debug)]
pub struct StartTool(pub(crate) ToolCall);

/// Whether a call may become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    /// If the server says so, or insists.
    May,
    /// Wherever a client can ask for one, it does.
    Wanted,
    Never,
}

impl ToolCall {
    pub(crate) fn new(name: String, arguments: &impl Serialize) -> Self {
        Self {
            name,
            arguments: object(arguments),
            tasks: Tasks::May,
            key: None,
            ttl: None,
            is_checked: false,
            cancels_on_drop: false,
        }
    }
}

impl ToolCall {
    /// The same, as a task wherever there can be one.
    pub(crate) fn wanting_a_task(mut self) -> Self {
        if self.tasks == Tasks::May {
            self.tasks = Tasks::Wanted;
        }
        self
    }

    pub(crate) fn set_key(&mut self, key: String) {
        self.key = Some(key);
    }

    pub(crate) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = Some(ttl);
    }

    /// What `_meta` of the call says, besides what the request itself has there.
    pub(crate) fn meta(&self) -> String {
        let key = self.key.as_deref().map(Value::from);
        key.map_or_else(String::new, |key| format!("\"{IDEMPOTENCY_KEY}\":{key}"))
    }

    /// The parameters of a call whose result may come in parts; 2025-11-25.
    pub(crate) fn streaming_params(&self) -> Result<String> {
        let arguments = given(self.arguments.clone())?;
        let name = Value::from(self.name.as_str());
        let ttl = self.ttl.map_or_else(String::new, |ttl| format!(r#""ttl":{},"#, ttl.as_millis()));
        Ok(format!(
            r#"{{"name":{name},"arguments":{arguments},"task":{{{ttl}"responseModes":["streaming","task","immediate"]}}}}"#
        ))
    }
}

/// Whether both sides have agreed that results may come in parts; 2025-11-25.
pub(crate) fn offers_streaming(core: &Core, here: &Established) -> bool {
    let declared = here.server.capabilities.tasks.as_ref();
    let modes = declared.and_then(|tasks| tasks.pointer("/responses/modes"));
    core.declared.streams
        && here.era.tasks() == TaskDialect::Asked
        && modes.and_then(Value::as_array).is_some_and(|modes| modes.contains(&"streaming".into()))
}

macro_rules! tool_options {
    ($kind:ty, $tool:ident => $place:expr) => {
        impl Call<$kind> {
            /// Does not take a task for an answer: a tool that runs only as one is refused.
            pub fn no_task(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Never;
                self
            }

            /// Asks for a task, where a client has to ask for one.
            pub fn as_task(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Wanted;
                self
            }

            /// How long the task should exist, where a client may say so.
            pub fn task_ttl(mut self, ttl: Duration) -> Self {
                let $tool = &mut self.kind;
                $place.ttl = Some(ttl);
                self
            }

            /// Has it done once, however often it is sent: a server that knows such keys gives the
            /// same answer to the same key.
            pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
                let $tool = &mut self.kind;
                $place.key = Some(key.into());
                self
            }

            /// Holds structured content against the schema that the tool has for it.
            pub fn checked(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.is_checked = true;
                self
            }

            /// Cancels the task, too, when nobody waits for it any more.
            pub fn cancel_on_drop(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.cancels_on_drop = true;
                self
            }
        }
    };
}

tool_options!(ToolCall, tool => tool);
tool_options!(StartTool, tool => tool.0);

impl Call<ToolCall> {
    /// The structured content, as a type. A tool that failed is an error here.
    ///
    /// # Errors
    ///
    /// As the call itself, and when there is no such content.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        let name = self.kind.name.clone();
        let result = self.checked().await?;
        structured(&name, &result)
    }
}

fn structured<T: DeserializeOwned>(name: &str, result: &CallToolResult) -> Result<T> {
    if result.is_error == Some(true) {
        let said = super::texts(result);
        return Err(GaveUp::SchemaViolated(format!("`{name}` failed: {said}")).into());
    }
    let content = result
        .structured_content
        .as_ref()
        .ok_or_else(|| GaveUp::SchemaViolated(format!("`{name}` has no structured content")))?;
    serde_json::from_str(content.get())
        .map_err(|error| GaveUp::SchemaViolated(format!("`{name}`: {error}")).into())
}

impl sealed::Sealed for ToolCall {}
impl sealed::Sealed for StartTool {}

impl Kind for ToolCall {
    type Output = CallToolResult;

    fn run(self, call: sealed::Parts) -> Boxed<'static, CallToolResult> {
        Box::pin(async move {
            let cancels = self.cancels_on_drop;
            let mut handle = begin(&call.core, self, call.waiting).await?;
            handle.set_cancel_on_drop(cancels);
            let result = handle.wait().await;
            // The result is the caller's now; a failure to forget it is no failure of the call.
            if result.is_ok() || handle.is_over() {
                let _ = handle.forget().await;
            }
            result
        })
    }
}

impl Kind for StartTool {
    type Output = TaskHandle;

    fn run(self, call: sealed::Parts) -> Boxed<'static, TaskHandle> {
        Box::pin(async move {
            let tool = self.0.wanting_a_task();
            let cancels = tool.cancels_on_drop;
            let mut handle = begin(&call.core, tool, call.waiting).await?;
            handle.set_cancel_on_drop(cancels);
            Ok(handle)
        })
    }
}

/// Makes the call; what it came to is in the handle.
pub(crate) async fn begin(
    core: &Arc<Core>,
    tool: ToolCall,
    waiting: Waiting,
) -> Result<TaskHandle> {
    let arguments = given(tool.arguments.clone())?;
    let here = core.established().await?;
    let knows_keys = knows_keys(core, &here);
    let known = known_tool(core, &here, &tool).await?;
    let notebook = core.settings.notebook.clone();
    let hints = known.as_ref().and_then(|known| known.tool.annotations.as_ref());
    let id = random_id();
    let noted = (knows_keys && notebook.is_some()).then(|| id.clone());
    let key = tool.key.clone().or(noted);
    let saved = SavedCall {
        id,
        server: core.dispatch.label().to_string(),
        account: core.settings.account.clone(),
        tool: tool.name.clone(),
        arguments: serde_json::from_str(&arguments)
            .map_err(|error| GaveUp::BadArguments(error.to_string()))?,
        key: key.clone().filter(|_| knows_keys),
        idempotent: hints
            .is_some_and(|it| it.idempotent_hint == Some(true) || it.read_only_hint == Some(true)),
        stage: Stage::Calling(None),
        answers: std::collections::BTreeMap::new(),
    };
    let record = Record::new(notebook, saved);
    record.write().await?;
    make(core, &tool, waiting, &record, key, None).await
}

/// Makes a call that another process has begun, with the round that it was in.
pub(crate) async fn again(core: &Arc<Core>, saved: SavedCall) -> Result<TaskHandle> {
    let round = match &saved.stage {
        Stage::Calling(round) => round.clone(),
        _ => None,
    };
    let tool =
        ToolCall { tasks: Tasks::Wanted, ..ToolCall::new(saved.tool.clone(), &saved.arguments) };
    let key = saved.key.clone();
    let record = Record::new(core.settings.notebook.clone(), saved);
    make(core, &tool, Waiting::new(core), &record, key, round).await
}

async fn make(
    core: &Arc<Core>,
    tool: &ToolCall,
    mut waiting: Waiting,
    record: &Record,
    key: Option<String>,
    round: Option<Round>,
) -> Result<TaskHandle> {
    if let Some(key) = &key {
        waiting.add_meta(IDEMPOTENCY_KEY, &Value::from(key.as_str()).to_string());
    }
    let saved = record.saved().await;
    let mut lost = 0;
    let mut fixed = false;
    let mut insisted = false;
    loop {
        let here = core.established().await?;
        let known = known_tool(core, &here, tool).await?;
        let wanted = written(core, &here, tool, known.as_deref(), &waiting, insisted);
        let may_insist = !insisted && !wanted.holds_tasks && asks_for_tasks(&here, tool);
        let error = match converse_noting(core, wanted, round.clone(), Some(record)).await {
            Ok(Came::Complete(answered)) => {
                let result: CallToolResult = answered.read()?;
                if tool.is_checked {
                    check(core, tool, known.as_deref(), &result).await?;
                }
                return TaskHandle::finished(core, record.clone(), result).await;
            }
            Ok(Came::Task(here, task)) => {
                return TaskHandle::begun(core, record.clone(), here.era, *task).await;
            }
            Err(error) => error,
        };
        match error.refused().map(|refused| refused.code) {
            // What the headers repeat is taken from a list that may be old.
            Some(code::HEADER_MISMATCH) if !fixed => {
                fixed = true;
                relist(core).await?;
            }
            // It runs only as a task, which the list did not say.
            Some(code::METHOD_NOT_FOUND | code::INVALID_REQUEST) if may_insist => insisted = true,
            None if saved.key.is_some()
                && error.may_have_run()
                && is_lost(&error)
                && lost < RESENDS =>
            {
                lost += 1;
                let wait = Duration::from_millis(100) * (1 << lost);
                tokio::time::sleep(wait + jitter(wait / 4)).await;
            }
            _ => {
                if !error.may_have_run() {
                    let _ = record.erase().await;
                }
                return Err(error);
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
    here: &Established,
    tool: &ToolCall,
    known: Option<&KnownTool>,
    waiting: &Waiting,
    insist: bool,
) -> Wanted {
    let arguments = tool.arguments.as_deref().unwrap_or("{}");
    let name = Value::from(tool.name.as_str());
    let dialect = here.era.tasks();
    let support = known.map_or(TaskSupport::Forbidden, KnownTool::task_support);
    let asks = asks_for_tasks(here, tool)
        && (insist
            || support == TaskSupport::Required
            || (support == TaskSupport::Optional
                && (tool.tasks == Tasks::Wanted || core.settings.notebook.is_some())));
    let holds_tasks = match dialect {
        TaskDialect::None => false,
        TaskDialect::Asked => asks,
        TaskDialect::Given => tool.tasks != Tasks::Never,
    };
    let task = match (dialect, asks, tool.ttl) {
        (TaskDialect::Asked, true, Some(ttl)) => {
            format!(r#","task":{{"ttl":{}}}"#, ttl.as_millis())
        }
        (TaskDialect::Asked, true, None) => r#","task":{}"#.to_owned(),
        _ => String::new(),
    };
    let params = format!(r#"{{"name":{name},"arguments":{arguments}{task}}}"#);
    let mirrors = matches!(here.link, Link::Http { .. }) && !here.era.has_sessions();
    let repeated = match known {
        Some(known) if mirrors => known.repeated(arguments),
        _ => Vec::new(),
    };
    let mut wanted = Wanted::new(core, Method::ToolsCall, params).named(tool.name.as_str());
    (wanted.repeated, wanted.holds_tasks) = (repeated, holds_tasks);
    wanted.waiting = waiting.clone();
    wanted
}

/// Whether a client may ask this server to make tasks of tool calls.
fn asks_for_tasks(here: &Established, tool: &ToolCall) -> bool {
    let declared = here.server.capabilities.tasks.as_ref();
    tool.tasks != Tasks::Never
        && here.era.tasks() == TaskDialect::Asked
        && declared.is_some_and(|tasks| tasks.pointer("/requests/tools/call").is_some())
}

/// What the list says of a tool. Where nothing depends on it, the list is not asked for.
async fn known_tool(
    core: &Arc<Core>,
    here: &Established,
    tool: &ToolCall,
) -> Result<Option<Arc<KnownTool>>> {
    let book = core.dispatch.book();
    if let Some(known) = book.get(&tool.name) {
        return Ok(Some(known));
    }
    if asks_for_tasks(here, tool) && !book.is_whole() {
        relist(core).await?;
    }
    Ok(book.get(&tool.name))
}

/// Reads the whole list again.
async fn relist(core: &Arc<Core>) -> Result<()> {
    core.dispatch.tell(super::Notice::ToolsChanged);
    let mut tools: Pages<outlive_wire::Tool> = Pages::new(core, Method::ToolsList);
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
    let limit = core.limits().schema_bytes;
    if schema.get().len() > limit {
        return Err(Error::broke(format!("its output schema has more than {limit} bytes")));
    }
    let schema = Schema::output_from_json(schema)
        .map_err(|error| Error::broke(format!("its output schema is none: {error}")))?;
    let Some(content) = &result.structured_content else {
        let why = format!("`{}` promises structured content and has none", tool.name);
        return Err(GaveUp::SchemaViolated(why).into());
    };
    schema.check(content.get()).map_err(|why| GaveUp::SchemaViolated(why.to_string()).into())
}

/// Whether the server gives the same answer to the same key.
fn knows_keys(core: &Core, here: &Established) -> bool {
    let offered = &here.server.capabilities;
    let says = |said: &Option<outlive_wire::JsonObject>| {
        said.as_ref().is_some_and(|said| said.contains_key(KNOWS_KEYS))
    };
    core.settings.knows_keys.unwrap_or(says(&offered.extensions) || says(&offered.experimental))
}

pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness there is nothing safe to do; a name of zeros would be shared.
    getrandom::fill(&mut bytes).expect("the system has randomness");
    hex(&bytes)
}
