//! Our server with a tool that emits: as fast as it may, or now and then.

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use outlive::{
    server::{
        Args, CallToolResult, Durable, Server, Tool,
        tasks::{ResponseMode, TaskConfig, TaskPolicy},
    },
    store::SqliteStore,
};

use crate::place::Place;

/// What is emitted as fast as may be.
pub(super) const LINE: &str = "compiling outlive-protocol v0.1.0";

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Lines {
    count: u32,
    /// How long to wait after each, in milliseconds.
    pause: u64,
}

/// Emits lines; those that come now and then say when they were emitted.
async fn lines(cx: Durable, Args(lines): Args<Lines>) -> outlive::server::Result<CallToolResult> {
    for _ in 0..lines.count {
        if lines.pause == 0 {
            cx.emit(LINE).await?;
        } else {
            cx.emit(micros().to_string()).await?;
            tokio::time::sleep(Duration::from_millis(lines.pause)).await;
        }
    }
    Ok(CallToolResult::new([]))
}

/// Microseconds since 1970.
fn micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

/// Serves until the standard input ends, and answers each line there with how many transactions it
/// has committed.
pub(super) fn run(place: &str) -> Result<()> {
    let runtime = super::runtime()?;
    let place = Place::told(place);
    let path = place.file().context("streams are measured with SQLite")?;
    let store = Arc::new(SqliteStore::open(path)?);
    let tasks = Arc::clone(&store);
    let (port, _serving) = runtime.block_on(async move {
        let config = TaskConfig::new(tasks)
            .response_modes([ResponseMode::Streaming])
            .poll_rate(None)
            .max_tasks_per_caller(100_000)
            .engine(|engine| {
                engine.max_running = 2_000;
                // One caller makes all the load.
                engine.max_running_per_caller = Some(engine.max_running);
            });
        let server = Server::builder("bench", "1.0.0")
            .tool(Tool::new("lines", lines).task(TaskPolicy::Always).streams_content())
            .tasks(config)
            .build()?;
        let serving = server.serve_http("127.0.0.1:0", super::unlimited()).await?;
        anyhow::Ok((serving.address().port(), serving))
    })?;
    super::say(&format!("listening {port}"));
    for line in io::stdin().lines() {
        line?;
        super::say(&format!("commits {}", store.commits()));
    }
    Ok(())
}
