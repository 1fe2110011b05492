//! Outlive's extension for the partial results and the progress of running tasks.
//! Specified in `docs/extensions/task-partials.md`.

use std::io::Write;

use super::extensions::{PARTIALS, declares};
use crate::{Call, SegmentPage, TaskView, era::notify::Far};

/// Key of the segments in the `_meta` of a task.
pub(super) const EMITTED: &str = "dev.outlive/partials";

/// Key of the progress in the `_meta` of a task.
pub(super) const PROGRESS: &str = "dev.outlive/progress";

/// Returns the progress of a task, if the call declares the extension.
pub(super) fn progress<'a>(call: &Call, task: &'a TaskView) -> Option<Far<'a>> {
    let progress = task.progress.as_ref()?;
    declares(call, PARTIALS).then(|| Far::of(progress))
}

/// Writes the members that results and notifications share.
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
