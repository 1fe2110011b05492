//! The workers of the shop, as the store lists them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outlive::store::{KeyValueStore, OperatorStore, SqliteStore};
use outlive::wire::RawJson;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::past::now;

/// IDs of the workers that run.
pub(super) const SHOP_1: &str = "1c8e05d3b94f4a7e8f6120cbd7a95e34";
pub(super) const SHOP_2: &str = "6a2f97c4e0d1483bb5ce7d80913f4a26";
pub(super) const SHOP_3: &str = "d45b80e7163c4f9aa2097ec5f81bd370";

/// Host, process ID, and the seconds since the last heartbeat of each worker.
const WORKERS: [(&str, &str, u32, u64); 3] =
    [(SHOP_1, "shop-1", 2_114, 3), (SHOP_2, "shop-2", 1_837, 11), (SHOP_3, "shop-3", 1_922, 7)];

/// Prefix of the entries of workers.
const PREFIX: &str = "worker/";
/// Number of entries that are read.
const MAX: usize = 100;
/// Time for which an entry stays.
const TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Time for the server to write its entry.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Removes the entries of all workers. Returns the entries.
pub(super) async fn clear(store: &SqliteStore) -> Result<Vec<RawJson>> {
    let entries = store.key_values(PREFIX, MAX).await?;
    for (key, _) in &entries {
        store.delete(key).await?;
    }
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Replaces the entry of the server, which names this machine, with the workers of the shop. The
/// server writes its entry again 30 seconds after its start, so the pictures must be taken before.
pub(super) async fn replace(path: &Path) -> Result<()> {
    let (store, started) = (SqliteStore::open(path)?, Instant::now());
    let entry = loop {
        if let Some(entry) = clear(&store).await?.pop() {
            break entry;
        }
        ensure!(started.elapsed() < TIMEOUT, "the server does not report itself as a worker");
        sleep(Duration::from_millis(20)).await;
    };
    let entry: Value = serde_json::from_str(entry.get())?;
    let version = entry["version"].as_str().context("the worker has no version")?;
    let now = now()?;
    for (id, host, pid, seconds) in WORKERS {
        let worker = json!({
            "host": host, "pid": pid, "version": version,
            "started_at": now - 3 * 24 * 3_600_000, "heartbeat_at": now - seconds * 1_000,
        });
        store.put(&format!("{PREFIX}{id}"), to_raw_value(&worker)?, TTL, None).await?;
    }
    Ok(())
}
