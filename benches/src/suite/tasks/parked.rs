//! The cost of tasks that wait for input: memory of the process, and statements while idle.
//!
//! The tasks are parked through the store, and the server is started on it, as after a restart.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use outlive::wire::InputRequest;
use outlive_protocol::Principal;
use outlive_tasks::store::{
    Changes, CreateOutcome, NewInputRequest, Store, TaskId, Transition, WorkerId,
};
use tokio_postgres::{Client, NoTls};

use super::Bench;
use crate::{
    child::Server,
    load::http::{connect, exchange},
    machine::resident_bytes,
    messages::get_task,
    place::{Place, each_number, new_task, numbered_id, url},
    report::{Bar, Report},
};

/// Duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(10);

/// Time for a server to become idle.
const SETTLE: Duration = Duration::from_secs(5);

/// Number of tasks that are read first, so that deferred allocations have happened.
const LOOKS: u64 = 200;

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let count = bench.plan.parked;
    let places = [("parked-none", 1), ("parked", count)];
    let mut memory = Vec::new();
    let mut statements = 0.0;
    for (name, count) in places {
        let place = bench.folder.place(name);
        bench.runtime.block_on(park(&place, count))?;
        let (mut server, address) = Server::keeping("outlive-tasks", &place, bench.cores)?;
        look_at(address, count)?;
        thread::sleep(SETTLE);
        statements = idle_statements(bench, &mut server)?;
        memory.push(resident_bytes(server.pid())? as f64 / f64::from(1 << 20));
    }
    let [empty, full] = memory[..] else { return Ok(()) };
    report.title(&format!("{count} tasks parked on input, in one process that started with them"));
    report.say(format!("resident {full:.1} MiB, {empty:.1} MiB with one task"));
    report.say(format!("{statements:.1} statements per second while idle"));
    let name = "parked tasks, memory above that of one task";
    report.bar(Bar::at_most(name, Some(full - empty), 100.0, " MiB"));
    let name = "parked tasks, idle statements";
    report.bar(Bar::at_most(name, Some(statements), 5.0, "/s"));
    Ok(())
}

/// Creates tasks, each with an open input request and without a worker.
async fn park(place: &Place, count: u64) -> Result<()> {
    let store = place.open().await?;
    each_number(&store, count, park_one).await?;
    let parked = store.stats().await?.parked;
    ensure!(parked == count, "{parked} of {count} tasks are parked");
    Ok(())
}

async fn park_one(store: Arc<dyn Store>, number: u64) -> Result<()> {
    let mut task = new_task(numbered_id(number), Principal::ANONYMOUS.key().to_owned());
    task.worker = Some((WorkerId::new("filler"), Duration::from_secs(600)));
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
        bail!("the task was not created")
    };
    let asked = NewInputRequest::new("roots", "roots", Some(InputRequest::ListRoots));
    let changes = Changes::default().input_requests(vec![asked]);
    store.commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 }).await?;
    Ok(())
}

fn look_at(address: SocketAddr, count: u64) -> Result<()> {
    let mut stream = connect(address)?;
    for number in 0..LOOKS {
        let id = TaskId::new(numbered_id(number % count));
        let answer = exchange(&mut stream, &get_task(id.as_str()))?;
        let waits = memmem::find(answer.text().as_bytes(), b"input_required").is_some();
        ensure!(waits, "not a waiting task: {}", answer.text());
    }
    Ok(())
}

/// Statements per second while idle.
fn idle_statements(bench: &Bench<'_>, server: &mut Server) -> Result<f64> {
    let transactions = match bench.is_postgres() {
        true => Some(bench.runtime.block_on(Transactions::watch())?),
        false => None,
    };
    let mut count = || match &transactions {
        Some(transactions) => bench.runtime.block_on(transactions.count()),
        None => server.statements(),
    };
    let (begun, before) = (Instant::now(), count()?);
    thread::sleep(IDLE);
    let made = count()? - before;
    // Reading the counter of PostgreSQL is one transaction itself.
    let own = u64::from(bench.is_postgres());
    Ok(made.saturating_sub(own) as f64 / begun.elapsed().as_secs_f64())
}

/// The transaction counter of the database. Every idle statement of a server is one transaction.
struct Transactions {
    client: Client,
}

impl Transactions {
    async fn watch() -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(&url()?, NoTls).await?;
        tokio::spawn(connection);
        // VACUUM runs now, because autovacuum would run during the measurement. The counters of
        // other sessions lag by up to a second.
        client.batch_execute("VACUUM ANALYZE").await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Self { client })
    }

    async fn count(&self) -> Result<u64> {
        let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database
             WHERE datname = current_database()";
        let row = self.client.query_one(count, &[]).await?;
        u64::try_from(row.get::<_, i64>(0)).context("a count below zero")
    }
}
