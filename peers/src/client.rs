//! Interop client of rmcp: `rmcp-client VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.
//!
//! Prints the outcome of each feature as a line of JSON, like `interop-client`.

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
    let modern = arguments.next().ok_or(usage)? == "2026-07-28";
    let lifecycle = match modern {
        true => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        false => ClientLifecycleMode::Initialize,
    };
    let target = arguments.next().ok_or(usage)?;
    let heard = Arc::new(Heard::default());
    let answering = Answering { modern, heard: Arc::clone(&heard) };
    let client = if target == "--" {
        let mut program = tokio::process::Command::new(arguments.next().ok_or(usage)?);
        program.args(arguments);
        answering.serve_with_lifecycle(TokioChildProcess::new(program)?, lifecycle).await?
    } else {
        let transport = StreamableHttpClientTransport::from_uri(target.clone());
        answering.serve_with_lifecycle(transport, lifecycle).await?
    };
    report("tools", tools(&client)).await;
    report("resources", resources(&client)).await;
    report("prompts", prompts(&client)).await;
    report("completion", completion(&client)).await;
    report("logging", logging(&client, modern, &heard)).await;
    report("progress", progress(&client, &heard)).await;
    let asked = json!({"message": "Enter your name"});
    report("elicitation", says(&client, "test_elicitation", asked, "ada@example.com")).await;
    let asked = json!({"prompt": "Say something"});
    report("sampling", says(&client, "test_sampling", asked, "a sampled text")).await;
    let roots = "test_input_required_result_list_roots";
    report("roots", says(&client, roots, json!({}), "1 roots")).await;
    if modern {
        report("tasks", tasks(&client)).await;
    }
    report("cancel", cancel(&client)).await;
    report("listen", listen(&client, modern, &heard)).await;
    if !modern && target != "--" {
        let resumed = "completed successfully";
        report("resumption", says(&client, "test_reconnection", json!({}), resumed)).await;
    }
    client.cancel().await?;
    Ok(())
}

/// Counters of notifications.
#[derive(Default)]
struct Heard {
    logs: AtomicUsize,
    progress: AtomicUsize,
    changes: AtomicUsize,
}

/// Client handler that responds to all input requests.
struct Answering {
    modern: bool,
    heard: Arc<Heard>,
}

impl ClientHandler for Answering {
    fn get_info(&self) -> ClientConfig {
        let capabilities =
            ClientCapabilities::builder().enable_elicitation().enable_sampling().enable_roots();
        // rmcp's tasks are the 2026-07-28 extension, which 2025-11-25 does not have.
        let capabilities = match self.modern {
            true => capabilities.enable_tasks().build(),
            false => capabilities.build(),
        };
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "3.8.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": "Ada", "email": "ada@example.com"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
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
    let change = says(client, "test_trigger_tool_change", json!({}), "changed");
    if !modern {
        change.await?;
        let came = async || Ok(heard.changes.load(Relaxed) > 0);
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
