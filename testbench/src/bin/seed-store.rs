//! Fills a store with tasks: `seed-store URL COUNT`, or for the console
//! `seed-store URL COUNT --console [--journal ENTRIES]`.
//!
//! `cargo xtask hostile` and `cargo xtask console` run it before a server starts, so that attacks,
//! honest calls and lists meet a store of the size of a year of use. Without `--console` all tasks
//! have ended, and no list has them. With it, they have persons, tools, tags and different states.
//! `--journal` adds a task with a long journal, whose ID consists of the digit 7.

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive::{
    store::{
        self, Changes, CreateOutcome, JournalEntry, NewTask, RecordedEntry, Store, TaskId,
        TaskOutcome, Transition, WorkerId,
    },
    wire::ErrorObject,
};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Concurrent operations: enough for every store to group its commits.
const CONCURRENCY: usize = 512;
/// Number of principals that own the tasks.
const PRINCIPALS: u64 = 1_000;
/// Number of persons with tasks in lists.
const PERSONS: u64 = 256;
/// End of the timers, in milliseconds since 1970: after every measurement.
const YEAR_2100: u64 = 4_102_444_800_000;
const LEASE: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let usage = "usage: seed-store URL COUNT [--console [--journal ENTRIES]]";
    let [url, count, options @ ..] = words.as_slice() else { return Err(usage.into()) };
    let (for_console, entries) = match options {
        [] => (false, None),
        [console] if console == "--console" => (true, None),
        [console, journal, entries] if console == "--console" && journal == "--journal" => {
            (true, Some(entries.parse()?))
        }
        _ => return Err(usage.into()),
    };
    let count: u64 = count.parse()?;
    let store = store::open(url).await?;
    if let Some(entries) = entries {
        write_journal(&*store, entries).await?;
    }
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
                match for_console {
                    true => write_listed_task(&*store, number).await?,
                    false => write_ended_task(&*store, number).await?,
                }
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    if url.starts_with("postgres") {
        vacuum(url).await?;
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
    let request = raw(r#"{"name":"seeded","arguments":{"region":"north"}}"#)?;
    let id = TaskId::new(format!("{:016x}{:016x}", mixed(number), mixed(!number)));
    let principal = format!("seeded-{}", number % PRINCIPALS);
    let task = NewTask::new(id, principal, "seeded", "2026-07-28", request).listed(false);
    write(store, task, &Changes::default(), &completed()?).await
}

/// Creates one task as a server with a console does, in one of several states.
async fn write_listed_task(store: &dyn Store, number: u64) -> Result<()> {
    let mixed_number = mixed(number);
    // Few tasks have an unusual tool or state, as in real stores.
    let tool = match mixed_number % 100 {
        0..60 => "deploy",
        60..85 => "render",
        85..95 => "report",
        _ => "backup",
    };
    let request =
        format!(r#"{{"name":"{tool}","arguments":{{"version":"1.4.{number}","env":"prod"}}}}"#);
    let id = TaskId::new(format!("{mixed_number:016x}{:016x}", mixed(!number)));
    let person = format!("person-{}", number % PERSONS);
    let mut task = NewTask::new(id, format!("name:{person}"), tool, "2026-07-28", raw(&request)?)
        .person(Some(person))
        .indexed(true);
    if number.is_multiple_of(10) {
        task = task.tags(vec![format!("order={}", number % 1_000)]);
    }
    let error = || {
        let message = "the region is unknown".to_owned();
        TaskOutcome::Error(ErrorObject { code: -32_603, message, data: None })
    };
    let end = |outcome| Transition::End { outcome, retention: 7 * DAY };
    let (transition, message) = match (mixed_number >> 8) % 1_000 {
        0..40 => (end(error()), None),
        40..60 => (end(TaskOutcome::Cancelled), None),
        60..70 => (end(TaskOutcome::Expired), None),
        70..72 => {
            let quarantine = Transition::Quarantine { outcome: error(), ttl: 7 * DAY };
            (quarantine, Some("after 5 crashes: push/eu"))
        }
        72..80 => {
            let park = Transition::Park { due_at: Some(YEAR_2100), responses_seen: 0 };
            (park, Some("soaks for a long time"))
        }
        _ => (completed()?, None),
    };
    let changes = Changes::default().status_message(message.map(str::to_owned));
    write(store, task, &changes, &transition).await
}

/// Creates a task with a long journal.
async fn write_journal(store: &dyn Store, entries: u64) -> Result<()> {
    let request = raw(r#"{"name":"migrate","arguments":{"tables":"all"}}"#)?;
    let id = TaskId::new("7".repeat(32));
    let task = NewTask::new(id, "name:ann", "migrate", "2026-07-28", request)
        .person(Some("ann".to_owned()))
        .indexed(true)
        .worker(Some((WorkerId::new("seed-store"), LEASE)));
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
        return Err("the store did not create a task under a lease".into());
    };
    for first in (0..entries).step_by(100) {
        let recorded = (first..entries.min(first + 100)).map(|number| {
            let value = raw(&format!(r#"{{"table":"orders_{number}","rows":{}}}"#, number * 37))?;
            let entry = RecordedEntry::new(format!("copy/{number}"), JournalEntry::Value(value));
            Ok(entry.duration(Some(Duration::from_millis(number % 900))))
        });
        let changes = Changes::default().entries(recorded.collect::<Result<_>>()?);
        store.commit(&lease, &changes, &Transition::Continue).await?;
    }
    store.commit(&lease, &Changes::default(), &completed()?).await?;
    Ok(())
}

/// Creates a task under a lease and commits once.
async fn write(
    store: &dyn Store,
    task: NewTask,
    changes: &Changes,
    transition: &Transition,
) -> Result<()> {
    let task = task
        .ttl(Some(7 * DAY))
        .max_ttl(30 * DAY)
        .worker(Some((WorkerId::new("seed-store"), LEASE)))
        .quota(usize::MAX >> 1)
        .max_bytes(u64::MAX >> 1);
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
        return Err("the store did not create a task under a lease".into());
    };
    store.commit(&lease, changes, transition).await?;
    Ok(())
}

fn completed() -> Result<Transition> {
    let result = raw(r#"{"content":[{"type":"text","text":"done"}]}"#)?;
    Ok(Transition::End { outcome: TaskOutcome::Result(result), retention: 7 * DAY })
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
