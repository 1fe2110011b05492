//! Fills a store with ended tasks: `seed-store URL COUNT`.
//!
//! `cargo xtask hostile` runs it before a server starts, so that attacks and honest calls meet a
//! store of the size of a year of use.

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive::store::{
    self, Changes, CreateOutcome, NewTask, Store, TaskId, TaskOutcome, Transition, WorkerId,
};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Concurrent operations: enough for every store to group its commits.
const CONCURRENCY: usize = 512;
/// Number of principals that own the tasks.
const PRINCIPALS: u64 = 1_000;
const LEASE: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = env::args().skip(1);
    let (Some(url), Some(count)) = (words.next(), words.next()) else {
        return Err("usage: seed-store URL COUNT".into());
    };
    let count: u64 = count.parse()?;
    let store = store::open(&url).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (store, next) = (Arc::clone(&store), Arc::clone(&next));
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Result::Ok(());
                }
                write_ended_task(&*store, number).await?;
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    if url.starts_with("postgres") {
        vacuum(&url).await?;
    }
    Ok(())
}

/// Does the maintenance that a database of that age has behind it. Otherwise autovacuum and a
/// checkpoint of the new rows would fall into the measurement.
async fn vacuum(url: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        client.batch_execute(statement).await?;
    }
    drop(client);
    Ok(connection.await??)
}

/// Creates one task under a lease and ends it.
async fn write_ended_task(store: &dyn Store, number: u64) -> Result<()> {
    let task = NewTask::new(
        TaskId::new(format!("{:016x}{:016x}", mixed(number), mixed(!number))),
        format!("seeded-{}", number % PRINCIPALS),
        "seeded",
        "2026-07-28",
        raw(r#"{"name":"seeded","arguments":{"region":"north"}}"#)?,
    )
    .listed(false)
    .ttl(Some(7 * DAY))
    .max_ttl(30 * DAY)
    .worker(Some((WorkerId::new("seed-store"), LEASE)))
    .quota(usize::MAX >> 1)
    .max_bytes(u64::MAX >> 1);
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
        return Err("the store did not create a task under a lease".into());
    };
    let result = raw(r#"{"content":[{"type":"text","text":"done"}]}"#)?;
    let end = Transition::End { outcome: TaskOutcome::Result(result), retention: 7 * DAY };
    store.commit(&lease, &Changes::default(), &end).await?;
    Ok(())
}

fn raw(json: &str) -> Result<Box<RawValue>> {
    Ok(RawValue::from_string(json.to_owned())?)
}

/// Spreads numbers over all 64 bits (splitmix64), so that task IDs look random.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
