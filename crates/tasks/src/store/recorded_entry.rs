//! Journal entries to store.

use std::time::Duration;

use crate::{JournalEntry, setters::setters};

/// A journal entry to store, with the duration of its step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedEntry {
    /// Journal key.
    pub key: String,
    /// The entry.
    pub entry: JournalEntry,
    /// Duration of the step, for the timeline.
    pub duration: Option<Duration>,
}

impl RecordedEntry {
    /// Creates an entry without a duration.
    pub fn new(key: impl Into<String>, entry: JournalEntry) -> Self {
        Self { key: key.into(), entry, duration: None }
    }
}

setters!(RecordedEntry { duration: Option<Duration> });
