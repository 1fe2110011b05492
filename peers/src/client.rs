//! Interop client of rmcp: `rmcp-client VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.
//!
//! Prints the outcome of each feature as a line of JSON, like `interop-client`. `FEATURES` in the
//! environment selects features.

// Also tests the features that 2026-07-28 deprecates.
#![allow(deprecated)]

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

/// Timeout of one feature.
const PATIENCE: Duration = Duration::from_secs(15);

type Client = RunningService<RoleClient, Answering>;
type Tried = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Tried {
    let mut arguments = env::args().skip(1);
    let usage = "usage: rmcp-client VERSION (URL | -- PROGRAM ARGUMENT…)";
    let version = arguments.next().ok_or(usage)?;
    let modern = version == "2026-07-28";
    let version: ProtocolVersion = serde_json::from_value(json!(version))?;
    let lifecycle = match modern {
        true => ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] },
        false => ClientLifecycleMode::Initialize,
    };
    let target = arguments.next().ok_or(usage)?;
    let heard = Arc::new(Heard::default());
    let offered = if modern { ProtocolVersion::V_2025_11_25 } else { version };
    // rmcp's tasks are the 2026-07-28 extension, which 2025-11-25 does not have.
    let selected = env::var("FEATURES").ok();
    let has_tasks = modern && selected.as_ref().is_none_or(|it| it.contains("task"));
    let answering = Answering { has_tasks, offered, heard: Arc::clone(&heard) };
    let client = if target == "--" {
        let mut program = tokio::process::Command::new(arguments.next().ok_or(usage)?);
        program.args(arguments);
        answering.serve_with_lifecycle(TokioChildProcess::new(program)?, lifecycle).await?
    } else {
        let transport = StreamableHttpClientTransport::from_uri(target.clone());
        answering.serve_with_lifecycle(transport, lifecycle).await?
    };
    if let Some(selected) = selected {
        for feature in selected.split(',') {
            report(feature, Box::pin(try_one(feature, &client, modern, &heard))).await;
        }
    } else {
        try_all(&client, modern, target == "--", &heard).await;
    }
    client.cancel().await?;
    Ok(())
}

/// Tests the features of `cargo xtask interop`.
async fn try_all(client: &Client, modern: bool, is_stdio: bool, heard: &Heard) {
    let mut features = vec![
        "tools", "resources", "prompts", "completion", "logging", "progress", "elicitation",
        "sampling", "roots",
    ];
    features.extend(modern.then_some("tasks"));
    features.extend(["cancel", "listen"]);
    features.extend((!modern && !is_stdio).then_some("resumption"));
    for feature in features {
        report(feature, Box::pin(try_one(feature, client, modern, heard))).await;
    }
}

async fn try_one(feature: &str, client: &Client, modern: bool, heard: &Heard) -> Tried {
    let form = json!({"message": "Enter your name"});
    let prompt = json!({"prompt": "Say something"});
    let state = "test_input_required_result_request_state";
    match feature {
        "tools" => tools(client).await,
        "resources" => resources(client).await,
        "templates" => templates(client).await,
        "prompts" => prompts(client).await,
        "completion" => completion(client).await,
        "logging" => logging(client, modern, heard).await,
        "progress" => progress(client, heard).await,
        "elicitation" => says(client, "test_elicitation", form, "ada@example.com").await,
        "url" => says(client, "test_url_elicitation", json!({}), "url: accept").await,
        "url_required" => says(client, "test_url_required", json!({}), "consented").await,
        "sampling" | "gateway_state" => {
            says(client, "test_sampling", prompt, "a sampled text").await
        }
        "roots" => {
            let roots = "test_input_required_result_list_roots";
            says(client, roots, json!({}), "1 roots").await
        }
        "state" => says(client, state, json!({}), "state-ok").await,
        "tasks" | "task" => tasks(client).await,
        "task_input" => task_input(client).await,
        "cancel" => cancel(client).await,
        "listen" => listen(client, modern, heard).await,
        "subscribe" => subscribe(client, modern, heard).await,
        "resumption" => {
            says(client, "test_reconnection", json!({}), "completed successfully").await
        }
        other => Err(format!("the client has no feature `{other}`").into()),
    }
}

/// Counters of notifications.
#[derive(Default)]
struct Heard {
    logs: AtomicUsize,
    progress: AtomicUsize,
    changes: AtomicUsize,
    updates: AtomicUsize,
}

/// Client handler that responds to all input requests.
struct Answering {
    has_tasks: bool,
    /// Version of its handshake.
    offered: ProtocolVersion,
    heard: Arc<Heard>,
}

impl ClientHandler for Answering {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let capabilities = ClientCapabilities::builder()
            .enable_elicitation_with(elicitation)
            .enable_sampling()
            .enable_roots();
        let capabilities = match self.has_tasks {
            true => capabilities.enable_tasks().build(),
            false => capabilities.build(),
        };
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "3.8.0"))
            .with_protocol_version(self.offered.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let accept = ElicitResult::new(ElicitationAction::Accept);
        let wanted = json!(request)["requestedSchema"]["properties"].clone();
        let Some(wanted) = wanted.as_object() else { return Ok(accept) };
        let known = json!({"username": "Ada", "email": "ada@example.com", "ok": true});
        let content: JsonObject =
            wanted.keys().map(|name| (name.clone(), known[name].clone())).collect();
        Ok(accept.with_content(Value::Object(content)))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text("a sampled text");
        Ok(CreateMessageResult::new(message, "a-model".to_owned()).with_stop_reason("endTurn"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///interop").with_name("interop")]))
    }

    async fn on_logging_message(
        &self,
        _: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.logs.fetch_add(1, Relaxed);
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.progress.fetch_add(1, Relaxed);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.changes.fetch_add(1, Relaxed);
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.updates.fetch_add(1, Relaxed);
    }
}

async fn report(feature: &str, trying: impl Future<Output = Tried>) {
    let why = match tokio::time::timeout(PATIENCE, trying).await {
        Ok(tried) => tried.err().map(|error| error.to_string()),
        Err(_) => Some(format!("no outcome within {} seconds", PATIENCE.as_secs())),
    };
    println!("{}", json!({"feature": feature, "why": why}));
}

async fn tools(client: &Client) -> Tried {
    let listed = client.list_all_tools().await?;
    check(listed.iter().any(|tool| tool.name == "test_simple_text"), "the tool is not listed")?;
    says(client, "test_simple_text", json!({}), "simple text").await
}

async fn resources(client: &Client) -> Tried {
    client.list_all_resources().await?;
    client.list_all_resource_templates().await?;
    let read = client.read_resource(ReadResourceRequestParams::new("test://static-text")).await?;
    check(!read.contents.is_empty(), "the resource is empty")
}

async fn templates(client: &Client) -> Tried {
    let listed = client.list_all_resource_templates().await?;
    let found = listed.iter().any(|it| json!(it)["uriTemplate"] == "test://template/{id}/data");
    check(found, "the template is not listed")?;
    let uri = "test://template/7/data";
    let read = json!(client.read_resource(ReadResourceRequestParams::new(uri)).await?.contents);
    check(read.to_string().contains("ID: 7"), format!("the resource is {read}"))
}

async fn prompts(client: &Client) -> Tried {
    client.list_all_prompts().await?;
    let arguments = object(json!({"arg1": "one", "arg2": "two"}));
    let wanted =
        GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments);
    check(!client.get_prompt(wanted).await?.messages.is_empty(), "the prompt is empty")
}

async fn completion(client: &Client) -> Tried {
    let found = client.complete_prompt_simple("test_prompt_with_arguments", "arg1", "te").await?;
    check(found.iter().any(|it| it == "test"), format!("the completion is {found:?}"))
}

async fn logging(client: &Client, modern: bool, heard: &Heard) -> Tried {
    let mut options = PeerRequestOptions::no_options();
    // Legacy clients set the level once, modern ones in each call.
    if modern {
        let mut meta = RequestMetaObject::new();
        meta.set_log_level(LoggingLevel::Debug);
        options = options.with_meta(meta);
    } else {
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Debug)).await?;
    }
    let call = request("test_tool_with_logging");
    client.send_request_with_option(call, options).await?.await_response().await?;
    until("no log message arrived", async || Ok(heard.logs.load(Relaxed) > 0)).await
}

async fn progress(client: &Client, heard: &Heard) -> Tried {
    says(client, "test_tool_with_progress", json!({}), "done").await?;
    let came = async || Ok(heard.progress.load(Relaxed) > 1);
    until("fewer than two progress notifications arrived", came).await
}

async fn tasks(client: &Client) -> Tried {
    let arguments = object(json!({"seconds": 0.3, "label": "it"}));
    let call = CallToolRequestParams::new("slow_compute").with_arguments(arguments);
    let CallToolResponse::Task(made) = client.call_tool_once(call).await? else {
        return Err("the call did not become a task".into());
    };
    loop {
        let task = client.get_task(GetTaskParams::new(made.task.task_id.clone())).await?.task;
        if let TaskPayload::Completed { result } = &task.payload {
            let said = json!(result).to_string();
            return check(said.contains("it took"), format!("the task returned {said}"));
        }
        check(!task.status().is_terminal(), format!("the task is {:?}", task.status()))?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn cancel(client: &Client) -> Tried {
    let options = PeerRequestOptions::no_options();
    let call = client.send_cancellable_request(request("hold"), options).await?;
    let held = async |expected| Ok(says(client, "held", json!({}), expected).await.is_ok());
    until("the call is not running", async || held("running: 1").await).await?;
    call.cancel(None).await?;
    until("the call was not cancelled", async || held("cancelled: 1").await).await
}

async fn listen(client: &Client, modern: bool, heard: &Heard) -> Tried {
    let before = heard.changes.load(Relaxed);
    let change = says(client, "test_trigger_tool_change", json!({}), "changed");
    if !modern {
        change.await?;
        let came = async || Ok(heard.changes.load(Relaxed) > before);
        return until("no list change arrived", came).await;
    }
    let tools = SubscriptionFilter::builder().tools_list_changed().build();
    let mut changes = client.listen(tools).await?;
    change.await?;
    match changes.next().await? {
        Some(ServerNotification::ToolListChangedNotification(_)) => Ok(()),
        other => Err(format!("expected a list change, got {other:?}").into()),
    }
}

/// Follows a task that requests input, and responds to the request.
async fn task_input(client: &Client) -> Tried {
    let arguments = object(json!({"prompt": "Say something"}));
    let call = CallToolRequestParams::new("sample_in_task").with_arguments(arguments);
    let CallToolResponse::Task(made) = client.call_tool_once(call).await? else {
        return Err("the call did not become a task".into());
    };
    let id = made.task.task_id;
    loop {
        let task = client.get_task(GetTaskParams::new(id.clone())).await?.task;
        match &task.payload {
            TaskPayload::Completed { result } => {
                let said = json!(result).to_string();
                let fits = said.contains("a sampled text");
                return check(fits, format!("the task returned {said}"));
            }
            TaskPayload::InputRequired { input_requests } => {
                let message = json!({
                    "role": "assistant", "content": {"type": "text", "text": "a sampled text"},
                    "model": "a-model", "stopReason": "endTurn",
                });
                let responses: InputResponses =
                    input_requests.keys().map(|key| (key.clone(), message.clone())).collect();
                client.update_task(UpdateTaskParams::new(id.clone(), responses)).await?;
            }
            _ => check(!task.status().is_terminal(), format!("the task is {:?}", task.status()))?,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn subscribe(client: &Client, modern: bool, heard: &Heard) -> Tried {
    let uri = "test://watched-resource";
    if !modern {
        client.subscribe(SubscribeRequestParams::new(uri)).await?;
        // A gateway subscribes at its upstream a moment later.
        let came = async || {
            says(client, "test_touch_resource", json!({}), "touched").await?;
            Ok(heard.updates.load(Relaxed) > 0)
        };
        return until("no update arrived", came).await;
    }
    let watched = SubscriptionFilter::builder().resource_subscription(uri).build();
    let mut updates = client.listen(watched).await?;
    let touch = async {
        loop {
            says(client, "test_touch_resource", json!({}), "touched").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        update = updates.next() => match update? {
            Some(ServerNotification::ResourceUpdatedNotification(_)) => Ok(()),
            other => Err(format!("expected an update, got {other:?}").into()),
        },
        touched = touch => touched,
    }
}

async fn says(client: &Client, tool: &'static str, arguments: Value, expected: &str) -> Tried {
    let call = CallToolRequestParams::new(tool).with_arguments(object(arguments));
    let result = client.call_tool(call).await?;
    let said = json!(result).to_string();
    let fits = result.is_error != Some(true) && said.contains(expected);
    check(fits, format!("`{tool}` returned {said}"))
}

async fn until(why: &str, come: impl AsyncFn() -> Result<bool, Box<dyn Error>>) -> Tried {
    for _ in 0..50 {
        if come().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(why.into())
}

fn request(tool: &'static str) -> ClientRequest {
    let call = CallToolRequestParams::new(tool).with_arguments(JsonObject::new());
    ClientRequest::CallToolRequest(CallToolRequest::new(call))
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn check(fits: bool, why: impl Into<String>) -> Tried {
    if fits { Ok(()) } else { Err(why.into().into()) }
}
