//! `task_result` as the task view calls it: it returns as soon as the task has changed.
//!
//! `view/mod.rs` describes the contract. The task of such a reply is in `_meta`, so that the page
//! distinguishes it from the tool's own structured content.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{StoredSegments, TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock, Meta};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::server::{
    dispatch::{core::ServerCore, fallback_task},
    env::task_error::unavailable,
    exec::bridge::{WaitOptions, answer_links, attend, no_such_task, wait},
    hosts::AnswerBy,
    tasks::{
        attendance::Arrival,
        lookup::LOOK,
        pending_result::{Situation, pending_result, task_status},
        segments,
    },
    time::now,
};

/// Member of `_meta` with the task.
const TASK: &str = "dev.outlive/task";

/// Longest wait of one poll. Every host waits longer.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// State of the task that the page has seen.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// Number of the last change.
    change: Option<u64>,
    /// Number of the last segment.
    #[serde(default)]
    segment: u64,
}

/// Waits until a task has changed since the page saw it.
pub(crate) async fn poll(
    core: &Arc<ServerCore>,
    call: &Arc<Call>,
    task: &TaskId,
    seen: Seen,
    wait_for: Option<Duration>,
) -> Result<Outcome, ProtocolError> {
    let tasks = core.env.tasks()?;
    let deadline = Instant::now() + wait_for.unwrap_or(MAX_WAIT).min(MAX_WAIT);
    let watch = tasks.engine().watch(task);
    loop {
        let changed = watch.notified();
        let record = tasks.engine().get(call.principal().key(), task).await;
        let Some(record) = record.map_err(|error| unavailable(&error))? else {
            return Ok(no_such_task());
        };
        // Segments are read after the record: if the record is terminal, all segments are stored.
        let page = segments::page_of(tasks, call, task, seen.segment).await?;
        let has_lines = page.as_ref().is_some_and(|page| !page.blocks.is_empty());
        let is_news = has_lines || seen.change != Some(record.updated_at);
        if record.outcome.is_some() || is_news || Instant::now() >= deadline {
            return reply(core, call, &record, page, seen).await;
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(LOOK) => {}
            () = sleep_until(deadline) => {}
            () = tasks.bridges.drained() => return reply(core, call, &record, page, seen).await,
        }
    }
}

/// Returns the state of a task for the page, and its result if it has ended.
async fn reply(
    core: &Arc<ServerCore>,
    call: &Arc<Call>,
    record: &TaskRecord,
    page: Option<StoredSegments>,
    seen: Seen,
) -> Result<Outcome, ProtocolError> {
    let env = &core.env;
    let answers_by = |by| fallback_task::answers_by(core, call, &record.tool, by);
    let links = match answers_by(AnswerBy::Link) {
        true => answer_links(env, call, record),
        false => Vec::new(),
    };
    let answers_by_tool = answers_by(AnswerBy::Tool);
    let situation =
        Situation { is_poll: true, answers_by_tool, links: &links, ..Situation::default() };
    let mut result = match &record.outcome {
        None => pending_result(record, now(&env.profile), situation),
        Some(_) => match ended(core, call, record).await? {
            Some(result) => result,
            None => return Ok(no_such_task()),
        },
    };
    let mut task = task_status(record, now(&env.profile), situation);
    task["status"] = json!(status(record, &result));
    task["change"] = json!(record.updated_at);
    if let Some(page) = page.filter(|page| !page.blocks.is_empty()) {
        task["lines"] = lines(&page, seen.segment);
    }
    result.meta.get_or_insert_with(Meta::default).insert(TASK.to_owned(), task);
    Ok(Outcome::Complete(MethodResult::Tool(result)))
}

/// Returns the result of an ended task as `task_result` returns it. An error of the protocol becomes
/// an error of the tool, which the page can show.
async fn ended(
    core: &Arc<ServerCore>,
    call: &Arc<Call>,
    record: &TaskRecord,
) -> Result<Option<CallToolResult>, ProtocolError> {
    if let Some(TaskOutcome::Error(error)) = &record.outcome {
        return Ok(Some(CallToolResult::error(error.message.clone())));
    }
    let arrival = Arrival::first(&core.env);
    let Some(attendance) = attend(&core.env, call, &record.id, arrival).await? else {
        return Ok(None);
    };
    let options = WaitOptions { is_poll: true, ..WaitOptions::default() };
    match wait(attendance, options).await? {
        Outcome::Complete(MethodResult::Tool(result)) => Ok(Some(result)),
        _ => Ok(None),
    }
}

fn status(record: &TaskRecord, result: &CallToolResult) -> &'static str {
    match &record.outcome {
        None if record.input_requests.is_empty() => "working",
        None => "input_required",
        Some(TaskOutcome::Cancelled) => "cancelled",
        Some(_) if result.is_error == Some(true) => "failed",
        Some(_) => "completed",
    }
}

/// Returns the text of new segments, and the number of the last one.
fn lines(page: &StoredSegments, after: u64) -> Value {
    let texts = page.blocks.iter().filter_map(|block| match serde_json::from_str(block.get()) {
        Ok(ContentBlock::Text(text)) => Some(text.text),
        _ => None,
    });
    let texts: Vec<String> = texts.collect();
    let last = after.saturating_add(page.blocks.len() as u64);
    json!({"text": texts, "last": last, "skipped": 0})
}
