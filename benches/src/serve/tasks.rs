//! Our server with tasks: one tool that always becomes one, and returns at once.

use std::{io, time::Duration};

use anyhow::Result;
use outlive::{
    http::HttpConfig,
    server::{Args, Server, TaskConfig, TaskPolicy, Tool},
    tasks::SqliteStore,
};

use crate::place::Place;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    message: String,
}

async fn echo(Args(args): Args<EchoArgs>) -> String {
    args.message
}

/// Serves until the standard input ends, and answers each line there with how many statements it
/// has made to SQLite.
pub(super) fn run(place: &str, running: Option<usize>) -> Result<()> {
    let runtime = super::runtime()?;
    let (port, _serving) = runtime.block_on(async {
        let store = Place::told(place).open().await?;
        // Callers cannot be told apart here: together they may do what many callers may.
        let config = TaskConfig::new(store)
            .poll_rate(None)
            .poll_interval(Duration::from_millis(10))
            .max_per_caller(100_000_000)
            .engine(|engine| engine.running = running.unwrap_or(engine.running));
        let tool = Tool::new("echo", echo).description("Says what it is told");
        let server = Server::builder("bench", "1.0.0")
            .tool(tool.task(TaskPolicy::Always))
            .tasks(config)
            .build()?;
        let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
        anyhow::Ok((serving.address().port(), serving))
    })?;
    super::say(&format!("listening {port}"));
    for line in io::stdin().lines() {
        line?;
        super::say(&format!("statements {}", SqliteStore::statements()));
    }
    Ok(())
}
