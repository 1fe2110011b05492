//! The rows of a journal.

use outlive::store::{EntryKind, InputFailure, JournalEntry, JournalItem, TimelineEntry};

use super::timeline::entry_address;
use crate::{
    arguments::{plain, value},
    html::Markup,
    pages::context::PageContext,
    status_text::cut,
    time_text,
};

/// Maximum number of characters of a value in a row.
const MAX_SHORT: usize = 80;

/// A journal entry in a list.
pub(super) struct Row {
    pub(super) at: Markup,
    pub(super) kind: &'static str,
    pub(super) class: &'static str,
    pub(super) key: String,
    pub(super) duration: String,
    pub(super) value: String,
    /// Address and size of a value that is not shown in the list.
    pub(super) whole: Option<(String, String)>,
}

impl Row {
    pub(super) fn new(cx: &PageContext, item: &JournalItem) -> Self {
        let (kind, class) = kind(&item.entry);
        let text = text(&item.entry);
        let size = text.chars().count();
        let whole = (size > MAX_SHORT)
            .then(|| (entry_address(&item.key), time_text::count(size as u64, "character")));
        let short = match text.char_indices().nth(MAX_SHORT) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        Self {
            at: cx.second(item.recorded_at),
            kind,
            class,
            key: cut(&item.key),
            duration: item.duration.map(time_text::duration).unwrap_or_default(),
            value: cut(&short),
            whole,
        }
    }

    /// Creates the row of an entry whose value is not loaded.
    pub(super) fn found(cx: &PageContext, entry: &TimelineEntry) -> Self {
        let (kind, class) = match entry.kind {
            EntryKind::Step => ("step", ""),
            EntryKind::FailedStep => ("failed", "s-failed"),
            EntryKind::Input => ("input", "s-input-required"),
            EntryKind::Timer => ("timer", "s-waiting"),
        };
        Self {
            at: cx.second(entry.recorded_at),
            kind,
            class,
            key: cut(&entry.key),
            duration: entry.duration.map(time_text::duration).unwrap_or_default(),
            value: String::new(),
            whole: Some((entry_address(&entry.key), "Show".to_owned())),
        }
    }
}

/// One journal entry with its whole value.
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) at: Markup,
    pub(super) value: Markup,
}

impl Entry {
    pub(super) fn new(cx: &PageContext, item: &JournalItem) -> Self {
        let text = text(&item.entry);
        let value = match json(&item.entry) {
            Some(json) => value(&item.key, json),
            None => plain(&item.key, &text),
        };
        Self { row: Row::new(cx, item), at: cx.clock(item.recorded_at), value }
    }
}

fn kind(entry: &JournalEntry) -> (&'static str, &'static str) {
    match entry {
        JournalEntry::Value(_) | JournalEntry::Secret(_) => ("step", ""),
        JournalEntry::Failed(_) => ("failed", "s-failed"),
        JournalEntry::Answer(_) => ("input", "s-input-required"),
        JournalEntry::Unanswered(_) => ("no input", "s-expired"),
        JournalEntry::Due(_) => ("timer", "s-waiting"),
        JournalEntry::Begun => ("started", "s-running"),
        JournalEntry::State(_) => ("state", ""),
        _ => ("entry", ""),
    }
}

/// Returns the JSON value of an entry.
fn json(entry: &JournalEntry) -> Option<&str> {
    match entry {
        JournalEntry::Value(json)
        | JournalEntry::Secret(json)
        | JournalEntry::Answer(json)
        | JournalEntry::State(json) => Some(json.get()),
        _ => None,
    }
}

/// Returns the value of an entry as JSON or as a sentence.
fn text(entry: &JournalEntry) -> String {
    if let Some(json) = json(entry) {
        return json.to_owned();
    }
    match entry {
        JournalEntry::Failed(failure) => failure.message.clone(),
        JournalEntry::Unanswered(InputFailure::TimedOut) => "timed out".to_owned(),
        JournalEntry::Unanswered(InputFailure::Refused { code, message }) => {
            format!("error {code}: {message}")
        }
        JournalEntry::Due(at) => format!("until {}", time_text::exact(*at)),
        JournalEntry::Begun => "must not execute twice".to_owned(),
        _ => String::new(),
    }
}
