//! Tasks that other workers of the shop have or had. The server under the pictures starts none of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outlive::store::{
    Audience, Binding, Changes, Claim, CreateOutcome, Decision, DecisionStore, Lease,
    NewInputRequest, NewTask, SqliteStore, TaskId, TaskOutcome, TaskStore, Transition, UnixMillis,
    WorkQueue, WorkerId,
};
use outlive::wire::{ErrorObject, InputRequest};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::past::Past;
use super::workers::{SHOP_1, SHOP_2, SHOP_3};
use crate::hosts::caller::MODERN;

/// Lease of a task that runs in the pictures.
pub(super) const LONG_LEASE: Duration = Duration::from_secs(6 * 3_600);
pub(super) const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

const HOUR: Duration = Duration::from_secs(3_600);
const LEASE: Duration = Duration::from_secs(30);
/// Crashes in a row after which a worker quarantines a task.
const MAX_CRASHES: u32 = 5;

/// Key of an approval request.
const APPROVAL: &str = "#approval";
/// Digest of the deployment that was approved the day before.
const DIGEST: &str = "5d0c7e91b3f24a68";

/// Returns a task of a caller, as a server with a console creates it.
pub(super) fn new_task(id: &str, caller: &str, tool: &str, arguments: &Value) -> Result<NewTask> {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    });
    let call = to_raw_value(&json!({"version": MODERN, "message": message}))?;
    let task = NewTask::new(TaskId::new(id), format!("name:{caller}"), tool, MODERN, call);
    Ok(task.person(Some(caller.to_owned())).indexed(true))
}

/// Creates a task. Returns the lease of its worker, and the time of its creation.
pub(super) async fn create(
    store: &SqliteStore,
    task: NewTask,
) -> Result<(Option<Lease>, UnixMillis)> {
    match store.create(task).await? {
        CreateOutcome::Created { lease, at } => Ok((lease, at)),
        other => bail!("the store did not create a task: {other:?}"),
    }
}

/// Claims the only task that is due.
pub(super) async fn claim(
    store: &SqliteStore,
    worker: &str,
    lease: Duration,
    task: &TaskId,
) -> Result<Lease> {
    let claimed = store.claim(&WorkerId::new(worker), lease, &Claim::new(1)).await?;
    let mut leases = claimed.into_iter().map(|claimed| claimed.lease);
    leases.find(|lease| lease.task == *task).context("the task is not due")
}

/// Returns a request for the values of a form.
pub(super) fn form(message: &str, properties: &Value) -> Result<InputRequest> {
    let schema = json!({"type": "object", "properties": properties});
    let params = json!({"message": message, "requestedSchema": schema});
    let request = json!({"method": "elicitation/create", "params": params});
    Ok(serde_json::from_str(&request.to_string())?)
}

/// Writes a deployment that was approved and ran the day before.
pub(super) async fn approved_deployment(path: &Path) -> Result<()> {
    let mut past = Past::open(path)?;
    let people = ["ada", "ben", "cid"].map(str::to_owned).to_vec();
    let request = form("Approve this call?", &json!({}))?;
    let request = NewInputRequest::new(APPROVAL, APPROVAL, Some(request))
        .audience(Audience::Names(people))
        .binding(Some(Binding::new(DIGEST, "e07b1c52").count(2)));
    let arguments = json!({"env": "prod", "version": "1.4.1"});
    let task = new_task("b17f53e0489c4ad2a6e8d9017c35fb42", "ci", "deploy", &arguments)?
        .input_requests(vec![request]);
    let id = task.id.clone();
    create(&past.store, task).await?;
    for person in ["ben", "cid"] {
        let accept = to_raw_value(&json!({"action": "accept", "by": person}))?;
        let decision = Decision::new(Some(person.to_owned()), true, accept);
        let decision = decision.digest(Some(DIGEST.to_owned()));
        let outcome = past.store.decide(&id, APPROVAL, &decision).await?;
        ensure!(outcome.is_recorded(), "a vote was not recorded: {outcome:?}");
    }
    let lease = claim(&past.store, SHOP_1, LEASE, &id).await?;
    let result = json!({"content": [{"type": "text", "text": "1.4.1 runs on 12 machines"}]});
    let outcome = TaskOutcome::Result(to_raw_value(&result)?);
    let end = Transition::End { outcome, retention: WEEK };
    past.store.commit(&lease, &Changes::default(), &end).await?;
    past.reach(HOUR * 26);
    past.end(&[id])
}

/// Writes reports that crashed their workers, until the workers quarantined them.
pub(super) async fn quarantined_reports(path: &Path) -> Result<()> {
    let mut past = Past::open(path)?;
    let worker = WorkerId::new(SHOP_2);
    let mut tasks = Vec::new();
    for (id, quarter) in [
        ("0d9ea4c86b3f417fa25de81c9347bb60", "Q1"),
        ("e62c91f50ad34b78bd06f417a93e5c28", "Q2"),
        ("73a8d05bc94e4f16880bd2e37f61ac94", "Q3"),
    ] {
        let arguments = json!({"kind": "revenue", "quarter": quarter});
        let task = new_task(id, "ben", "render_report", &arguments)?;
        tasks.push(task.id.clone());
        create(&past.store, task.worker(Some((worker.clone(), LEASE)))).await?;
    }
    let mut claimed = Vec::new();
    for crash in 1..=MAX_CRASHES {
        past.reach(LEASE * 2 * crash);
        claimed = past.store.claim(&worker, LEASE, &Claim::new(tasks.len())).await?;
        ensure!(claimed.len() == tasks.len(), "{} of the reports are due", claimed.len());
    }
    let message =
        format!("its worker crashed {MAX_CRASHES} times in a row; the task is not started again");
    let outcome = TaskOutcome::Error(ErrorObject { code: -32_603, message, data: None });
    let quarantine = Transition::Quarantine { outcome, ttl: WEEK };
    for claimed in claimed {
        past.store.commit(&claimed.lease, &Changes::default(), &quarantine).await?;
    }
    past.reach(HOUR * 9);
    past.end(&tasks)
}

/// Writes a report that waits for the values of a form.
pub(super) async fn waiting_report(path: &Path) -> Result<()> {
    let mut past = Past::open(path)?;
    let fields = json!({
        "format": {"type": "string", "title": "Format", "enum": ["pdf", "xlsx"]},
        "quarter": {"type": "string", "title": "Quarter", "enum": ["Q1", "Q2", "Q3", "Q4"]},
        "receiver": {"type": "string", "title": "Receiver", "format": "email"},
    });
    let request = form("Which quarter does the report cover?", &fields)?;
    let request = NewInputRequest::new("quarter", "quarter", Some(request));
    let arguments = json!({"kind": "revenue"});
    let task = new_task("c50f8e32717d4698b3a94ec16d20f87b", "ann", "render_report", &arguments)?;
    let task = task.worker(Some((WorkerId::new(SHOP_1), LEASE)));
    let (lease, at) = create(&past.store, task).await?;
    let lease = lease.context("the report has no worker")?;
    let due = at + u64::try_from((HOUR * 24).as_millis())?;
    let changes = Changes::default().input_requests(vec![request.due(Some(due))]);
    let park = Transition::Park { due_at: Some(due), responses_seen: 0 };
    past.store.commit(&lease, &changes, &park).await?;
    past.reach(HOUR * 2 + HOUR / 12);
    past.end(&[lease.task])
}

/// Writes tasks that other workers run now.
pub(super) async fn running_tasks(store: &SqliteStore) -> Result<()> {
    for (id, worker, (caller, tool), arguments) in [
        (
            "2896b4ddf03a4e57a1c7536b8ef940d2",
            SHOP_1,
            ("ann", "render_report"),
            json!({"kind": "stock", "quarter": "Q4"}),
        ),
        (
            "a4e7310fd85c4b92bf168c0d5e7392c1",
            SHOP_2,
            ("ben", "render_report"),
            json!({"kind": "returns", "quarter": "Q4"}),
        ),
        (
            "5f08ca72e31b4d6dbc94a7e05188d3f9",
            SHOP_3,
            ("ci", "deploy"),
            json!({"env": "staging", "version": "1.4.3"}),
        ),
    ] {
        let task = new_task(id, caller, tool, &arguments)?;
        create(store, task.worker(Some((WorkerId::new(worker), LONG_LEASE)))).await?;
    }
    Ok(())
}
