//! Our server with a tool that emits: without pause, or at intervals.

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

/// The line that is emitted without pause.
pub(super) const LINE: &str = "compiling outlive-protocol v0.1.0";

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Lines {
    count: u32,
    /// Pause after each line, in milliseconds.
    pause: u64,
}

/// Emits lines. With a pause, each line contains the time of its emission.
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

/// Serves until standard input ends. Responds to each input line with the number of committed
/// transactions.
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
            .max_store_bytes_per_caller(u64::MAX)
            .max_anonymous_store(u64::MAX)
            .max_store(u64::MAX)
            .engine(|engine| {
                engine.max_running = 2_000;
                // One caller generates the whole load.
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
