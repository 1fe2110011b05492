//! Our own extension: what a task emits and how far it is, for those who look at it or listen to it while it runs.
//! Specified in `docs/extensions/task-partials.md`.

use std::io::Write;

use outlive_wire::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{PARTIALS, decode::declares};
use crate::{Call, ProtocolError, SegmentPage, TaskView, era::notify::Far};

/// Beside what is known of a task: what it has emitted.
pub(super) const EMITTED: &str = "dev.outlive/partials";

/// Beside what is known of a task: how far it is.
pub(super) const PROGRESS: &str = "dev.outlive/progress";

/// How far a task is, if the call declares the extension.
pub(super) fn progress<'a>(call: &Call, task: &'a TaskView) -> Option<Far<'a>> {
    let progress = task.progress.as_ref()?;
    declares(call, PARTIALS).then(|| Far::of(progress))
}

/// From after which block on a look wants to have them. Only a client that declares the extension
/// means anything by it.
pub(super) fn after_seq(call: &Call) -> Result<Option<u64>, ProtocolError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "_meta")]
        meta: Keys<'a>,
    }
    #[derive(Default, Deserialize)]
    struct Keys<'a> {
        #[serde(borrow, default, rename = "dev.outlive/afterSeq")]
        after: Option<&'a RawValue>,
    }
    if call.method() != Some(Method::TasksGet) || !declares(call, PARTIALS) {
        return Ok(None);
    }
    let params: Params<'_> = serde_json::from_str(call.params())
        .map_err(|error| ProtocolError::invalid_params(format!("`params._meta`: {error}")))?;
    let Some(after) = params.meta.after else { return Ok(None) };
    match serde_json::from_str(after.get()) {
        Ok(after) => Ok(Some(after)),
        Err(_) => Err(ProtocolError::invalid_params(
            "`params._meta` `dev.outlive/afterSeq` must be a whole number from 0 on",
        )),
    }
}

/// Writes the members that answers and notifications share.
pub(super) fn members(emitted: &SegmentPage, out: &mut Vec<u8>) {
    out.extend_from_slice(br#""segments":["#);
    let SegmentPage { blocks, last, complete, .. } = emitted;
    for (index, block) in blocks.blocks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let number = blocks.first + index as u64;
        // Writing to memory does not fail.
        let _ = write!(out, r#"{{"seq":{number},"block":{}}}"#, block.get());
    }
    let _ = write!(out, r#"],"lastSeq":{last},"complete":{complete}"#);
}
