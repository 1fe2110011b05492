//! One tool that asks first, takes its time, and asks again in the middle of it. It is one function;
//! where it is answered, waited for and resumed is decided by who is calling.
//!
//! Run with `cargo run -p outlive-examples --bin release`; with `-- --store FILE` its tasks outlive the
//! process, too.

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
    /// Where it should go.
    environment: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    /// Whether it may go out.
    yes: bool,
}

/// Builds a version and rolls it out. Asks where to, and again when it is built.
#[tool(task = "auto")]
async fn release(cx: Durable, version: String) -> Result<String> {
    // Asked before anything takes long: a round of the call, where the wire has such.
    let Target { environment } = cx.elicit("target", "Where should it go?").await?;

    // Takes longer than its caller waits: the call becomes a task here, and is not begun again.
    cx.set_status_message("building");
    let image: String = cx.step("build", async || build(&version).await).await?;

    // Asked inside of the task, and waited for without a thread, for days if need be.
    let question = format!("{image} is built. Roll it out to {environment}?");
    let approval: Approval = cx.elicit("approve", question).await?;
    if !approval.yes {
        return Ok(format!("{image} stays here"));
    }
    cx.step("push", async || push(&image, &environment).await).await?;
    Ok(format!("{image} is in {environment}"))
}

/// Builds; says which process has.
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
    // Short, so that the story is: by default its caller waits two seconds, and looks every second.
    let after = Duration::from_millis(200);
    let server = Server::builder("release", "1.0.0")
        .tasks(tasks.poll_interval(Duration::from_millis(50)))
        .tool(release::tool().task(TaskPolicy::Auto { after }))
        .build()?;
    arguments.serve(server).await
}
