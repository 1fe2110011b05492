//! A server with tools that request input, its answer links, and a client that speaks HTTP.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use outlive::{
    Form,
    client::{Client, input::InputCapabilities, tasks::TaskHandle},
    people::AnswerLinks,
    server::{
        Args, Clock, Durable, Principal, Result, SealKeys, Server, Tool,
        durable::{Audience, ElicitOutcome},
        http::{HttpConfig, HttpServer},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, Store, TaskId, TaskStore},
};
use outlive_console::Console;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Wall clock that a test moves. Its monotonic time is real.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wall(Arc<AtomicU64>);

impl Wall {
    pub(crate) fn advance(&self, span: Duration) {
        self.0.fetch_add(span.as_secs(), Ordering::Relaxed);
    }
}

impl Clock for Wall {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A running server with its pages.
pub(crate) struct Site {
    pub(crate) links: AnswerLinks,
    pub(crate) wall: Wall,
    store: Arc<MemoryStore>,
    client: Client,
    address: SocketAddr,
    _serving: HttpServer,
}

/// A task that waits for input, and the path of its answer page.
pub(crate) struct Asked {
    pub(crate) handle: TaskHandle,
    pub(crate) id: TaskId,
    pub(crate) path: String,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let (store, wall) = (Arc::new(MemoryStore::new()), Wall::default());
        let server = server(Arc::clone(&store) as _, &wall);
        let http = HttpConfig::new().routes(Console::answer_page(&server));
        let serving = server.serve_http("127.0.0.1:0", http).await.expect("the server listens");
        let capabilities = InputCapabilities { form: true, url: true, ..Default::default() };
        let client = Client::builder("test", "1").input_capabilities(capabilities);
        let client = client.connect(&server).await.expect("the client connects");
        let (links, address) = (AnswerLinks::new(&server), serving.address());
        Self { links, wall, store, client, address, _serving: serving }
    }

    /// Calls a tool, and waits until its input request is open.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Asked {
        let (handle, id) = self.call(tool, arguments).await;
        let key = Principal::LOCAL;
        let token = self.links.create(key.key(), &id, "approve").await.expect("the store responds");
        let path = format!("/answer/{}", token.expect("the request may be answered by link"));
        Asked { handle, id, path }
    }

    /// Calls a tool, and waits until its input request is open. Returns its task.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> (TaskHandle, TaskId) {
        let handle = self.client.start_tool(tool, arguments).await.expect("the call starts");
        let id = TaskId::new(handle.task_id().expect("the call is a task"));
        while self.open(&id).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (handle, id)
    }

    /// Returns the wire keys of the open input requests of a task.
    pub(crate) async fn open(&self, id: &TaskId) -> Vec<String> {
        let task = self.store.get(Principal::LOCAL.key(), id).await.expect("the store responds");
        let inputs = task.expect("the task exists").input_requests;
        inputs.into_iter().map(|input| input.name).collect()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "").await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.expect("the server accepts");
        stream.write_all(head.as_bytes()).await.expect("the head is sent");
        // A server that rejects a long body closes the connection before it has read the body.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        Reply::parse(&String::from_utf8(bytes).expect("the page is UTF-8"))
    }

    /// Opens a page and submits its form with these values.
    pub(crate) async fn submit(&self, path: &str, action: &str, values: &str) -> Reply {
        let digest = self.get(path).await.digest();
        let body = format!("digest={digest}&action={action}&{values}");
        self.send("POST", path, &body).await
    }
}

/// Returns a server with the tools of these tests.
pub(crate) fn server(store: Arc<dyn Store>, wall: &Wall) -> Server {
    let tool = |tool: Tool| tool.task(TaskPolicy::Always);
    Server::builder("shop", "1")
        .clock(wall.clone())
        .seal_keys(SealKeys::new([7; 32]))
        .tasks(TaskConfig::new(store))
        .tool(tool(Tool::new("deploy", deploy)))
        .tool(tool(Tool::new("guarded", guarded)))
        .tool(tool(Tool::new("timed", timed)))
        .tool(tool(Tool::new("visit", visit)))
        .build()
        .expect("the server is valid")
}

/// A reply of the server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("the reply has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.expect("the reply has a status");
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, it)| it)
    }

    /// Returns the digest in the form of the page.
    pub(crate) fn digest(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"digest\" value=\"").expect("a form");
        rest.split('"').next().expect("a value").to_owned()
    }

    #[track_caller]
    pub(crate) fn has(&self, part: &str) {
        assert!(self.body.contains(part), "`{part}` is missing in {}", self.body);
    }
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the page shows the arguments")]
struct Deploy {
    target: Value,
}

#[derive(Debug, Deserialize, JsonSchema, Form)]
#[expect(dead_code, reason = "the result is its debug output")]
struct Approval {
    /// What to write into the log.
    #[schemars(title = "Reason", length(min = 3, max = 80))]
    reason: String,
    #[schemars(range(min = 1, max = 9))]
    replicas: u8,
    share: Option<f64>,
    sure: bool,
    size: Size,
    channels: Option<Vec<Channel>>,
    #[schemars(email)]
    contact: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema, Form)]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema, Form)]
enum Channel {
    Mail,
    Chat,
}

/// Message with text that could change a page.
pub(crate) const MESSAGE: &str = "Deploy <b>shop</b>?\nNow \u{202e}yes";

async fn deploy(cx: Durable, Args(_): Args<Deploy>) -> Result<String> {
    Ok(match cx.elicit::<Approval>("approve", MESSAGE).outcome().await? {
        ElicitOutcome::Accepted(approval) => format!("{approval:?}"),
        ElicitOutcome::Declined => "declined".to_owned(),
        ElicitOutcome::Cancelled => "cancelled".to_owned(),
    })
}

async fn guarded(cx: Durable) -> Result<String> {
    let asked = cx.elicit::<Approval>("approve", "Sure?").audience(Audience::Caller);
    Ok(format!("{:?}", asked.await?))
}

async fn timed(cx: Durable) -> Result<String> {
    let asked = cx.elicit::<Approval>("approve", "Soon?").timeout(Duration::from_secs(60));
    Ok(format!("{:?}", asked.await?))
}

async fn visit(cx: Durable) -> Result<String> {
    let url = "https://pay.example/?order=1&sum=\"2\"";
    Ok(format!("{:?}", cx.elicit_url("approve", "Pay", url).outcome().await?))
}

/// Arguments of `deploy`.
pub(crate) fn target() -> Value {
    json!({"target": "shop:1"})
}

/// Valid values of the form of `deploy`.
pub(crate) const VALID: &str = "field.reason=as+planned&field.replicas=3&field.share=0.5&field.sure=yes\
    &field.size=1&field.channels=0&field.channels=1&field.contact=";

/// The result of `deploy` with [`VALID`].
pub(crate) const RESULT: &str = "Approval { reason: \"as planned\", replicas: 3, share: Some(0.5), \
    sure: true, size: Large, channels: Some([Mail, Chat]), contact: None }";
