//! [`Segment`]: one partial result of a task.

use outlive_wire::ContentBlock;
use serde_json::Value;

use super::error::{Error, Result};

/// The extension that partial results of tasks are.
pub(crate) const PARTIALS: &str = "dev.outlive/task-partials";

/// One partial result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// Its number, from 1 on.
    pub number: u64,
    /// Its content.
    pub block: ContentBlock,
}

/// Reads a segment from its block.
pub(crate) fn segment(number: u64, block: Value) -> Result<Segment> {
    let block = serde_json::from_value(block)
        .map_err(|error| Error::broke(format!("partial result {number} is none: {error}")))?;
    Ok(Segment { number, block })
}
