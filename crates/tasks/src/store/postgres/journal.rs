//! Journal entries in columns.

use super::{
    clock::micros,
    column::{owned, to_json},
};
use crate::{
    JournalEntry,
    store::{RecordedEntry, StoreError},
};

/// A journal entry, in columns.
pub(super) struct Recorded {
    pub(super) key: String,
    pub(super) is_input: bool,
    pub(super) body: String,
    pub(super) duration: Option<i64>,
}

pub(super) fn recorded(entries: &[RecordedEntry]) -> Result<Vec<Recorded>, StoreError> {
    let mut all = Vec::with_capacity(entries.len());
    for RecordedEntry { key, entry, duration } in entries {
        let is_input = matches!(entry, JournalEntry::Answer(_));
        let (body, duration) = (to_json(entry)?, duration.map(micros));
        all.push(Recorded { key: owned(key), is_input, body, duration });
    }
    Ok(all)
}

/// Returns the bytes of entries.
pub(super) fn bytes_of(entries: &[Recorded]) -> usize {
    entries.iter().map(|entry| entry.key.len() + entry.body.len()).sum()
}
