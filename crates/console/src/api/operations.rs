//! `GET metrics`, `GET audit`, `GET workers`, `GET deliveries`, `POST deliveries/ID/send`.

use http::StatusCode;
use outlive::{
    people::AuditFilter,
    store::{BUCKETS, Delivery, MetricRow, StoreStats, TaskId},
};
use serde::{Deserialize, Serialize};

use super::{call::ApiCall, error::ApiError, tasks::EventJson};
use crate::{
    http::{Reply, json},
    times,
};

/// Time of the metrics, unless the client sets `since`.
const DEFAULT_SPAN: &str = "24h";

/// Returns the number of tasks by phase, and the counts of ended tasks.
pub(crate) async fn metrics(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Metrics<'a> {
        stats: StatsJson,
        /// Upper bounds of the histograms in milliseconds. The last bucket has no bound.
        buckets_ms: &'a [u64],
        rows: Vec<RowJson<'a>>,
    }
    let now = call.state.sign_in.vault.now();
    let since = call.query.get("since").unwrap_or(DEFAULT_SPAN);
    let since = times::parse(since, now).ok_or_else(|| {
        let remedy = "use a time such as 2026-07-28T12:00:00Z, or a span such as 24h";
        ApiError::bad_request("`since` is not a time", remedy)
    })?;
    let stats = call.people().stats(call.visitor()).await?;
    let rows = call.people().metrics(call.visitor(), since).await?;
    let metrics = Metrics {
        stats: StatsJson::new(&stats),
        buckets_ms: &BUCKETS,
        rows: rows.iter().map(RowJson::new).collect(),
    };
    Ok(json(StatusCode::OK, &metrics))
}

/// Returns audit events, newest first.
pub(crate) async fn audit(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Page<'a> {
        events: Vec<EventJson<'a>>,
        next: Option<String>,
        searched_to: Option<String>,
    }
    let text = |name| call.query.get(name).filter(|it| !it.is_empty()).map(str::to_owned);
    let (actor, action, name) = (text("actor"), text("action"), text("name"));
    let filter = AuditFilter { actor, action, task: text("task").map(TaskId::new), name };
    let (before, limit) = (call.after()?, call.limit()?);
    let page = call.people().audit(call.visitor(), &filter, before, limit).await?;
    let page = Page {
        events: page.records.iter().map(EventJson::new).collect(),
        next: call.next(page.next),
        searched_to: page.searched_to.map(times::text),
    };
    Ok(json(StatusCode::OK, &page))
}

/// Returns the workers that use the store.
pub(crate) async fn workers(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Workers<'a> {
        workers: Vec<WorkerJson<'a>>,
    }
    #[derive(Serialize)]
    struct WorkerJson<'a> {
        id: &'a str,
        host: &'a str,
        pid: u32,
        version: &'a str,
        started_at: String,
        heartbeat_at: String,
    }
    let workers = call.people().workers(call.visitor()).await?;
    let workers = workers.iter().map(|worker| WorkerJson {
        id: &worker.id,
        host: &worker.host,
        pid: worker.pid,
        version: &worker.version,
        started_at: times::text(worker.started_at),
        heartbeat_at: times::text(worker.heartbeat_at),
    });
    Ok(json(StatusCode::OK, &Workers { workers: workers.collect() }))
}

/// Returns deliveries with a failed attempt, newest event first.
pub(crate) async fn deliveries(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Deliveries<'a> {
        deliveries: Vec<DeliveryJson<'a>>,
    }
    let deliveries = call.people().deliveries(call.visitor()).await?;
    let deliveries = Deliveries { deliveries: deliveries.iter().map(DeliveryJson::new).collect() };
    Ok(json(StatusCode::OK, &deliveries))
}

/// Sends a delivery again.
pub(crate) async fn send_delivery(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Deserialize)]
    struct NoBody {}
    #[derive(Serialize)]
    struct Due {
        state: &'static str,
    }
    let NoBody {} = call.body()?;
    call.people().send_again(call.visitor(), call.param(0)).await?;
    Ok(json(StatusCode::OK, &Due { state: "due" }))
}

#[derive(Serialize)]
struct StatsJson {
    queued: u64,
    running: u64,
    parked: u64,
    quarantined: u64,
    ended: u64,
    bytes: u64,
    oldest_due_ms: Option<u64>,
}

impl StatsJson {
    fn new(stats: &StoreStats) -> Self {
        let oldest = stats.oldest_due.map(|due| u64::try_from(due.as_millis()).unwrap_or(u64::MAX));
        Self {
            queued: stats.queued,
            running: stats.running,
            parked: stats.parked,
            quarantined: stats.quarantined,
            ended: stats.ended,
            bytes: stats.bytes,
            oldest_due_ms: oldest,
        }
    }
}

/// Counts of one minute or hour and tool.
#[derive(Serialize)]
struct RowJson<'a> {
    at: String,
    tool: &'a str,
    completed: u64,
    failed: u64,
    cancelled: u64,
    expired: u64,
    wait: &'a [u64],
    run: &'a [u64],
}

impl<'a> RowJson<'a> {
    fn new(row: &'a MetricRow) -> Self {
        let [completed, failed, cancelled, expired] = row.ended;
        let (at, tool) = (times::text(row.at), &*row.tool);
        Self { at, tool, completed, failed, cancelled, expired, wait: &row.wait, run: &row.run }
    }
}

#[derive(Serialize)]
struct DeliveryJson<'a> {
    id: &'a str,
    task: &'a str,
    event: &'static str,
    target: &'a str,
    input_request: Option<&'a str>,
    attempts: u32,
    error: Option<&'a str>,
    at: String,
    /// Time of the next attempt; `null` if the delivery is dead.
    due_at: Option<String>,
}

impl<'a> DeliveryJson<'a> {
    fn new(delivery: &'a Delivery) -> Self {
        Self {
            id: &delivery.id,
            task: delivery.task.as_str(),
            event: delivery.event.as_str(),
            target: &delivery.target,
            input_request: delivery.input_request.as_deref(),
            attempts: delivery.attempts,
            error: delivery.error.as_deref(),
            at: times::text(delivery.at),
            due_at: delivery.due_at.map(times::text),
        }
    }
}
