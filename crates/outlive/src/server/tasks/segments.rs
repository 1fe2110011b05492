//! Partial results of a task: read while it runs, or later.
//!
//! Stored segments have sequence numbers from the store. Content blocks that only the final result
//! or error contains follow after them. Their numbers are the same for every reader, because a
//! terminal task does not change.

use outlive_protocol::{Call, FinalSegments, ProtocolError, SegmentPage, Segments, era};
use outlive_tasks::store::{self, PageLimit, TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock, Meta, RawJson};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::server::{
    env::{
        task_backend::TaskBackend,
        task_error::{not_loaded, unavailable, unknown_task},
    },
    tasks::lookup::{look_without_parts, whole},
};

/// Maximum size of one read and of one message.
const PAGE: PageLimit = PageLimit::new(PAGE_SEGMENTS, PAGE_BYTES);
const PAGE_SEGMENTS: usize = 1_000;
const PAGE_BYTES: usize = 256 << 10;

/// Reads segments after a sequence number, as many as fit into a message.
pub(crate) async fn page(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Result<store::StoredSegments, ProtocolError> {
    page_of(tasks, call, id, after).await?.ok_or_else(unknown_task)
}

/// Reads segments as [`page`] does. Returns `None` if the task does not exist.
pub(crate) async fn page_of(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Result<Option<store::StoredSegments>, ProtocolError> {
    let store = tasks.engine().store();
    let page = store.read_segments(call.principal().key(), id, after, PAGE).await;
    page.map_err(|error| unavailable(&error))
}

/// The newest segments of a task that fit into a message.
pub(crate) struct NewestSegments {
    /// Number of segments between the requested sequence number and the first of these.
    pub(crate) skipped: u64,
    pub(crate) page: store::StoredSegments,
}

/// Reads the newest segments after a sequence number, as many as fit into a message. If the task has
/// ended, these include the last one. Returns `None` if the task does not exist.
pub(crate) async fn newest(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Result<Option<NewestSegments>, ProtocolError> {
    let (mut start, mut count) = (after, PAGE_SEGMENTS as u64);
    loop {
        let Some(page) = page_of(tasks, call, id, start).await? else { return Ok(None) };
        // Large segments fill the page before the last one, so fewer are read.
        if start.saturating_add(page.blocks.len() as u64) >= page.last || count == 0 {
            return Ok(Some(NewestSegments { skipped: start - after, page }));
        }
        start = start.max(page.last.saturating_sub(count));
        count /= 2;
    }
}

/// Returns new segments of a task that runs in this process, from memory. The result does not
/// include the status of the task.
pub(crate) fn page_at_hand(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Option<store::StoredSegments> {
    tasks.engine().written_segments(call.principal().key(), id, after, PAGE)
}

/// Handles `tasks/result` with a sequence number: returns the available segments after it. Returns
/// `None` if the task does not stream its content, or the request has no number.
pub(crate) async fn after_number(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<Option<FinalSegments>, ProtocolError> {
    // The record is read before the segments: if it is terminal, all segments are stored.
    let view = look_without_parts(tasks, call, id).await?;
    if !call.rules().streams_task(&view.origin) {
        return Ok(None);
    }
    let Some(after) = era::codec(call.rules().era).task_request(call)?.after_seq? else {
        return Ok(None);
    };
    let page = page(tasks, call, id, after).await?;
    let blocks = Segments { first: after.saturating_add(1), blocks: page.blocks };
    if let Some(outcome) = view.outcome.filter(|_| is_all(&blocks, page.last)) {
        let outcome = whole(tasks, call, id, outcome).await?;
        tasks.note(call, id, "retrieved", None);
        return rest(id, blocks, page.last, &outcome).map(Some);
    }
    Ok(Some(FinalSegments { id: id.as_str().to_owned(), blocks: Some(blocks), end: None }))
}

/// Returns whether these are the last stored segments.
pub(crate) fn is_all(blocks: &Segments, last: u64) -> bool {
    blocks.first.saturating_add(blocks.blocks.len() as u64) > last
}

/// Returns the final segments of a task: the remaining stored segments, the blocks of the outcome,
/// and its other members.
pub(crate) fn rest(
    id: &TaskId,
    mut blocks: Segments,
    last: u64,
    outcome: &TaskOutcome,
) -> Result<FinalSegments, ProtocolError> {
    let mut end = Box::new(CallToolResult::default());
    // A reader can start after the last stored segment; blocks before its start are skipped.
    let known = blocks.first.saturating_sub(1).max(last);
    match outcome {
        TaskOutcome::Result(raw) => {
            let result: Ended = serde_json::from_str(raw.get()).map_err(ProtocolError::internal)?;
            let known = usize::try_from(known).unwrap_or(usize::MAX);
            blocks.blocks.extend(result.content.into_iter().skip(known));
            end.structured_content = result.structured_content;
            end.is_error = result.is_error;
            end.meta = result.meta;
        }
        TaskOutcome::Error(error) => {
            if known == last {
                let block = to_raw_value(&ContentBlock::text(error.message.as_str()));
                blocks.blocks.push(block.map_err(ProtocolError::internal)?);
            }
            end.is_error = Some(true);
        }
        TaskOutcome::LargeResult(_) => return Err(not_loaded()),
        TaskOutcome::Cancelled | TaskOutcome::Expired => end.is_error = Some(true),
    }
    Ok(FinalSegments { id: id.as_str().to_owned(), blocks: Some(blocks), end: Some(end) })
}

/// Converts the failure of a task without segments into a plain tool error.
pub(crate) fn as_content(rest: FinalSegments) -> Result<FinalSegments, ProtocolError> {
    let (Some(mut end), Some(blocks)) = (rest.end, rest.blocks) else {
        return Err(ProtocolError::internal("final segments of a task that has not ended"));
    };
    let content = blocks.blocks.iter().map(|block| serde_json::from_str(block.get()));
    end.content = content.collect::<Result<_, _>>().map_err(ProtocolError::internal)?;
    Ok(FinalSegments { id: rest.id, blocks: None, end: Some(end) })
}

/// A tool result whose content blocks stay raw JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    #[serde(default)]
    content: Vec<RawJson>,
    structured_content: Option<RawJson>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

/// Returns the segments after a sequence number, for the given record of the task.
pub(crate) async fn beside(
    tasks: &TaskBackend,
    call: &Call,
    view: &TaskRecord,
    after: u64,
) -> Result<SegmentPage, ProtocolError> {
    let page = page(tasks, call, &view.id, after).await?;
    Ok(emitted(&view.id, after, page, view.outcome.is_some()))
}

pub(crate) fn emitted(
    id: &TaskId,
    after: u64,
    page: store::StoredSegments,
    ended: bool,
) -> SegmentPage {
    let blocks = Segments { first: after.saturating_add(1), blocks: page.blocks };
    SegmentPage {
        id: id.as_str().to_owned(),
        complete: ended && is_all(&blocks, page.last),
        last: page.last,
        blocks,
    }
}
