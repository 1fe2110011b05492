//! Sizes in the byte count of a principal. All stores of this crate count alike.

use std::collections::BTreeSet;

use super::{
    decision_store::Vote,
    input_request::NewInputRequest,
    outcome::TaskOutcome,
    result::ResultPart,
    task::{MAX_TAGS, NewTask},
    work::{Changes, Transition},
};
use crate::{JournalEntry, SegmentRecord};

/// Bytes that a task counts in addition to its request, journal and outcome: its row, indexes and
/// audit events.
pub(super) const TASK_BYTES: usize = 2_048;

/// Bytes that a key-value entry counts in addition to its key and value: its row and indexes.
pub(super) const ENTRY_BYTES: usize = 256;

/// Bytes that a vote counts in addition to its texts: its row and indexes.
pub(super) const VOTE_BYTES: usize = 128;

/// Bytes that a tag counts in addition to its text: its row and index.
pub(super) const TAG_BYTES: usize = 64;

/// Size up to which the outcome of a task is always stored, even if the principal is at its limit.
/// A task whose larger outcome is rejected ends with an error that is smaller than this.
pub const OUTCOME_RESERVE: usize = 1_024;

/// Returns the bytes of a new task, including its journal, its input requests and its tags.
pub(super) fn new_task(task: &NewTask) -> usize {
    let entries = task.journal.entries.iter().map(|(key, entry)| journal_entry(key, entry));
    let segments = task.journal.segments.iter().map(segment);
    let asked = task.input_requests.iter().map(input_request);
    let children = entries.chain(segments).chain(asked).sum::<usize>();
    TASK_BYTES + task.request.get().len() + children + tags(stored_tags(task))
}

/// Returns the tags of a new task that a store keeps.
pub(super) fn stored_tags(task: &NewTask) -> BTreeSet<&str> {
    let mut stored = BTreeSet::new();
    for tag in task.tags.iter().filter(|_| task.indexed) {
        if stored.len() < MAX_TAGS {
            stored.insert(tag.as_str());
        }
    }
    stored
}

/// Returns the tags that a store adds to those of a task that is indexed.
pub(super) fn added_tags<'a>(known: &[String], tags: &'a [String]) -> BTreeSet<&'a str> {
    let mut added = BTreeSet::new();
    for tag in tags.iter().filter(|tag| !known.contains(tag)) {
        if known.len() + added.len() < MAX_TAGS {
            added.insert(tag.as_str());
        }
    }
    added
}

/// Returns the bytes of tags.
pub(super) fn tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> usize {
    tags.into_iter().map(|tag| TAG_BYTES + tag.len()).sum()
}

/// Returns the bytes of a journal entry in its serialized form.
pub(super) fn journal_entry(key: &str, entry: &JournalEntry) -> usize {
    key.len() + serde_json::to_string(entry).map_or(0, |json| json.len())
}

/// Returns the bytes of a segment.
pub(super) fn segment(segment: &SegmentRecord) -> usize {
    segment.scope.len() + segment.block.get().len()
}

/// Returns the bytes of a key-value entry.
pub(super) fn key_value(key: &str, value: &str) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}

/// Returns the bytes of an input request: its keys, its body, its addressees and its binding.
pub(super) fn input_request(asked: &NewInputRequest) -> usize {
    let body = asked.request.as_ref().map(serde_json::to_string);
    let body = body.and_then(Result::ok).map_or(0, |body| body.len());
    let (names, scope) = asked.audience.addressees();
    let addressees = names.iter().map(String::len).chain(scope.map(str::len)).sum::<usize>();
    let binding = asked.binding.as_ref();
    let binding = binding.map_or(0, |bound| {
        let denial = bound.denial.as_ref().map_or(0, String::len);
        bound.digest.len() + bound.definition.len() + denial
    });
    asked.name.len() + asked.key.len() + body + addressees + binding
}

/// Returns the bytes of a vote.
pub(super) fn vote(Vote { person, reason, channel, .. }: &Vote) -> usize {
    VOTE_BYTES + person.len() + channel.len() + reason.as_ref().map_or(0, String::len)
}

/// Returns the bytes of result parts.
pub(super) fn result_parts(parts: &[ResultPart]) -> usize {
    parts.iter().map(|part| part.body.len()).sum()
}

/// Returns the bytes that an outcome needs from the remaining bytes of its principal.
pub(super) fn outcome_need(bytes: usize) -> usize {
    if bytes > OUTCOME_RESERVE { bytes } else { 0 }
}

/// Returns an upper bound of the bytes that a write stores. Avoids serializing to JSON, because
/// nearly all writes are far below the limit.
pub(crate) fn at_most(changes: &Changes, then: &Transition) -> usize {
    let entries = changes.entries.iter().map(|new| new.key.len() + new.entry.size(&new.key));
    let segments = changes.segments.iter().map(segment);
    let asked = changes.input_requests.iter().map(input_request);
    let outcome = match then {
        Transition::End { outcome: TaskOutcome::Result(result), .. } => result.get().len() + 16,
        Transition::End { outcome, .. } => outcome_bytes(outcome),
        Transition::Continue | Transition::Park { .. } | Transition::Quarantine { .. } => 0,
    };
    let parts = result_parts(&changes.result_parts) + tags(changes.tags.iter().map(String::as_str));
    entries.chain(segments).chain(asked).sum::<usize>() + parts + outcome_need(outcome)
}

/// Returns the bytes of an outcome in its serialized form.
pub(super) fn outcome_bytes(outcome: &TaskOutcome) -> usize {
    serde_json::to_string(outcome).map_or(0, |json| json.len())
}
