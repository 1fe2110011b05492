//! Delivers the result of a task: whole, or cut to the limit of the host.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use outlive_protocol::ProtocolError;
use outlive_tasks::store::{TaskOutcome, TaskRecord, assemble};
use outlive_wire::{CallToolResult, ContentBlock, RawJson, ResourceContents};
use serde_json::value::to_raw_value;

use crate::server::{
    env::{task_backend::TaskBackend, task_error::unavailable},
    results::{
        body::ResultReader,
        cut::{CutOptions, cut},
        error::ReadError,
        notice::Rest,
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
    // A reader in memory never waits.
    let mut context = Context::from_waker(Waker::noop());
    match pin!(cut(&reader, options)).poll(&mut context) {
        Poll::Ready(cut) => cut.ok().flatten(),
        Poll::Pending => None,
    }
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
