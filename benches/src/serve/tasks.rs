//! Our server with tasks: one tool that always runs as a task and returns immediately.

use std::{io, time::Duration};

use anyhow::Result;
use outlive::{
    server::{
        BuildError, Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::SqliteStore,
};

use crate::{echo, place::Place};

/// The server: its tool echoes, as a task.
pub(super) fn server(config: TaskConfig) -> Result<Server, BuildError> {
    let config = config
        .poll_rate(None)
        // All callers are one caller here, and ended tasks stay for a day, so the limits per caller
        // would end a measurement.
        .max_tasks_per_caller(100_000_000)
        .max_store_bytes_per_caller(1 << 40)
        .max_anonymous_store(1 << 40)
        .max_store(1 << 40);
    let tool = echo::tool().description("Returns its argument").task(TaskPolicy::Always);
    Server::builder("bench", "1.0.0").tool(tool).tasks(config).build()
}

/// Serves until standard input ends. Responds to each input line with the number of SQLite
/// statements.
pub(super) fn run(place: &str, running: Option<usize>) -> Result<()> {
    let runtime = super::runtime()?;
    let (port, _serving) = runtime.block_on(async {
        let store = Place::told(place).open().await?;
        let config =
            TaskConfig::new(store).poll_interval(Duration::from_millis(10)).engine(|engine| {
                engine.max_running = running.unwrap_or(engine.max_running);
                // One caller generates the whole load.
                engine.max_running_per_caller = Some(engine.max_running);
            });
        let server = server(config)?;
        let serving = server.serve_http("127.0.0.1:0", super::unlimited()).await?;
        anyhow::Ok((serving.address().port(), serving))
    })?;
    super::say(&format!("listening {port}"));
    for line in io::stdin().lines() {
        line?;
        super::say(&format!("statements {}", SqliteStore::statements()));
    }
    Ok(())
}
