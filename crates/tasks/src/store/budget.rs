//! What is counted in the bytes that a principal has stored. All stores of this crate count alike.

use super::NewTask;
use crate::{Entry, Segment};

/// What a task counts in the bytes of its principal, beside its request, its journal and its outcome:
/// its row, its indexes and its audit events.
pub(super) const TASK_BYTES: usize = 2_048;

/// What a key-value entry counts beside its key and its value: its row and its indexes.
pub(super) const ENTRY_BYTES: usize = 256;

/// For whom a key-value entry is stored, and how much that principal may have stored with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct Charge {
    /// The principal.
    pub principal: String,
    /// How many bytes it may have stored, this entry included.
    pub max_bytes: u64,
}

/// What a new task counts, its journal included.
pub(super) fn new_task(task: &NewTask) -> usize {
    let entries = task.journal.entries.iter().map(|(key, entry)| journal_entry(key, entry));
    let segments = task.journal.segments.iter().map(segment);
    TASK_BYTES + task.request.get().len() + entries.chain(segments).sum::<usize>()
}

/// What an entry of a journal counts, as it is written.
pub(super) fn journal_entry(key: &str, entry: &Entry) -> usize {
    key.len() + serde_json::to_string(entry).map_or(0, |json| json.len())
}

/// What a segment counts.
pub(super) fn segment(segment: &Segment) -> usize {
    segment.scope.len() + segment.block.get().len()
}

/// What a key-value entry counts.
pub(super) fn key_value(key: &str, value: &str) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}
