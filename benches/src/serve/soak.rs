//! Our server under sustained load: calls, progress, and tasks in a file.

use std::time::Duration;

use anyhow::Result;
use outlive::server::{
    Args, Cx, Server, Tool,
    tasks::{TaskConfig, TaskPolicy},
};

use crate::place::Place;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Message {
    message: String,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Steps {
    steps: u32,
}

async fn echo(Args(Message { message }): Args<Message>) -> String {
    message
}

async fn count(cx: Cx, Args(Steps { steps }): Args<Steps>) -> String {
    for step in 1..=steps {
        cx.progress(f64::from(step), f64::from(steps), "");
        // A notification that is not sent before the next one would be dropped.
        tokio::task::yield_now().await;
    }
    format!("counted to {steps}")
}

/// Starts with tasks at a place. Apart from the limits per caller, all settings are defaults.
pub(super) async fn start(place: &str) -> Result<(u16, impl Sized)> {
    // All connections belong to one caller.
    let tasks = TaskConfig::new(Place::told(place).open().await?)
        .poll_rate(None)
        .poll_interval(Duration::from_millis(100))
        .max_tasks_per_caller(100_000_000)
        .max_store_bytes_per_caller(u64::MAX)
        .max_anonymous_store(u64::MAX)
        .max_store(u64::MAX);
    let server = Server::builder("bench", "1.0.0")
        .limits(|limits| limits.progress_interval = Duration::ZERO)
        .tool(Tool::new("echo", echo).description("Returns its argument"))
        .tool(Tool::new("count", count).description("Reports progress steps"))
        .tool(
            Tool::new("later", echo)
                .description("Returns its argument in a task")
                .task(TaskPolicy::Always),
        )
        .tasks(tasks)
        .build()?;
    let http = super::unlimited().max_sessions(100_000);
    let serving = server.serve_http("127.0.0.1:0", http).await?;
    Ok((serving.address().port(), serving))
}
