//! Tools of the suite that run as tasks: slow, failing, rejected, and with input requests.

use std::time::Duration;

use outlive::{
    Form,
    server::{
        Args, CallToolResult, Durable, Error, Result, ServerBuilder, Tool, tasks::TaskPolicy,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Becomes a task as soon as it has to wait.
const AT_ONCE: TaskPolicy = TaskPolicy::Auto { after: Duration::ZERO };

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(Tool::new("greet", greet).description("Greets immediately"))
        .tool(Tool::new("slow_compute", slow).description("Runs for some seconds").task(AT_ONCE))
        .tool(
            Tool::new("failing_job", failing)
                .description("Fails after a while")
                .task(TaskPolicy::Always),
        )
        .tool(
            Tool::new("protocol_error_job", refused)
                .description("Returns a protocol error after a while")
                .task(AT_ONCE),
        )
        .tool(
            Tool::new("confirm_delete", confirm)
                .description("Elicits before it deletes")
                .task(TaskPolicy::Always),
        )
        .tool(
            Tool::new("multi_input", several)
                .description("Makes two input requests in parallel")
                .task(TaskPolicy::Always),
        )
        .tool(
            Tool::new("test_tool_with_task", ask_then_work)
                .description("Elicits first, then becomes a task")
                .task(AT_ONCE),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Args(greet): Args<Greet>) -> String {
    format!("Hello, {}!", greet.name)
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    seconds: f64,
    label: Option<String>,
}

async fn slow(cx: Durable, Args(slow): Args<Slow>) -> Result<String> {
    let span = Duration::from_secs_f64(slow.seconds.clamp(0.0, 60.0));
    // The sleep ends immediately when the task is cancelled.
    cx.sleep("work", span).await?;
    Ok(format!("{} took {} seconds", slow.label.unwrap_or_default(), slow.seconds))
}

async fn failing() -> CallToolResult {
    tokio::time::sleep(Duration::from_millis(500)).await;
    CallToolResult::error("This job always fails")
}

async fn refused() -> Result<String> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    Err(Error::with_code(1001, "This job is refused by the protocol"))
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    filename: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Confirm {
    confirm: bool,
}

async fn confirm(cx: Durable, Args(delete): Args<Delete>) -> Result<String> {
    let name = delete.filename;
    let Confirm { confirm } = cx.elicit("confirm", format!("Delete {name}?")).await?;
    Ok(if confirm { format!("{name} is gone") } else { format!("{name} stays") })
}

#[derive(Deserialize, JsonSchema, Form)]
struct Name {
    name: String,
}

async fn several(cx: Durable) -> Result<String> {
    let (first, second) = tokio::join!(
        cx.elicit::<Name>("first", "What is the first name?"),
        cx.elicit::<Name>("second", "What is the second name?"),
    );
    Ok(format!("{} and {}", first?.name, second?.name))
}

async fn ask_then_work(cx: Durable) -> Result<String> {
    let Name { name } = cx.elicit("user_name", "What is your name?").await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(format!("Done for {name}"))
}
