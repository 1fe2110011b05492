//! Our own extension: what a task emits and how far it is, for those who look at it or listen to it while it runs.
//! Specified in `docs/extensions/task-partials.md`.

use std::io::Write;

use super::extensions::{PARTIALS, declares};
use crate::{Call, SegmentPage, TaskView, era::notify::Far};

/// Beside what is known of a task: what it has emitted.
pub(super) const EMITTED: &str = "dev.outlive/partials";

/// Beside what is known of a task: how far it is.
pub(super) const PROGRESS: &str = "dev.outlive/progress";

/// How far a task is, if the call declares the extension.
pub(super) fn progress<'a>(call: &Call, task: &'a TaskView) -> Option<Far<'a>> {
    let progress = task.progress.as_ref()?;
    declares(call, PARTIALS).then(|| Far::of(progress))
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
