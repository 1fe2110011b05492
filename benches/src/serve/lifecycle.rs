//! Our server with tasks in memory or in a file, among so many that are over.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use outlive::{
    http::HttpConfig,
    server::{Args, Server, TaskConfig, TaskPolicy, Tool},
};
use outlive_protocol::Principal;
use outlive_tasks::store::{Changes, Created, MemoryStore, Store, TaskOutcome, Then, WorkerId};

use crate::place::{Place, each_number, new_task, numbered_id, raw_value};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    message: String,
}

async fn echo(Args(args): Args<EchoArgs>) -> String {
    args.message
}

/// Keeps tasks at a place: `memory:COUNT`, with so many that are over, or a file.
pub(super) async fn start(place: &str) -> Result<(u16, impl Sized)> {
    let store: Arc<dyn Store> = match place.strip_prefix("memory:") {
        Some(count) => {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            fill(&store, count.parse().context("memory:COUNT")?).await?;
            store
        }
        None => Place::told(place).open().await?,
    };
    // Callers cannot be told apart here: together they may do what many callers may.
    let config = TaskConfig::new(store)
        .poll_rate(None)
        .poll_interval(Duration::from_millis(5))
        .max_per_caller(100_000_000);
    let tool = Tool::new("echo", echo).description("Says what it is told");
    let server = Server::builder("bench", "1.0.0")
        .tool(tool.task(TaskPolicy::Always))
        .tasks(config)
        .build()?;
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
    Ok((serving.address().port(), serving))
}

/// Fills a store with tasks that are over and can still be read.
pub(crate) async fn fill(store: &Arc<dyn Store>, count: u64) -> Result<()> {
    each_number(store, count, |store, number| async move {
        let mut task = new_task(numbered_id(number), Principal::ANONYMOUS.key().to_owned());
        task.worker = Some((WorkerId::new("filler"), Duration::from_secs(600)));
        let Created::New { lease: Some(lease), .. } = store.create(task).await? else {
            bail!("not made")
        };
        let outcome = TaskOutcome::Result(raw_value());
        let then = Then::End { outcome, retention: Duration::from_secs(24 * 3600) };
        store.write(&lease, Changes::default(), then).await?;
        Ok(())
    })
    .await
}
