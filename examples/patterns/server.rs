//! Four patterns of a tool that runs long, requests input, or both. The handlers do not depend on
//! the protocol version.
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

/// Runs long: a call with many frames becomes a task, a short call returns directly.
#[tool(read_only, task = "auto")]
async fn render(cx: Cx, frames: u32) -> String {
    for frame in 1..=frames {
        cx.set_status_message(format!("frame {frame} of {frames}"));
        sleep(Duration::from_millis(100)).await;
    }
    format!("{frames} frames")
}

/// Requests input, then runs long.
#[tool(task = "auto")]
async fn brew(cx: Durable) -> Result<String> {
    let order: Order = cx.elicit("order", "What would you like?").await?;
    cx.step("brew", async || Ok(brewed(&order.drink).await)).await
}

/// Requests input in the middle; is a task from the start.
#[tool(task = "always")]
async fn clean_up(cx: Durable) -> Result<String> {
    let old: Vec<String> =
        cx.step("look", async || Ok(vec!["a.log".into(), "b.log".into()])).await?;
    let sure: Sure = cx.elicit("sure", format!("Delete {}?", old.join(", "))).await?;
    Ok(format!("{} files deleted", if sure.yes { old.len() } else { 0 }))
}

/// Requests input and returns; never a task.
#[tool]
async fn greet(cx: Durable) -> Result<String> {
    let guest: Guest = cx.elicit("guest", "Enter your name").await?;
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
    // Shorter than the defaults (2 s and 1 s), to keep the checks fast.
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
