//! Partial results: numbered, stored once, whatever runs again.

use std::collections::HashMap;

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

/// One block that a run has emitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made here, written by the floor above")]
pub struct Segment {
    /// The step or scope that emitted it; empty for the run itself.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The how manieth it is there.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
    /// The content block.
    #[serde(rename = "b")]
    pub block: RawJson,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(ordinal: &u32) -> bool {
    *ordinal == 0
}

/// All blocks of a run, in the order in which they were first emitted.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) stored: Vec<Segment>,
    /// How many each scope has emitted in this run.
    pub(crate) emitted: HashMap<String, u32>,
}

impl Segments {
    /// The place of the next block of a scope, and the block that is stored there already.
    pub(crate) fn next(&mut self, scope: &str) -> (u32, Option<&Segment>) {
        let count = self.emitted.entry(scope.to_owned()).or_default();
        let ordinal = *count;
        *count += 1;
        let stored =
            self.stored.iter().find(|segment| segment.ordinal == ordinal && segment.scope == scope);
        (ordinal, stored)
    }

    /// A scope begins again.
    pub(crate) fn restart(&mut self, scope: &str) {
        self.emitted.remove(scope);
    }

    /// The whole run begins again.
    pub(crate) fn restart_all(&mut self) {
        self.emitted.clear();
    }
}
