//! What is counted in the bytes that a principal has stored. All stores of this crate count alike.

use super::{
    outcome::TaskOutcome,
    task::NewTask,
    work::{Changes, NewInputRequest, Transition},
};
use crate::{JournalEntry, SegmentRecord};

/// What a task counts in the bytes of its principal, beside its request, its journal and its outcome:
/// its row, its indexes and its audit events.
pub(super) const TASK_BYTES: usize = 2_048;

/// What a key-value entry counts beside its key and its value: its row and its indexes.
pub(super) const ENTRY_BYTES: usize = 256;

/// Bytes that the outcome of a task may always have, whatever its principal has stored. A task whose
/// larger outcome is refused ends with an error, which is smaller than this.
pub const OUTCOME_RESERVE: usize = 1_024;

/// What a new task counts, its journal included.
pub(super) fn new_task(task: &NewTask) -> usize {
    let entries = task.journal.entries.iter().map(|(key, entry)| journal_entry(key, entry));
    let segments = task.journal.segments.iter().map(segment);
    TASK_BYTES + task.request.get().len() + entries.chain(segments).sum::<usize>()
}

/// What an entry of a journal counts, as it is written.
pub(super) fn journal_entry(key: &str, entry: &JournalEntry) -> usize {
    key.len() + serde_json::to_string(entry).map_or(0, |json| json.len())
}

/// What a segment counts.
pub(super) fn segment(segment: &SegmentRecord) -> usize {
    segment.scope.len() + segment.block.get().len()
}

/// What a key-value entry counts.
pub(super) fn key_value(key: &str, value: &str) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}

/// Returns the bytes of an input request: its keys and its body.
pub(super) fn input_request(asked: &NewInputRequest) -> usize {
    let body = asked.request.as_ref().map(serde_json::to_string);
    asked.name.len() + asked.key.len() + body.and_then(Result::ok).map_or(0, |body| body.len())
}

/// What an outcome of so many bytes needs of the bytes that its principal has left.
pub(super) fn outcome_need(bytes: usize) -> usize {
    if bytes > OUTCOME_RESERVE { bytes } else { 0 }
}

/// What a write stores at most. Counted without writing it as JSON, because nearly all of them have
/// room.
pub(super) fn at_most(changes: &Changes, then: &Transition) -> usize {
    let entries = changes.entries.iter().map(|(key, entry)| key.len() + entry.size(key));
    let segments = changes.segments.iter().map(segment);
    let asked = changes.input_requests.iter().map(input_request);
    let outcome = match then {
        Transition::End { outcome: TaskOutcome::Result(result), .. } => result.get().len() + 16,
        Transition::End { outcome, .. } => outcome_bytes(outcome),
        Transition::Continue | Transition::Park { .. } | Transition::Quarantine { .. } => 0,
    };
    entries.chain(segments).chain(asked).sum::<usize>() + outcome_need(outcome)
}

/// What an outcome counts, as it is written.
pub(super) fn outcome_bytes(outcome: &TaskOutcome) -> usize {
    serde_json::to_string(outcome).map_or(0, |json| json.len())
}
