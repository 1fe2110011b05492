//! [`Segment`]: one partial result of a task.

use outlive_wire::ContentBlock;
use serde_json::Value;

use super::error::{Error, Result};

/// Extension for partial results of tasks.
pub(crate) const PARTIALS: &str = "dev.outlive/task-partials";

/// One partial result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// Sequence number, from 1.
    pub number: u64,
    /// Content block.
    pub block: ContentBlock,
}

/// Parses a segment from its content block.
pub(crate) fn segment(number: u64, block: Value) -> Result<Segment> {
    let block = serde_json::from_value(block).map_err(|error| {
        Error::broke(format!("partial result {number} cannot be parsed: {error}"))
    })?;
    Ok(Segment { number, block })
}
