//! What a task has emitted, for those who read it while it runs, or read the rest later.
//!
//! What is stored has its number from the store. Behind it stands what came with the end alone, of
//! the result or of what went wrong: numbered on from there, in the same way for every reader and
//! for ever, since nothing changes any more.

use outlive_protocol::{Call, FinalSegments, ProtocolError, SegmentPage, Segments, era};
use outlive_tasks::store::{self, PageLimit, TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock, Meta, RawJson};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::server::{
    env::{
        task_backend::TaskBackend,
        task_error::{unavailable, unknown_task},
    },
    tasks::lookup::look,
};

/// How much is read, and sent in one message, at once.
const PAGE: PageLimit = PageLimit::new(PAGE_SEGMENTS, PAGE_BYTES);
const PAGE_SEGMENTS: usize = 1_000;
const PAGE_BYTES: usize = 256 << 10;

/// Blocks from after a number on, as many as fit a message.
pub(crate) async fn page(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Result<store::StoredSegments, ProtocolError> {
    page_of(tasks, call, id, after).await?.ok_or_else(unknown_task)
}

/// As [`page`]; `None` if there is no such task.
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

/// More blocks of a task that runs here, if the store has some: as many as fit a message. Reading them
/// costs next to nothing, and says nothing of how the task is.
pub(crate) fn page_at_hand(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    after: u64,
) -> Option<store::StoredSegments> {
    tasks.engine().written_segments(call.principal().key(), id, after, PAGE)
}

/// `tasks/result` with a number: what comes after it, as far as it is there. `None` if the task does
/// not send its content as it grows, or no number is named.
pub(crate) async fn after_number(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<Option<FinalSegments>, ProtocolError> {
    // Before the blocks: when it has ended, all of them are there.
    let view = look(tasks, call, id).await?;
    if !call.rules().streams_task(&view.origin) {
        return Ok(None);
    }
    let Some(after) = era::codec(call.rules().era).task_request(call)?.after_seq? else {
        return Ok(None);
    };
    let page = page(tasks, call, id, after).await?;
    let blocks = Segments { first: after.saturating_add(1), blocks: page.blocks };
    if let Some(outcome) = view.outcome.filter(|_| is_all(&blocks, page.last)) {
        tasks.note(call, id, "retrieved", None);
        return rest(id, blocks, page.last, &outcome).map(Some);
    }
    Ok(Some(FinalSegments { id: id.as_str().to_owned(), blocks: Some(blocks), end: None }))
}

/// Whether no stored block comes after these.
pub(crate) fn is_all(blocks: &Segments, last: u64) -> bool {
    blocks.first.saturating_add(blocks.blocks.len() as u64) > last
}

/// The end of a task: the blocks that are left, those that came with the end, and what else did.
pub(crate) fn rest(
    id: &TaskId,
    mut blocks: Segments,
    last: u64,
    outcome: &TaskOutcome,
) -> Result<FinalSegments, ProtocolError> {
    let mut end = Box::new(CallToolResult::default());
    // What was left out before these by the reader's own choice is left out.
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
        TaskOutcome::Cancelled | TaskOutcome::Expired => end.is_error = Some(true),
    }
    Ok(FinalSegments { id: id.as_str().to_owned(), blocks: Some(blocks), end: Some(end) })
}

/// A task that has failed before it emitted anything says so as any tool does.
pub(crate) fn as_content(rest: FinalSegments) -> Result<FinalSegments, ProtocolError> {
    let (Some(mut end), Some(blocks)) = (rest.end, rest.blocks) else {
        return Err(ProtocolError::internal("a task that has not ended has no content"));
    };
    let content = blocks.blocks.iter().map(|block| serde_json::from_str(block.get()));
    end.content = content.collect::<Result<_, _>>().map_err(ProtocolError::internal)?;
    Ok(FinalSegments { id: rest.id, blocks: None, end: Some(end) })
}

/// A result of which the content stays as it is.
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

/// What a task that is looked at has emitted from after a number on.
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
