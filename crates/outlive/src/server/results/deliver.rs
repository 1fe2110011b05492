//! Delivers the result of a task: whole, or cut to the limit of the host.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use outlive_protocol::ProtocolError;
use outlive_tasks::store::{ResultPart, TaskOutcome, TaskRecord, assemble};
use outlive_wire::{CallToolResult, ContentBlock, RawJson, ResourceContents};
use serde_json::value::to_raw_value;

use crate::server::{
    env::{task_backend::TaskBackend, task_error::unavailable},
    results::{
        body::ResultReader,
        cut::{CutOptions, cut, cut_or_whole},
        error::ReadError,
        notice::{Rest, left_out},
        plan::CutPlan,
    },
};

/// A result as its client gets it.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) result: CallToolResult,
    /// Whether a part of the result is left out, so that the client may read it later.
    pub(crate) is_cut: bool,
}

/// Returns the result of an ended task, cut to `limit` bytes. Returns `None` if the task did not
/// end with a result, or if its result was deleted. Of a large result, only the delivered parts are
/// read.
pub(crate) async fn deliver(
    tasks: &TaskBackend,
    principal: &str,
    record: &TaskRecord,
    limit: Option<usize>,
) -> Result<Option<Delivered>, ProtocolError> {
    let Some(outcome) = &record.outcome else { return Ok(None) };
    let store = &**tasks.engine().store();
    if let Some(limit) = limit {
        let reader = ResultReader::from_outcome(store, principal, &record.id, outcome);
        let Some(reader) = reader else { return Ok(None) };
        let rest = Rest::Stored(&record.id);
        match cut(&reader, CutOptions { limit, tool: &record.tool, rest }).await {
            Ok(Some(result)) => return Ok(Some(Delivered { result, is_cut: true })),
            Ok(None) => {}
            Err(ReadError::Store(error)) => return Err(unavailable(&error)),
            Err(_) => return Ok(None),
        }
    }
    let whole = match outcome {
        TaskOutcome::Result(raw) => Some(raw.clone()),
        TaskOutcome::LargeResult(large) => assemble(store, principal, &record.id, large)
            .await
            .map_err(|error| unavailable(&error))?,
        TaskOutcome::Error(_) | TaskOutcome::Cancelled | TaskOutcome::Expired => None,
    };
    whole.map(|raw| parse(&raw)).transpose()
}

fn parse(raw: &RawJson) -> Result<Delivered, ProtocolError> {
    let result = serde_json::from_str(raw.get()).map_err(ProtocolError::internal)?;
    Ok(Delivered { result, is_cut: false })
}

/// Cuts a result in memory. Returns `None` if it fits whole.
pub(crate) fn cut_in_memory(
    result: &CallToolResult,
    options: CutOptions<'_>,
) -> Option<CallToolResult> {
    if fits(result, options.limit) {
        return None;
    }
    let reader = ResultReader::from_whole(&to_raw_value(result).ok()?);
    at_once(cut(&reader, options))?.ok().flatten()
}

/// Returns the output of a future that reads only memory, where no read waits.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Bytes of the text of a result that is stored although the caller has reached a limit.
const REDUCED_BYTES: usize = 8 << 10;

/// Bytes above which an image or another block does not stay in a reduced result.
const MAX_REDUCED_BLOCK: usize = 1 << 10;

/// Returns the start and the end of a result that cannot be stored, because `limit` is used up.
/// Images are left out. Returns `None` if the outcome is not a result, or is still too large.
pub(crate) fn reduce(
    outcome: &TaskOutcome,
    parts: &[ResultPart],
    tool: &str,
    limit: &'static str,
) -> Option<RawJson> {
    let reader = ResultReader::from_parts(outcome, parts)?;
    let rest = Rest::NotStored(limit);
    let options = CutOptions { limit: REDUCED_BYTES, tool, rest };
    // A result that needs no cut is small, or has images.
    let mut result = at_once(cut_or_whole(&reader, options))?.ok()?;
    for block in &mut result.content {
        let bytes = serde_json::to_string(block).map_or(0, |json| json.len());
        if !matches!(block, ContentBlock::Text(_)) && bytes > MAX_REDUCED_BLOCK {
            *block = ContentBlock::text(left_out(rest, bytes as u64, None));
        }
    }
    let raw = to_raw_value(&result).ok()?;
    (raw.get().len() <= 4 * REDUCED_BYTES).then_some(raw)
}

/// Returns whether a result must be cut to fit into `limit` bytes.
pub(crate) fn needs_cut(result: &CallToolResult, limit: usize) -> bool {
    if fits(result, limit) {
        return false;
    }
    let Ok(raw) = to_raw_value(result) else { return false };
    let reader = ResultReader::from_whole(&raw);
    let head = serde_json::from_str(reader.result().head.get());
    head.is_ok_and(|head| CutPlan::new(reader.result(), &head, limit).is_some())
}

/// Returns whether a result certainly fits into `limit` bytes, without serializing it.
fn fits(result: &CallToolResult, limit: usize) -> bool {
    let content = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(contents) => contents.uri.len() + contents.text.len(),
            ResourceContents::Blob(contents) => contents.uri.len() + contents.blob.len(),
            _ => limit,
        },
        other => serde_json::to_string(other).map_or(limit, |json| json.len()),
    });
    let structured = result.structured_content.as_ref().map_or(0, |json| json.get().len());
    structured <= limit && content.fold(0_usize, usize::saturating_add) <= limit
}
