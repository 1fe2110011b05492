//! A tool that requests input, runs long, and requests input again. The client determines whether
//! the call is inline, a task, or resumed.
//!
//! Run with `cargo run -p outlive-examples --bin release`. With `-- --store FILE` its tasks survive
//! a restart of the process.

use std::{sync::Arc, time::Duration};

use outlive::{
    Form,
    server::{
        Durable, Result, Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::SqliteStore,
    tool,
};
use outlive_examples::Arguments;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema, Form)]
struct Target {
    /// Environment to deploy to.
    environment: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    /// Whether to deploy the image.
    yes: bool,
}

/// Builds a version and rolls it out. Requests the environment, and an approval after the build.
#[tool(task = "auto")]
async fn release(cx: Durable, version: String) -> Result<String> {
    // Requested before the long work: on 2026-07-28 this is a round of the call.
    let Target { environment } = cx.elicit("target", "Where should it go?").await?;

    // Runs longer than the task policy allows, so the call becomes a task. The handler is not
    // restarted.
    cx.set_status_message("building");
    let image: String = cx.step("build", async || build(&version).await).await?;

    // Requested inside the task. The task is parked until the response, which may take days.
    let question = format!("{image} is built. Roll it out to {environment}?");
    let approval: Approval = cx.elicit("approve", question).await?;
    if !approval.yes {
        return Ok(format!("{image} stays here"));
    }
    cx.step("push", async || push(&image, &environment).await).await?;
    Ok(format!("{image} is in {environment}"))
}

/// Builds an image whose name contains the process ID.
async fn build(version: &str) -> Result<String> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(format!("shop:{version}-{}", std::process::id()))
}

async fn push(_image: &str, _environment: &str) -> Result<()> {
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::given();
    let tasks = match arguments.take("--store")? {
        Some(file) => TaskConfig::new(Arc::new(SqliteStore::open(file)?)),
        None => TaskConfig::in_memory(),
    };
    // Shorter than the defaults (2 s and 1 s), to keep the check fast.
    let after = Duration::from_millis(200);
    let server = Server::builder("release", "1.0.0")
        .tasks(tasks.poll_interval(Duration::from_millis(50)))
        .tool(release::tool().task(TaskPolicy::Auto { after }))
        .build()?;
    arguments.serve(server).await
}
