//! A test server with a tool for every situation that `outlive call` handles. The tests of this
//! crate run it.
//!
//! It serves stdio with `--stdio`, otherwise HTTP on a free port, and prints its URL. `--store
//! FILE` stores its tasks.

use std::{env, path::Path, sync::Arc, time::Duration};

use outlive::{
    Form,
    server::{
        CallToolResult, ContentBlock, Durable, Error, Json, Result, Server, Tool,
        http::{HttpConfig, StaticTokens},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::SqliteStore,
    tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time after which a call becomes a task.
const AFTER: Duration = Duration::from_millis(200);

/// Poll interval of a tool that waits for a file.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Adds two numbers.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

/// Returns its arguments.
#[tool(read_only)]
async fn echo(
    text: Option<String>,
    whole: Option<i64>,
    number: Option<f64>,
    yes: Option<bool>,
    tags: Option<Vec<String>>,
    size: Option<Size>,
    any: Option<serde_json::Value>,
) -> Result<CallToolResult> {
    let said = serde_json::json!({"text": text, "whole": whole, "number": number, "yes": yes,
        "tags": tags, "size": size, "any": any});
    Ok(CallToolResult::text(said.to_string()))
}

/// Returns the same value twice, like servers that wrap values in an object.
#[tool(read_only)]
async fn wrapped() -> Result<CallToolResult> {
    let mut result = CallToolResult::text("3");
    result.structured_content =
        Some(serde_json::value::to_raw_value(&serde_json::json!({"result": 3}))?);
    Ok(result)
}

/// Returns content that is not text.
#[tool(read_only)]
async fn picture() -> CallToolResult {
    CallToolResult::new([
        ContentBlock::text("a picture:"),
        ContentBlock::image_base64("AAAA", "image/png"),
        ContentBlock::text("\u{1b}[31mred\u{1b}[0m"),
    ])
}

/// Fails.
#[tool]
async fn fail() -> Result<String> {
    Err(Error::new("out of paper"))
}

/// Counts, one line per number. Waits in the middle until a file exists.
#[tool(task = "auto", streams_content)]
async fn count(cx: Durable, to: u32, hold: Option<String>) -> Result<CallToolResult> {
    for number in 1..=to {
        cx.progress(f64::from(number), f64::from(to), "counting");
        cx.emit(format!("line {number}")).await?;
        if number == to / 2 {
            wait_for(hold.as_deref()).await;
        }
    }
    Ok(CallToolResult::new([]))
}

/// Waits until a file exists; never a task.
#[tool]
async fn hang(cx: outlive::server::Cx, hold: String) -> &'static str {
    cx.progress(1.0, None, "hanging");
    wait_for(Some(&hold)).await;
    "hung"
}

async fn wait_for(file: Option<&str>) {
    let Some(file) = file else { return };
    while !Path::new(file).exists() {
        tokio::time::sleep(LOOK).await;
    }
}

#[derive(Deserialize, Serialize, JsonSchema, Form)]
struct Order {
    /// Recipient of the order.
    #[schemars(length(min = 2))]
    name: String,
    #[schemars(email)]
    contact: Option<String>,
    #[schemars(range(min = 1, max = 10))]
    #[serde(default = "three")]
    count: u32,
    size: Cup,
    extras: Vec<Extra>,
    gift: bool,
}

fn three() -> u32 {
    3
}

#[derive(Deserialize, Serialize, JsonSchema, Form)]
enum Cup {
    Small,
    Large,
}

#[derive(Deserialize, Serialize, JsonSchema, Form)]
enum Extra {
    /// With milk
    Milk,
    /// With sugar
    Sugar,
}

/// Requests a form with every kind of field.
async fn order(cx: Durable) -> Result<String> {
    let order: Order = cx.elicit("order", "What would you like?").await?;
    Ok(serde_json::to_string(&order)?)
}

/// Asks the user to visit a page.
#[tool]
async fn visit(cx: Durable) -> Result<&'static str> {
    cx.elicit_url("login", "Log in to the shop", "https://shop.example/login?next=%2Fcart").await?;
    Ok("agreed")
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let tasks = match value("--store") {
        Some(file) => TaskConfig::new(Arc::new(SqliteStore::open(file)?)),
        None => TaskConfig::in_memory(),
    };
    let server = Server::builder("stage", "1.0.0")
        .instructions("A tool for every situation of a call.")
        .tasks(
            tasks
                .partial_results(true)
                .poll_interval(Duration::from_millis(50))
                // The tools ignore cancellation, so the server drops them after this grace period.
                .engine(|engine| engine.cancel_grace = AFTER),
        )
        .tool(add::tool())
        .tool(echo::tool())
        .tool(wrapped::tool())
        .tool(picture::tool())
        .tool(fail::tool())
        .tool(count::tool().task(TaskPolicy::Auto { after: AFTER }))
        .tool(hang::tool())
        .tool(Tool::new("order", order).description("Requests input before it is a task."))
        .tool(
            Tool::new("order_task", order)
                .description("Requests input in a task.")
                .task(TaskPolicy::Always),
        )
        .tool(visit::tool())
        .build()?;
    if arguments.iter().any(|argument| argument == "--stdio") {
        eprintln!("stage is on stdio");
        return Ok(server.serve_stdio().await?);
    }
    let mut config = HttpConfig::new();
    if let Some(token) = value("--token") {
        let tokens = StaticTokens::new().with("ada", &token);
        config = config.authenticator(match value("--other-token") {
            Some(other) => tokens.with("eve", &other),
            None => tokens,
        });
    }
    let serving = server.serve_http("127.0.0.1:0", config).await?;
    eprintln!("{}", serving.url());
    Ok(serving.wait().await?)
}
