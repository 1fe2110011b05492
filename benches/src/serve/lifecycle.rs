//! Our server with tasks in memory or in a file, among many ended tasks.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use outlive::server::tasks::TaskConfig;
use outlive_protocol::Principal;
use outlive_tasks::store::{
    Changes, CreateOutcome, MemoryStore, Store, TaskOutcome, Transition, WorkerId,
};

use super::tasks;
use crate::place::{Place, each_number, new_task, numbered_id, raw_value};

/// Starts with tasks at a place: `memory:COUNT` with that many ended tasks, or a file.
pub(super) async fn start(place: &str) -> Result<(u16, impl Sized)> {
    let store: Arc<dyn Store> = match place.strip_prefix("memory:") {
        Some(count) => {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            fill(&store, count.parse().context("memory:COUNT")?).await?;
            store
        }
        None => Place::told(place).open().await?,
    };
    let config = TaskConfig::new(store).poll_interval(Duration::from_millis(5));
    let server = tasks::server(config)?;
    let serving = server.serve_http("127.0.0.1:0", super::unlimited()).await?;
    Ok((serving.address().port(), serving))
}

/// Fills a store with ended tasks that are still readable.
pub(crate) async fn fill(store: &Arc<dyn Store>, count: u64) -> Result<()> {
    each_number(store, count, |store, number| async move {
        let mut task = new_task(numbered_id(number), Principal::ANONYMOUS.key().to_owned());
        task.worker = Some((WorkerId::new("filler"), Duration::from_secs(600)));
        let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
            bail!("the task was not created")
        };
        let outcome = TaskOutcome::Result(raw_value());
        let then = Transition::End { outcome, retention: Duration::from_secs(24 * 3600) };
        store.commit(&lease, &Changes::default(), &then).await?;
        Ok(())
    })
    .await
}
