//! The task of the pictures: a migration that waited for its caller, lost a worker and repeated a step.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outlive::store::{
    AuditEvent, AuditLog, Changes, InputSource, JournalEntry, Lease, NewInputRequest,
    RecordedEntry, SegmentRecord, StepFailure, TaskId, TaskStore, Transition, UnixMillis,
    WorkQueue, WorkerId,
};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::past::Past;
use super::tasks::{LONG_LEASE, WEEK, claim, create, form, new_task};
use super::workers::{SHOP_1, SHOP_3};

const ID: &str = "9f3c41d87a5e20b6c8e1047fd2935ba6";
const CALLER: &str = "ann";
const PRINCIPAL: &str = "name:ann";
/// A worker that crashed. It is no longer listed.
const CRASHED: &str = "83d6f21ec07b4950a41e6b9cd2f5087a";

/// Seconds from the creation of the task until now.
const NOW: u64 = 9_175;
/// Second at which the timer ends.
const TIMER_END: u64 = 8_340;
/// Maximum number of audit events.
const MAX_EVENTS: u64 = 1_000_000;

/// Writes the migration, which still runs. Returns its ID.
pub(super) async fn write(path: &Path) -> Result<TaskId> {
    let mut migration = Migration::start(path).await?;
    migration.prepare().await?;
    migration.lose_worker().await?;
    migration.repeat_step().await?;
    let Migration { mut past, id, .. } = migration;
    past.reach(seconds(NOW));
    past.end(std::slice::from_ref(&id))?;
    Ok(id)
}

struct Migration {
    past: Past,
    id: TaskId,
    /// Time of the creation, before the task is moved back.
    created_at: UnixMillis,
    lease: Lease,
    /// Number of lines of output.
    lines: u32,
}

impl Migration {
    async fn start(path: &Path) -> Result<Self> {
        let past = Past::open(path)?;
        let arguments = json!({"from": "orders_v1", "region": "eu", "to": "orders_v2"});
        let task = new_task(ID, CALLER, "migrate_orders", &arguments)?
            .tags(["region=eu", "ticket=OPS-311"].map(str::to_owned).to_vec())
            .worker(Some((WorkerId::new(SHOP_1), LONG_LEASE)));
        let (lease, created_at) = create(&past.store, task).await?;
        let lease = lease.context("the migration has no worker")?;
        let migration = Self { past, id: lease.task.clone(), created_at, lease, lines: 0 };
        migration.note("created", None).await?;
        migration.note("started", Some(SHOP_1)).await?;
        Ok(migration)
    }

    /// Records the first steps, and waits two hours for a response of the caller.
    async fn prepare(&mut self) -> Result<()> {
        let lines = ["snapshot of orders_v1: 18,204,511 rows in 46 partitions"];
        self.step("snapshot", (0, 150), rows("orders_v1", 18_204_511)?, &lines).await?;
        let revision = JournalEntry::Value(to_raw_value(&json!({"revision": 31}))?);
        let lines = ["orders_v2 has revision 31, as expected"];
        self.step("check_schema", (150, 168), revision, &lines).await?;
        let partitions = JournalEntry::Value(to_raw_value(&json!({"partitions": 46}))?);
        let lines = ["created 46 partitions of orders_v2"];
        self.step("create_partitions", (168, 210), partitions, &lines).await?;
        let window = json!({"window": {"type": "string", "title": "Window"}});
        let request = form("When may the copy start?", &window)?;
        let request = NewInputRequest::new("window", "window", Some(request));
        let changes = self.output(&["waits for a maintenance window"])?;
        self.park(&changes.input_requests(vec![request]), None, 0).await?;
        self.past.reach(seconds(7_410));
        let response = json!({"action": "accept", "content": {"window": "today"}});
        let responses = vec![("window".to_owned(), to_raw_value(&response)?)];
        let store = &self.past.store;
        let accepted =
            store.respond(PRINCIPAL, &self.id, InputSource::Client, responses, u64::MAX).await?;
        ensure!(accepted == Some(1), "the response was not accepted");
        Ok(())
    }

    /// Copies a table on a worker that crashes. The next worker fails to copy the second table.
    async fn lose_worker(&mut self) -> Result<()> {
        self.resume(7_412, CRASHED, seconds(478)).await?;
        let lines = [
            "window: today",
            "copy orders: 6,000,000 of 18,204,511 rows",
            "copy orders: 12,000,000 of 18,204,511 rows",
            "copy orders: done, 18,204,511 rows",
        ];
        self.step("copy/orders", (7_412, 7_790), rows("orders", 18_204_511)?, &lines).await?;
        // The lease of the crashed worker has ended.
        self.resume(7_891, SHOP_3, LONG_LEASE).await?;
        let failure = JournalEntry::Failed(StepFailure::new("db-2 closed the connection"));
        let lines = [
            "copy order_items: 8,000,000 of 41,870,233 rows",
            "copy order_items: db-2 closed the connection; again in 5 minutes",
        ];
        self.step("copy/order_items", (7_892, 8_040), failure, &lines).await
    }

    /// Sleeps, copies the table again and continues until now.
    async fn repeat_step(&mut self) -> Result<()> {
        let due = |from: UnixMillis| from + TIMER_END * 1_000;
        // The value of a timer is not moved back with its task.
        let shown = due(self.created_at - NOW * 1_000);
        let timer = RecordedEntry::new("cool_down", JournalEntry::Due(shown));
        let changes = Changes::default().entries(vec![timer]);
        self.park(&changes, Some(due(self.created_at)), 1).await?;
        self.resume(TIMER_END + 1, SHOP_3, LONG_LEASE).await?;
        let lines = [
            "copy order_items: 16,000,000 of 41,870,233 rows",
            "copy order_items: 32,000,000 of 41,870,233 rows",
            "copy order_items: done, 41,870,233 rows",
        ];
        let times = (TIMER_END + 1, 8_880);
        self.step("copy/order_items/2", times, rows("order_items", 41_870_233)?, &lines).await?;
        let lines = ["copy payments: done, 17,998,004 rows"];
        self.step("copy/payments", (8_880, 9_060), rows("payments", 17_998_004)?, &lines).await?;
        let lines = ["verify orders: done, 18,204,511 rows are equal"];
        self.step("verify/orders", (9_060, 9_140), rows("orders", 18_204_511)?, &lines).await?;
        self.past.reach(seconds(9_160));
        let line = "verify order_items: 12,500,000 of 41,870,233 rows";
        let progress = json!({"progress": 6, "total": 9, "message": line});
        let changes = self.output(&[line])?.progress(Some(to_raw_value(&progress)?));
        Ok(self.past.store.commit(&self.lease, &changes, &Transition::Continue).await?)
    }

    /// Records a step with its start and its end, and the output until then.
    async fn step(
        &mut self,
        key: &str,
        (start, end): (u64, u64),
        entry: JournalEntry,
        lines: &[&str],
    ) -> Result<()> {
        self.past.reach(seconds(end));
        let entry = RecordedEntry::new(key, entry).duration(Some(seconds(end - start)));
        let changes = self.output(lines)?.entries(vec![entry]);
        Ok(self.past.store.commit(&self.lease, &changes, &Transition::Continue).await?)
    }

    /// Returns changes with lines of output.
    fn output(&mut self, lines: &[&str]) -> Result<Changes> {
        let mut segments = Vec::new();
        for line in lines {
            let block = to_raw_value(&json!({"type": "text", "text": line}))?;
            segments.push(SegmentRecord::new("", self.lines, block));
            self.lines += 1;
        }
        Ok(Changes::default().segments(segments))
    }

    async fn park(
        &self,
        changes: &Changes,
        due_at: Option<UnixMillis>,
        responses_seen: usize,
    ) -> Result<()> {
        let park = Transition::Park { due_at, responses_seen };
        self.past.store.commit(&self.lease, changes, &park).await?;
        self.note("parked", Some(self.lease.worker.as_str())).await
    }

    async fn resume(&mut self, second: u64, worker: &str, lease: Duration) -> Result<()> {
        self.past.reach(seconds(second));
        self.lease = claim(&self.past.store, worker, lease, &self.id).await?;
        self.note("resumed", Some(worker)).await
    }

    /// Appends an audit event, as the server of a worker does.
    async fn note(&self, action: &str, worker: Option<&str>) -> Result<()> {
        let event = AuditEvent::new(self.id.as_str(), PRINCIPAL, action);
        let event = event.worker(worker.map(str::to_owned));
        Ok(self.past.store.append(vec![event], WEEK, MAX_EVENTS).await?)
    }
}

fn rows(table: &str, rows: u64) -> Result<JournalEntry> {
    Ok(JournalEntry::Value(to_raw_value(&json!({"table": table, "rows": rows}))?))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
