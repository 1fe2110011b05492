//! Interop server of rmcp, with the tool names of the everything server.
//!
//! `rmcp-server --stdio`, or `rmcp-server` with `PORT` in the environment, which prints `listening
//! PORT`.

// Also tests the features that 2026-07-28 deprecates.
#![allow(deprecated)]

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, ServiceError, SubscriptionContext, SubscriptionSink},
    task_manager::{TaskManager, TaskOptions},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Reconnection delay for a closed stream.
const RETRY: Duration = Duration::from_millis(100);

/// Time that a change waits for a subscriber.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
struct Everything {
    held: Arc<Held>,
    tasks: TaskManager,
    /// Subscribers, since 2026-07-28.
    sinks: watch::Sender<Vec<SubscriptionSink>>,
    sessions: Arc<LocalSessionManager>,
    /// Whether the tools include one more.
    has_more: Arc<AtomicBool>,
}

/// A change that subscribers are notified of.
#[derive(Clone, Copy)]
enum Change {
    Tools,
    Watched,
}

/// The resource that a tool changes.
const WATCHED: &str = "test://watched-resource";

/// Counters of held and cancelled calls.
#[derive(Default)]
struct Held {
    running: AtomicUsize,
    cancelled: AtomicUsize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let everything = Everything::default();
    if env::args().any(|argument| argument == "--stdio") {
        everything.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let port: u16 = env::var("PORT").ok().map_or(Ok(0), |port| port.parse())?;
    let sessions = Arc::clone(&everything.sessions);
    let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY));
    let service = StreamableHttpService::new(move || Ok(everything.clone()), sessions, config);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening {}", listener.local_addr()?.port());
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rmcp", "3.8.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let more = self.has_more.load(Relaxed).then_some("test_added_tool");
        let names = TOOLS.into_iter().chain(more);
        let tools = names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        read(json!({"tools": tools.collect::<Vec<_>>()}))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let watched = json!({"uri": WATCHED, "name": "watched"});
        read(json!({"resources": [{"uri": "test://static-text", "name": "text"}, watched]}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "template"});
        read(json!({"resourceTemplates": [template]}))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let id = request.uri.strip_prefix("test://template/");
        let id = id.and_then(|rest| rest.strip_suffix("/data"));
        let text = id.map_or("text".to_owned(), |id| format!("Data for ID: {id}"));
        let contents = ResourceContents::text(text, request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = [json!({"name": "arg1"}), json!({"name": "arg2"})];
        read(json!({"prompts": [{"name": "test_prompt_with_arguments", "arguments": arguments}]}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = json!({"type": "text", "text": json!(request.arguments).to_string()});
        let message = json!({"role": "user", "content": text});
        Ok(read::<GetPromptResult>(json!({"messages": [message]}))?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let words = ["test", "testing", "value"];
        let fit = words.into_iter().filter(|word| word.starts_with(&request.argument.value));
        read(json!({"completion": {"values": fit.collect::<Vec<_>>()}}))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.sinks.send_modify(|sinks| sinks.push(context.sink().clone()));
        context.cancelled().await;
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*call.name {
            "test_simple_text" => Ok(says("This is a simple text response for testing.")),
            "test_tool_with_logging" => {
                let line =
                    LoggingMessageNotificationParam::new(LoggingLevel::Info, json!("a line"));
                cx.peer.notify_logging_message(line).await.map_err(broken)?;
                Ok(says("logged"))
            }
            "test_tool_with_progress" => progress(&cx).await,
            "test_elicitation" => ask(&cx, &call, elicitation(&call)?).await,
            "test_sampling" | "sample_in_task" => ask(&cx, &call, sampling(&call)?).await,
            "test_url_elicitation" => ask(&cx, &call, url_elicitation()?).await,
            "test_input_required_result_request_state" => confirm(&call),
            "test_input_required_result_list_roots" => {
                ask(&cx, &call, InputRequest::ListRoots(ListRootsRequest::default())).await
            }
            "slow_compute" => self.slow_compute(&call, &cx).await,
            "hold" => self.hold(&cx).await,
            "held" => {
                let [running, cancelled] =
                    [&self.held.running, &self.held.cancelled].map(|count| count.load(Relaxed));
                Ok(says(format!("running: {running}, cancelled: {cancelled}")))
            }
            "test_trigger_tool_change" => {
                self.has_more.fetch_xor(true, Relaxed);
                self.change(&cx, Change::Tools).await?;
                Ok(says("the list of tools has changed"))
            }
            "test_touch_resource" => {
                self.change(&cx, Change::Watched).await?;
                Ok(says("touched"))
            }
            "test_reconnection" => self.reconnection(&cx).await,
            name => Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None)),
        }
    }
}

const TOOLS: [&str; 15] = [
    "test_simple_text",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_elicitation",
    "test_sampling",
    "test_input_required_result_list_roots",
    "slow_compute",
    "hold",
    "held",
    "test_trigger_tool_change",
    "test_reconnection",
    "sample_in_task",
    "test_url_elicitation",
    "test_input_required_result_request_state",
    "test_touch_resource",
];

impl Everything {
    async fn slow_compute(
        &self,
        call: &CallToolRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let [seconds, label] = ["seconds", "label"].map(|name| argument(call, name));
        let time = Duration::from_secs_f64(seconds.as_f64().unwrap_or_default());
        let text = format!("{} took {seconds} seconds", label.as_str().unwrap_or_default());
        if !cx.client_capabilities().is_some_and(|it| it.supports_tasks()) {
            tokio::time::sleep(time).await;
            return Ok(says(text));
        }
        let task = self.tasks.spawn(TaskOptions::new().with_poll_interval_ms(50), move |_| {
            Box::pin(async move {
                tokio::time::sleep(time).await;
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
            })
        });
        Ok(CreateTaskResult::new(task).into())
    }

    async fn hold(&self, cx: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        self.held.running.fetch_add(1, Relaxed);
        let cancelled = tokio::time::timeout(Duration::from_secs(30), cx.ct.cancelled()).await;
        self.held.running.fetch_sub(1, Relaxed);
        self.held.cancelled.fetch_add(usize::from(cancelled.is_ok()), Relaxed);
        Ok(says("held"))
    }

    /// Notifies the client of a session, or all subscribers.
    async fn change(
        &self,
        cx: &RequestContext<RoleServer>,
        change: Change,
    ) -> Result<(), ErrorData> {
        if is_modern(cx) {
            let told = tokio::time::timeout(PATIENCE, self.tell_listeners(change)).await;
            return told.map_err(|_| ErrorData::internal_error("no subscriber", None));
        }
        let sent = match change {
            Change::Tools => cx.peer.notify_tool_list_changed().await,
            Change::Watched => {
                let updated = ResourceUpdatedNotificationParam::new(WATCHED);
                cx.peer.notify_resource_updated(updated).await
            }
        };
        sent.map_err(broken)
    }

    /// Notifies all subscribers and waits for the first one. rmcp acknowledges a subscription
    /// before it calls `listen`, so the client's next call may arrive earlier.
    async fn tell_listeners(&self, change: Change) {
        let mut listening = self.sinks.subscribe();
        loop {
            let sinks = listening.borrow_and_update().clone();
            let mut told = false;
            for sink in sinks {
                // Errors of closed and of other subscriptions are ignored.
                let sent = match change {
                    Change::Tools => sink.notify_tool_list_changed().await,
                    Change::Watched => sink.notify_resource_updated(WATCHED).await,
                };
                told |= sent.is_ok();
            }
            if told || listening.changed().await.is_err() {
                return;
            }
        }
    }

    async fn reconnection(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let head = cx.extensions.get::<axum::http::request::Parts>();
        let session = head.and_then(|head| head.headers.get("mcp-session-id"));
        let session = session.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let session = self.sessions.sessions.read().await.get(session).cloned();
        let session =
            session.ok_or_else(|| ErrorData::internal_error("the request has no session", None))?;
        // rmcp does not tell a tool its stream. Streams are numbered, and the newest belongs to
        // this call.
        for stream in (0..256).rev() {
            if session.close_sse_stream(stream, Some(RETRY)).await.is_ok() {
                // rmcp drops a response without a reader (`handle_server_message` in its
                // `session/local.rs`), so the client must reconnect first.
                tokio::time::sleep(RETRY * 5).await;
                return Ok(says("Reconnection test completed successfully."));
            }
        }
        Err(ErrorData::internal_error("no stream to close", None))
    }
}

async fn progress(cx: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let token = cx.meta.get_progress_token();
    let token = token.ok_or_else(|| ErrorData::invalid_params("no progress token", None))?;
    for progress in [0.0, 50.0, 100.0] {
        let step = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
        cx.peer.notify_progress(step).await.map_err(broken)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(says("done"))
}

/// Requests input: while the call waits (legacy), or by ending the round (modern).
async fn ask(
    cx: &RequestContext<RoleServer>,
    call: &CallToolRequestParams,
    question: InputRequest,
) -> Result<CallToolResponse, ErrorData> {
    let is_url = matches!(
        &question,
        InputRequest::Elicitation(it)
            if matches!(it.params, ElicitRequestParams::UrlElicitationParams { .. })
    );
    let answer = if is_modern(cx) {
        let answers = call.input_responses.as_ref();
        match answers.and_then(|it| it.get("it")) {
            Some(answer) => answer.clone(),
            None => {
                let questions = InputRequests::from([("it".to_owned(), question)]);
                return Ok(InputRequiredResult::from_input_requests(questions).into());
            }
        }
    } else {
        match question {
            InputRequest::Elicitation(it) => {
                json!(cx.peer.create_elicitation(it.params).await.map_err(broken)?)
            }
            InputRequest::CreateMessage(it) => {
                json!(cx.peer.create_message(it.params).await.map_err(broken)?)
            }
            _ => json!(cx.peer.list_roots().await.map_err(broken)?),
        }
    };
    Ok(match answer["roots"].as_array() {
        Some(roots) => says(format!("{} roots", roots.len())),
        None if is_url => says(format!("url: {}", answer["action"].as_str().unwrap_or_default())),
        None => says(format!("answered: {answer}")),
    })
}

fn elicitation(call: &CallToolRequestParams) -> Result<InputRequest, ErrorData> {
    let text = json!({"type": "string"});
    Ok(InputRequest::Elicitation(ElicitRequest::new(read(json!({
        "mode": "form",
        "message": argument(call, "message"),
        "requestedSchema": {
            "type": "object",
            "properties": {"username": text, "email": text},
            "required": ["username", "email"],
        },
    }))?)))
}

fn url_elicitation() -> Result<InputRequest, ErrorData> {
    Ok(InputRequest::Elicitation(ElicitRequest::new(read(json!({
        "mode": "url",
        "message": "Please agree",
        "url": "https://example.com/consent",
        "elicitationId": "consent-1",
    }))?)))
}

/// Requests input with a request state, and checks the state that comes back.
fn confirm(call: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let answers = call.input_responses.as_ref();
    if let Some(answer) = answers.and_then(|it| it.get("it")) {
        let is_ours = call.request_state.as_deref() == Some("the state");
        let ok = &answer["content"]["ok"];
        return Ok(says(if is_ours { format!("state-ok: {ok}") } else { "another state".to_owned() }));
    }
    let question = InputRequest::Elicitation(ElicitRequest::new(read(json!({
        "mode": "form",
        "message": "Is this all right?",
        "requestedSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
    }))?));
    let questions = InputRequests::from([("it".to_owned(), question)]);
    let mut required = InputRequiredResult::from_input_requests(questions);
    required.request_state = Some("the state".to_owned());
    Ok(required.into())
}

fn sampling(call: &CallToolRequestParams) -> Result<InputRequest, ErrorData> {
    let text = json!({"type": "text", "text": argument(call, "prompt")});
    Ok(InputRequest::CreateMessage(CreateMessageRequest::new(read(json!({
        "messages": [{"role": "user", "content": text}],
        "maxTokens": 100,
    }))?)))
}

fn is_modern(cx: &RequestContext<RoleServer>) -> bool {
    cx.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
}

fn argument(call: &CallToolRequestParams, name: &str) -> Value {
    call.arguments.as_ref().and_then(|it| it.get(name)).cloned().unwrap_or_default()
}

fn says(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn broken(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
