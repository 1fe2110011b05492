//! A server whose tools request input, with its answer page.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use outlive::{
    Form,
    client::{Client, input::InputCapabilities, request::result_text, tasks::TaskHandle},
    people::AnswerLinks,
    server::{
        Args, Durable, Principal, Result as ToolResult, Server, Tool,
        http::{HttpConfig, HttpServer},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::TaskId,
};
use outlive_console::Console;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Time for a task to open its input request.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Pages {
    links: AnswerLinks,
    client: Client,
    serving: HttpServer,
}

impl Pages {
    pub(super) async fn start() -> Result<Self> {
        let always = |tool: Tool| tool.task(TaskPolicy::Always);
        let server = Server::builder("shop", "1")
            .tasks(TaskConfig::in_memory())
            .tool(always(Tool::new("deploy", deploy)))
            .tool(always(Tool::new("visit", visit)))
            .build()?;
        let http = HttpConfig::new().routes(Console::answer_page(&server));
        let serving = server.serve_http("127.0.0.1:0", http).await?;
        let capabilities = InputCapabilities { form: true, url: true, ..Default::default() };
        let client = Client::builder("testbench", "1").input_capabilities(capabilities);
        let client = client.connect(&server).await?;
        Ok(Self { links: AnswerLinks::new(&server), client, serving })
    }

    /// Returns an address of the answer page.
    pub(super) fn address(&self, token: &str) -> String {
        format!("http://{}/answer/{token}", self.serving.address())
    }

    /// Calls a tool. Returns its task and the address that answers its input request.
    pub(super) async fn ask(&self, tool: &str) -> Result<(TaskHandle, String)> {
        let long = "One line of a long description. ".repeat(60);
        let arguments = json!({"target": "shop:1", "notes": long, "tags": ["a", {"b": 1.50}]});
        let handle = self.client.start_tool(tool, arguments).await?;
        let id = TaskId::new(handle.task_id().context("the call is not a task")?);
        let end = tokio::time::Instant::now() + TIMEOUT;
        while tokio::time::Instant::now() < end {
            if let Some(token) = self.links.create(Principal::LOCAL.key(), &id, "approve").await? {
                return Ok((handle, self.address(&token)));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("`{tool}` has requested no input")
    }
}

/// Returns the result of a task that was answered.
pub(super) async fn result(mut handle: TaskHandle) -> Result<String> {
    let ended = tokio::time::timeout(TIMEOUT, handle.wait()).await;
    Ok(result_text(&ended.context("the answered task does not end")??))
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the page shows the arguments")]
struct Deploy {
    target: String,
    notes: String,
    tags: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema, Form)]
struct Approval {
    /// Text for the log.
    #[schemars(title = "Reason", length(min = 3, max = 80))]
    reason: String,
    #[schemars(title = "Replicas", range(min = 1, max = 9))]
    replicas: u8,
    #[schemars(title = "Deploy now")]
    sure: bool,
    #[schemars(title = "Machine")]
    size: Size,
    #[schemars(title = "Notify by")]
    channels: Option<Vec<Channel>>,
    #[schemars(title = "Contact", email)]
    contact: Option<String>,
    /// Free text.
    #[schemars(title = "Comment")]
    comment: Option<String>,
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

async fn deploy(cx: Durable, Args(_): Args<Deploy>) -> ToolResult<String> {
    let message = "Deploy shop:1 to production?\nThe last deployment was 3 days ago.";
    let Approval { reason, replicas, sure, size, channels, contact, comment } =
        cx.elicit::<Approval>("approve", message).await?;
    Ok(format!("{reason}, {replicas}, {sure}, {size:?}, {channels:?}, {contact:?}, {comment:?}"))
}

async fn visit(cx: Durable, Args(_): Args<Deploy>) -> ToolResult<String> {
    let url = "https://pay.example/order/1?sum=90&currency=EUR";
    cx.elicit_url("approve", "Pay the order in the shop.", url).await?;
    Ok("visited".to_owned())
}
