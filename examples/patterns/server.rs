//! The four small shapes of a tool that takes long, asks, or does both. Nothing in them says how a
//! client is spoken to.
//!
//! Run with `cargo run -p outlive-examples --bin patterns`.

use std::time::Duration;

use outlive::{
    Form,
    server::{
        Cx, Durable, Result, Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

/// Slow only: a call of many frames becomes a task, one of a few is answered.
#[tool(read_only, task = "auto")]
async fn render(cx: Cx, frames: u32) -> String {
    for frame in 1..=frames {
        cx.set_status_message(format!("frame {frame} of {frames}"));
        sleep(Duration::from_millis(100)).await;
    }
    format!("{frames} frames")
}

/// Asks, then takes its time.
#[tool(task = "auto")]
async fn brew(cx: Durable) -> Result<String> {
    let order: Order = cx.elicit("order", "What would you like?").await?;
    cx.step("brew", async || Ok(brewed(&order.drink).await)).await
}

/// Asks in the middle of the work; is a task from the beginning.
#[tool(task = "always")]
async fn clean_up(cx: Durable) -> Result<String> {
    let old: Vec<String> =
        cx.step("look", async || Ok(vec!["a.log".into(), "b.log".into()])).await?;
    let sure: Sure = cx.elicit("sure", format!("Delete {}?", old.join(", "))).await?;
    Ok(format!("{} files deleted", if sure.yes { old.len() } else { 0 }))
}

/// Asks, and is done: never a task.
#[tool]
async fn greet(cx: Durable) -> Result<String> {
    let guest: Guest = cx.elicit("guest", "Who are you?").await?;
    Ok(format!("Hello, {}!", guest.name))
}

async fn brewed(drink: &str) -> String {
    sleep(Duration::from_secs(1)).await;
    format!("a cup of {drink}")
}

#[derive(Deserialize, JsonSchema, Form)]
struct Order {
    drink: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Guest {
    name: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Short, so that the stories are: by default a caller waits two seconds, and looks every second.
    let auto = TaskPolicy::Auto { after: Duration::from_millis(300) };
    let server = Server::builder("patterns", "1.0.0")
        .tasks(TaskConfig::in_memory().poll_interval(Duration::from_millis(50)))
        .tool(render::tool().task(auto))
        .tool(brew::tool().task(auto))
        .tool(clean_up::tool())
        .tool(greet::tool())
        .build()?;
    outlive_examples::serve(server).await
}
