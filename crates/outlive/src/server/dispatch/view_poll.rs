//! `task_result` as the task view calls it: it returns as soon as the task has changed.
//!
//! `view/mod.rs` describes the contract. The task of such a reply is in `_meta`, so that the page
//! distinguishes it from the tool's own structured content.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use crate::server::{
    dispatch::{core::ServerCore, fallback_task},
    env::task_error::unavailable,
    exec::bridge::{answer_links, no_such_task},
    hosts::AnswerBy,
    register::registered_tool::RegisteredTool,
    results::deliver::deliver,
    tasks::{
        lookup::LOOK,
        pending_result::{Situation, pending_result, stop_text, with_view},
        segments::{NewestSegments, newest},
    },
    time::now,
};

/// Longest wait of one poll, in a host whose calls may take longer.
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
    let slice = tasks.host_limits(call).await.and_then(|limits| limits.slice());
    let longest = slice.unwrap_or(MAX_WAIT).min(MAX_WAIT);
    let deadline = Instant::now() + wait_for.unwrap_or(longest).min(longest);
    let watch = tasks.engine().watch(task);
    loop {
        let changed = watch.notified();
        let record = tasks.engine().get(call.principal().key(), task).await;
        let Some(record) = record.map_err(|error| unavailable(&error))? else {
            return Ok(no_such_task());
        };
        // Segments are read after the record: if the record is terminal, all segments are stored.
        let news = newest(tasks, call, task, seen.segment).await?;
        let news = news.filter(|news| !news.page.blocks.is_empty());
        let is_news = news.is_some() || seen.change != Some(record.updated_at);
        if record.outcome.is_some() || is_news || Instant::now() >= deadline {
            return reply(core, call, &record, news, seen).await;
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(LOOK) => {}
            () = sleep_until(deadline) => {}
            () = tasks.bridges.drained() => return reply(core, call, &record, news, seen).await,
        }
    }
}

/// Returns the state of a task for the page, and its result if it has ended.
async fn reply(
    core: &Arc<ServerCore>,
    call: &Arc<Call>,
    record: &TaskRecord,
    news: Option<NewestSegments>,
    seen: Seen,
) -> Result<Outcome, ProtocolError> {
    let env = &core.env;
    let tool = fallback_task::tool_of(core, call, &record.tool).await;
    let answers_by = |by| fallback_task::answers_by(core, tool.as_deref(), by);
    let links = match answers_by(AnswerBy::Link) {
        true => answer_links(env, call, record),
        false => Vec::new(),
    };
    let answers_by_tool = answers_by(AnswerBy::Tool);
    let situation =
        Situation { is_poll: true, answers_by_tool, links: &links, ..Situation::default() };
    let result = match &record.outcome {
        None => pending_result(record, now(&env.profile), situation),
        Some(_) => match ended(core, call, record, tool.as_deref()).await? {
            Some(result) => result,
            None => return Ok(no_such_task()),
        },
    };
    let mut also = Map::new();
    also.insert("change".to_owned(), record.updated_at.into());
    if let Some(news) = news {
        also.insert("lines".to_owned(), lines(&news, seen.segment));
    }
    let result = with_view(result, record, now(&env.profile), also);
    Ok(Outcome::Complete(MethodResult::Tool(result)))
}

/// Returns the result of an ended task, cut to the limit of the host. The result is not delivered,
/// because the model does not see it: a repeated call still joins the run. A protocol error becomes
/// a tool error, because the page calls again after an error of the connection.
async fn ended(
    core: &ServerCore,
    call: &Call,
    record: &TaskRecord,
    tool: Option<&RegisteredTool>,
) -> Result<Option<CallToolResult>, ProtocolError> {
    let text = match &record.outcome {
        Some(TaskOutcome::Error(error)) => Some(error.message.clone()),
        _ => stop_text(record),
    };
    if let Some(text) = text {
        return Ok(Some(CallToolResult::error(text)));
    }
    let (tasks, principal) = (core.env.tasks()?, call.principal().key());
    let limits = tasks.host_limits(call).await;
    let max_inline = tool.and_then(|tool| tool.exec.policy.max_inline);
    let limit = limits.and_then(|limits| tasks.config.results.max_bytes(&limits, max_inline));
    let delivered = deliver(tasks, principal, record, limit).await?;
    Ok(delivered.map(|delivered| delivered.result))
}

/// Returns the text of the newest segments, the number of the last one, and the number of segments
/// that are left out before them.
fn lines(news: &NewestSegments, after: u64) -> Value {
    let text = news.page.blocks.iter().map(|block| match serde_json::from_str(block.get()) {
        Ok(ContentBlock::Text(text)) => text.text,
        Ok(ContentBlock::Image(_)) => "[image]".to_owned(),
        Ok(ContentBlock::Audio(_)) => "[audio]".to_owned(),
        _ => "[resource]".to_owned(),
    });
    let text: Vec<String> = text.collect();
    let last = after.saturating_add(news.skipped).saturating_add(text.len() as u64);
    let mut lines = json!({"text": text, "last": last});
    if news.skipped > 0 {
        lines["skipped"] = news.skipped.into();
    }
    lines
}
