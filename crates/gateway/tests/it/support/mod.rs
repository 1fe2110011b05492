//! Upstreams, gateways and clients for the tests.

mod gate;
mod restart;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client, Version,
        input::{InputCallbacks, InputResponse},
    },
    server::{
        Server, Tool,
        hosts::Hosts,
        http::{HttpConfig, HttpServer},
        tasks::{EngineConfig, TaskConfig},
    },
    store::MemoryStore,
    wire::{CallToolResult, ContentBlock},
};
use outlive_gateway::{Gateway, GatewayBuilder, GatewaySettings, Supervision, Upstream};

pub(crate) use self::{gate::Gate, restart::Restartable};

/// All protocol versions.
pub(crate) const VERSIONS: [Version; 5] = [
    Version::V2024_11_05,
    Version::V2025_03_26,
    Version::V2025_06_18,
    Version::V2025_11_25,
    Version::V2026_07_28,
];

/// A server over HTTP that counts the executions of its tools.
pub(crate) struct HttpUpstream {
    pub(crate) server: Server,
    pub(crate) serving: HttpServer,
}

impl HttpUpstream {
    pub(crate) async fn serve(server: Server) -> Self {
        let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
        Self { server, serving }
    }

    pub(crate) fn settings(&self, name: &str) -> Upstream {
        Upstream::url(name, self.serving.url())
    }
}

/// Counts executions.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns a server with one tool that returns its name and counts its executions.
pub(crate) fn named_server(tools: &[&str], counter: &Counter) -> Server {
    let mut builder = Server::builder("upstream", "1.0.0");
    for name in tools {
        builder = builder.tool(named_tool(name, counter));
    }
    builder.build().unwrap()
}

pub(crate) fn named_tool(name: &str, counter: &Counter) -> Tool {
    let (counter, text) = (counter.clone(), format!("result of {name}"));
    Tool::new(name, move || {
        counter.add();
        let text = text.clone();
        async move { text }
    })
    .description(format!("Runs {name}"))
}

/// A gateway with its server.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    pub(crate) server: Server,
}

impl Served {
    pub(crate) fn new(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        Self::with(GatewaySettings::new(), upstreams)
    }

    pub(crate) fn with(
        settings: GatewaySettings,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::on(store, settings, upstreams)
    }

    /// Serves to clients without tasks as to known hosts: calls can be bridged.
    pub(crate) fn hosted(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let tasks = TaskConfig::people(Arc::clone(&store) as _).hosts(Hosts::known());
        Self::build(store, tasks, GatewaySettings::new(), upstreams)
    }

    /// Serves upstreams whose processes survive the gateway.
    pub(crate) fn supervised(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let tasks = TaskConfig::people(Arc::clone(&store) as _);
        let folder = executions_file().with_extension("pipes");
        let supervision = Supervision::new(folder, Arc::clone(&store) as _).program(child());
        let builder = Gateway::builder().supervision(supervision);
        Self::build_with(builder, store, tasks, GatewaySettings::new(), upstreams)
    }

    /// Serves with a store that another gateway may have used.
    pub(crate) fn on(
        store: Arc<MemoryStore>,
        settings: GatewaySettings,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        let tasks = TaskConfig::people(Arc::clone(&store) as _);
        Self::build(store, tasks, settings, upstreams)
    }

    /// Serves with other limits of the task engine.
    pub(crate) fn with_engine(
        store: Arc<MemoryStore>,
        engine: impl FnOnce(&mut EngineConfig),
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        let tasks = TaskConfig::people(Arc::clone(&store) as _).engine(engine);
        Self::build(store, tasks, GatewaySettings::new(), upstreams)
    }

    fn build(
        store: Arc<MemoryStore>,
        tasks: TaskConfig,
        settings: GatewaySettings,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        Self::build_with(Gateway::builder(), store, tasks, settings, upstreams)
    }

    fn build_with(
        builder: GatewayBuilder,
        store: Arc<MemoryStore>,
        tasks: TaskConfig,
        settings: GatewaySettings,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        let mut builder = builder.settings(settings).store(store);
        for upstream in upstreams {
            builder = builder.upstream(upstream);
        }
        let gateway = builder.build().unwrap();
        let server = Server::builder("gateway", "1.0.0").logging(true).tasks(tasks);
        let server = gateway.attach(server).build().unwrap();
        gateway.start(&server);
        Self { gateway, server }
    }

    pub(crate) async fn client(&self, version: Version) -> Client {
        let builder = Client::builder("test", "1.0.0").protocol_version(version);
        builder.connect(&self.server).await.unwrap()
    }

    /// Returns a client that responds to forms and sampling.
    pub(crate) async fn answering(&self, version: Version) -> Client {
        let builder = Client::builder("test", "1.0.0").protocol_version(version);
        builder.input_handler(callbacks()).connect(&self.server).await.unwrap()
    }
}

/// Responses of a user and a model.
pub(crate) fn callbacks() -> InputCallbacks {
    InputCallbacks::new()
        .form(|_| async { InputResponse::accept(serde_json::json!({"color": "red"})) })
        .sampling(|_| async {
            InputResponse::Message(Box::new(
                serde_json::from_value(serde_json::json!({
                    "role": "assistant", "content": {"type": "text", "text": "hi"},
                    "model": "test-model"
                }))
                .unwrap(),
            ))
        })
}

/// Returns the path of the server over stdio.
pub(crate) fn child() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_outlive-test-upstream"))
}

/// Returns an upstream that is a process. Its executions are lines of `file`.
pub(crate) fn process(name: &str, mode: &str, file: Option<&Path>) -> Upstream {
    let mut command = vec![child().into_os_string(), mode.into()];
    command.extend(file.map(|file| file.as_os_str().to_owned()));
    Upstream::command(name, command)
}

/// Returns a file for the executions of one test.
pub(crate) fn executions_file() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("gateway-executions-{}-{number}", std::process::id()));
    for file in [path.clone(), go_file(&path)] {
        let _ = std::fs::remove_file(file);
    }
    path
}

/// Returns the file that lets `slow` return and a `late` server serve.
pub(crate) fn go_file(executions: &Path) -> PathBuf {
    executions.with_extension("go")
}

pub(crate) fn text(result: &CallToolResult) -> String {
    match result.content.first() {
        Some(ContentBlock::Text(text)) => text.text.clone(),
        other => panic!("no text: {other:?}"),
    }
}

/// Returns the lines of a file, which may not exist yet.
pub(crate) fn lines(file: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Tools wait at it until the test lets them pass, one execution at a time.
#[derive(Clone, Default)]
pub(crate) struct Turnstile(Arc<tokio::sync::Notify>, pub(crate) Counter);

impl Turnstile {
    /// Returns a tool that waits until it may pass, and counts its executions.
    pub(crate) fn tool(&self, name: &str) -> Tool {
        let gate = self.clone();
        Tool::new(name, move || {
            let gate = gate.clone();
            async move {
                gate.1.add();
                gate.0.notified().await;
                "opened"
            }
        })
    }

    /// Lets one execution end, now or when it waits.
    pub(crate) fn open(&self) {
        self.0.notify_one();
    }
}

/// Returns the names of the tools that a client sees.
pub(crate) async fn tool_names(client: &Client) -> Vec<String> {
    let tools = client.list_tools().collect().await.unwrap();
    tools.into_iter().map(|tool| tool.name).collect()
}

/// Waits until a condition is true.
pub(crate) async fn eventually(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not become true within 10 s");
}
