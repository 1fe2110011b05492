//! Benchmark server of rmcp: `(calls TOOLS | progress | tasks TTL)`.
//!
//! Prints `listening PORT` on standard output and exits at the end of standard input. With
//! `--defaults` it follows rmcp's examples: sessions, event streams, a handler clone per request,
//! and Nagle's algorithm. Without, it uses the fastest settings: no sessions, JSON, a shared
//! handler, and no Nagle's algorithm.

use std::{
    env,
    error::Error,
    io::{self, Read},
    sync::Arc,
};

use axum::serve::ListenerExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::*,
    service::RequestContext,
    task_manager::{TaskManager, TaskOptions},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::{local::LocalSessionManager, never::NeverSessionManager},
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CountArgs {
    steps: u32,
}

#[derive(Clone)]
struct Bench {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Bench {
    /// Creates a server with this number of tools, of which one is called.
    fn new(tools: usize) -> Self {
        let mut tool_router = Self::tool_router();
        let echo = tool_router.map.get("echo").cloned();
        for number in 1..tools {
            if let Some(mut more) = echo.clone() {
                more.attr.name = format!("tool_{number:05}").into();
                tool_router.add_route(more);
            }
        }
        Self { tool_router }
    }

    #[tool(description = "Returns its argument")]
    async fn echo(&self, Parameters(EchoArgs { message }): Parameters<EchoArgs>) -> String {
        message
    }

    #[tool(description = "Reports progress steps")]
    async fn count(
        &self,
        Parameters(CountArgs { steps }): Parameters<CountArgs>,
        cx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let token = cx.meta.get_progress_token();
        let token = token.ok_or_else(|| ErrorData::invalid_params("no progress token", None))?;
        for step in 1..=steps {
            let step = ProgressNotificationParam::new(token.clone(), f64::from(step))
                .with_total(f64::from(steps));
            let sent = cx.peer.notify_progress(step).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(format!("counted to {steps}"))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("bench", "1.0.0"))
    }
}

/// Server whose every call is a task. rmcp leaves tasks to the handler.
#[derive(Clone)]
struct Tasks {
    tasks: TaskManager,
    ttl: u64,
}

impl ServerHandler for Tasks {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("bench", "1.0.0"))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = serde_json::Value::Object(call.arguments.unwrap_or_default());
        let EchoArgs { message } = serde_json::from_value(arguments)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let task = self.tasks.spawn(TaskOptions::new().with_ttl_ms(self.ttl), move |_| {
            Box::pin(async move { Ok(CallToolResult::success(vec![ContentBlock::text(message)])) })
        });
        Ok(CreateTaskResult::new(task).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let defaults = env::args().any(|word| word == "--defaults");
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--defaults").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    runtime.block_on(async {
        match words[..] {
            ["calls", tools] => {
                let bench = Bench::new(tools.parse()?);
                if defaults {
                    start(move || Ok(bench.clone()), true, false).await?;
                } else {
                    let bench = Arc::new(bench);
                    start(move || Ok(Arc::clone(&bench)), false, true).await?;
                }
            }
            ["progress"] => {
                let bench = Arc::new(Bench::new(1));
                start(move || Ok(Arc::clone(&bench)), defaults, false).await?;
            }
            ["tasks", ttl] => {
                let tasks = Tasks { tasks: TaskManager::default(), ttl: ttl.parse()? };
                start(move || Ok(tasks.clone()), defaults, !defaults).await?;
            }
            _ => return Err("usage: [--defaults] (calls TOOLS | progress | tasks TTL)".into()),
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    io::copy(&mut io::stdin().by_ref(), &mut io::sink())?;
    Ok(())
}

async fn start<H: ServerHandler>(
    handler: impl Fn() -> io::Result<H> + Send + Sync + 'static,
    defaults: bool,
    json: bool,
) -> io::Result<()> {
    let mut config = StreamableHttpServerConfig::default();
    config.max_request_body_bytes = 16 << 20;
    let router = if defaults {
        let sessions = Arc::new(LocalSessionManager::default());
        axum::Router::new()
            .nest_service("/mcp", StreamableHttpService::new(handler, sessions, config))
    } else {
        let config = config
            .with_legacy_session_mode(false)
            .with_json_response(json)
            .with_stateless_protocol_metadata_required(true);
        let sessions = Arc::new(NeverSessionManager::default());
        axum::Router::new()
            .nest_service("/mcp", StreamableHttpService::new(handler, sessions, config))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening {}", listener.local_addr()?.port());
    tokio::spawn(async move {
        let listener = listener.tap_io(move |stream| {
            if !defaults {
                let _ = stream.set_nodelay(true);
            }
        });
        axum::serve(listener, router).await
    });
    Ok(())
}
