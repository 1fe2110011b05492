//! The paths with instruction counts.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use outlive::{
    server::{
        Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};

use crate::{
    echo::{self, Path},
    messages,
    relayed::{Relayed, UpstreamProcess},
};

/// Names of the paths, as in `instructions.json`.
pub const NAMES: [&str; 7] = [
    "modern-http",
    "modern-pipe",
    "legacy-http",
    "durable-http",
    "payload-64-kib",
    "task-poll",
    RELAYED,
];

/// The path through a gateway. Its upstream is another process, which is not counted.
const RELAYED: &str = "relayed-http";

/// Handles the call of a path `times` times.
///
/// # Errors
///
/// Returns an error if the name is unknown, or a call gets no response.
pub async fn repeat(name: &str, times: u64) -> Result<()> {
    if name != RELAYED {
        return path(name).await?.repeat(times);
    }
    let upstream = UpstreamProcess::start()?;
    let relayed = Relayed::open(&upstream.url).await?;
    relayed.path().repeat_later(times).await
}

/// Returns the path with this name. Paths with tasks need a runtime.
async fn path(name: &str) -> Result<Path> {
    match name {
        "modern-http" => Path::modern_http(messages::modern_call()),
        "modern-pipe" => Path::modern_pipe(messages::modern_call()),
        "legacy-http" => Path::legacy_http(messages::legacy_call()),
        "durable-http" => Path::modern_http(messages::modern_call())?.to_durable(),
        "payload-64-kib" => {
            Path::modern_http(messages::modern_call_with(&messages::text_of(64 << 10)))
        }
        "task-poll" => task_poll().await,
        _ => bail!("unknown path `{name}`; use one of {}", NAMES.join(", ")),
    }
}

/// A poll of an ended task.
async fn task_poll() -> Result<Path> {
    let tasks = TaskConfig::new(Arc::new(MemoryStore::new())).poll_rate(None);
    let server = Server::builder("bench", "1.0.0")
        .tool(echo::tool().task(TaskPolicy::Always))
        .tasks(tasks)
        .build()?;
    let endpoint = server.endpoint();
    let created =
        Path::to(endpoint.clone(), messages::CREATE_TASK_HEADERS, messages::create_task());
    let created = text(&created?).await?;
    let id = messages::task_id(created.as_bytes()).context("no task was created")?;
    let path = Path::to(endpoint, &messages::get_task_headers(&id), messages::get_task_body(&id))?;
    while !text(&path).await?.contains("completed") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(path)
}

async fn text(path: &Path) -> Result<String> {
    let mut out = Vec::new();
    path.answer_later(path.arrive(), &mut out).await?;
    Ok(String::from_utf8(out)?)
}
