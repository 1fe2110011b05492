//! The part of a task page below the timeline: output, journal, arguments, result or audit log.

use askama::Template;
use outlive::{
    people::{TaskView, Timeline},
    store::{
        AuditRecord, JournalCursor, JournalItem, StoredSegments, TaskOutcome, TaskState,
        TimelineEntry,
    },
    text,
};
use serde::Deserialize;

use super::journal::{Entry, Row};
use crate::{
    arguments::{Argument, MAX_VALUE, value},
    html::Markup,
    pages::{audit, context::PageContext},
    time_text::{count, number},
    urlencoded::{Values, encode},
};

/// Maximum number of entries that a search finds.
const MAX_FOUND: usize = 200;

/// Name of a tab in the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TabName {
    Output,
    Journal,
    Arguments,
    Result,
    Audit,
}

impl TabName {
    const ALL: [Self; 5] =
        [Self::Output, Self::Journal, Self::Arguments, Self::Result, Self::Audit];

    /// Reads the tab of an address. Without one, an ended task shows its result, and a task with
    /// output shows that.
    pub(crate) fn read(query: &Values, view: &TaskView) -> Self {
        let name = query.get("view");
        let named = Self::ALL.into_iter().find(|tab| Some(tab.as_str()) == name);
        named.unwrap_or(match view.state {
            TaskState::Completed | TaskState::Failed => Self::Result,
            _ if view.detail.segments > 0 => Self::Output,
            _ => Self::Journal,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Journal => "journal",
            Self::Arguments => "arguments",
            Self::Result => "result",
            Self::Audit => "audit",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Output => "Output",
            Self::Journal => "Journal",
            Self::Arguments => "Arguments",
            Self::Result => "Result",
            Self::Audit => "Audit",
        }
    }
}

/// The data of a tab.
pub(crate) enum Tab<'a> {
    /// The last segments.
    Output(&'a StoredSegments),
    /// Journal entries, and the sealed position of the next ones.
    Journal {
        items: &'a [JournalItem],
        next: Option<&'a str>,
    },
    /// One journal entry.
    Entry(&'a JournalItem),
    /// Journal entries whose key contains a text, or that failed.
    Search {
        find: &'a str,
        failed: bool,
    },
    Arguments,
    Result,
    Audit(&'a [AuditRecord]),
    /// The visitor may not see the contents of the task.
    Hidden(TabName),
}

impl Tab<'_> {
    fn name(&self) -> TabName {
        match self {
            Self::Output(_) => TabName::Output,
            Self::Journal { .. } | Self::Entry(_) | Self::Search { .. } => TabName::Journal,
            Self::Arguments => TabName::Arguments,
            Self::Result => TabName::Result,
            Self::Audit(_) => TabName::Audit,
            Self::Hidden(name) => *name,
        }
    }
}

/// Returns the position before the entry with a key, to read that entry. `None` if the journal has
/// no such entry; the inner `None` is the start of the journal.
pub(crate) fn cursor_before(timeline: &Timeline, key: &str) -> Option<Option<JournalCursor>> {
    let at = timeline.entries.iter().position(|entry| entry.key == key)?;
    let before = at.checked_sub(1).map(|before| &timeline.entries[before]);
    Some(before.map(|entry| JournalCursor::new(entry.recorded_at, entry.key.clone())))
}

/// A tab with its neighbors.
#[derive(Template)]
#[template(path = "task_tabs.html")]
pub(super) struct TabsPart {
    tabs: Vec<TabLink>,
    output: Option<Output>,
    journal: Option<Journal>,
    entry: Option<Entry>,
    arguments: Option<Vec<Argument>>,
    result: Option<Markup>,
    audit: Option<Markup>,
    is_hidden: bool,
}

struct TabLink {
    href: String,
    label: &'static str,
    count: String,
    is_current: bool,
}

struct Output {
    text: String,
    /// Number of segments that are not shown.
    skipped: Option<String>,
    is_empty: bool,
    has_ended: bool,
}

struct Journal {
    rows: Vec<Row>,
    next: Option<String>,
    find: String,
    failed: bool,
    is_search: bool,
    found: String,
}

impl TabsPart {
    pub(super) fn new(
        cx: &PageContext,
        view: &TaskView,
        timeline: &Timeline,
        tab: &Tab<'_>,
    ) -> Self {
        let mut part = Self {
            tabs: links(view, tab.name()),
            output: None,
            journal: None,
            entry: None,
            arguments: None,
            result: None,
            audit: None,
            is_hidden: false,
        };
        match tab {
            Tab::Output(segments) => part.output = Some(Output::new(segments)),
            Tab::Journal { items, next } => part.journal = Some(Journal::new(cx, items, *next)),
            Tab::Search { find, failed } => {
                part.journal = Some(Journal::search(cx, &timeline.entries, find, *failed));
            }
            Tab::Entry(item) => part.entry = Some(Entry::new(cx, item)),
            Tab::Arguments => {
                part.arguments = Some(view.arguments.iter().map(Argument::new).collect())
            }
            Tab::Result => part.result = result(view.detail.task.view.outcome.as_ref()),
            Tab::Audit(records) => part.audit = Some(audit::table(cx, records, false)),
            Tab::Hidden(_) => part.is_hidden = true,
        }
        part
    }

    fn has_no_result(&self) -> bool {
        let shown = [
            self.output.is_some(),
            self.journal.is_some(),
            self.entry.is_some(),
            self.arguments.is_some(),
            self.result.is_some(),
            self.audit.is_some(),
            self.is_hidden,
        ];
        !shown.contains(&true)
    }
}

fn links(view: &TaskView, current: TabName) -> Vec<TabLink> {
    let link = |tab: TabName| TabLink {
        href: format!("?view={}", tab.as_str()),
        label: tab.label(),
        count: match tab {
            TabName::Output if view.detail.segments > 0 => number(view.detail.segments),
            TabName::Journal => number(view.entries as u64),
            _ => String::new(),
        },
        is_current: tab == current,
    };
    TabName::ALL.map(link).into()
}

fn result(outcome: Option<&TaskOutcome>) -> Option<Markup> {
    match outcome? {
        TaskOutcome::Result(json) => Some(value("the result", json.get())),
        TaskOutcome::LargeResult(large) => Some(value("the result", large.head.get())),
        TaskOutcome::Error(error) => {
            let json = serde_json::to_string(error).unwrap_or_default();
            Some(value("the error", &json))
        }
        TaskOutcome::Cancelled | TaskOutcome::Expired => None,
    }
}

impl Output {
    fn new(segments: &StoredSegments) -> Self {
        let shown: String = segments.blocks.iter().map(|block| block_text(block.get())).collect();
        let shown = text::lines(&shown);
        let skip = shown.chars().count().saturating_sub(MAX_VALUE);
        let text: String = shown.chars().skip(skip).collect();
        let before = segments.last.saturating_sub(segments.blocks.len() as u64);
        Self {
            text,
            skipped: (before > 0).then(|| count(before, "earlier segment")),
            is_empty: segments.blocks.is_empty(),
            has_ended: segments.ended,
        }
    }
}

/// Returns the text of a content block, on separate lines. Other blocks are named.
fn block_text(json: &str) -> String {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
    }
    match serde_json::from_str::<Block>(json) {
        Ok(Block { text: Some(text), .. }) if text.ends_with('\n') => text,
        Ok(Block { text: Some(text), .. }) => format!("{text}\n"),
        Ok(Block { kind, .. }) => {
            format!("[{kind}, {}]\n", count(json.len() as u64, "byte"))
        }
        Err(_) => format!("{json}\n"),
    }
}

impl Journal {
    fn new(cx: &PageContext, items: &[JournalItem], next: Option<&str>) -> Self {
        Self {
            rows: items.iter().map(|item| Row::new(cx, item)).collect(),
            next: next.map(|next| format!("?view=journal&after={}", encode(next))),
            find: String::new(),
            failed: false,
            is_search: false,
            found: String::new(),
        }
    }

    fn search(cx: &PageContext, entries: &[TimelineEntry], find: &str, failed: bool) -> Self {
        use outlive::store::EntryKind::FailedStep;
        let is_match = |entry: &&TimelineEntry| {
            entry.key.contains(find) && (!failed || entry.kind == FailedStep)
        };
        let total = entries.iter().filter(is_match).count();
        let rows = entries.iter().filter(is_match).take(MAX_FOUND);
        Self {
            rows: rows.map(|entry| Row::found(cx, entry)).collect(),
            next: None,
            find: find.to_owned(),
            failed,
            is_search: true,
            found: match total {
                1 => "1 entry matches.".to_owned(),
                0..=MAX_FOUND => format!("{} entries match.", number(total as u64)),
                _ => format!(
                    "{} entries match; these are the first {MAX_FOUND}.",
                    number(total as u64)
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive::{
        people::Timeline,
        store::{EntryKind, TimelineEntry},
    };

    use super::{block_text, cursor_before};

    #[test]
    fn cursor_before_an_entry_is_the_previous_entry() {
        let mut timeline = Timeline::default();
        let entry = |at: u64, key: &str| TimelineEntry::new(key, EntryKind::Step, at, None);
        timeline.entries = vec![entry(1, "a"), entry(2, "b")];
        assert_eq!(cursor_before(&timeline, "a"), Some(None));
        let cursor = cursor_before(&timeline, "b").unwrap().unwrap();
        assert_eq!((cursor.recorded_at, cursor.key.as_str()), (1, "a"));
        assert_eq!(cursor_before(&timeline, "c"), None);
    }

    #[test]
    fn blocks_of_output_are_lines() {
        assert_eq!(block_text(r#"{"type":"text","text":"a"}"#), "a\n");
        assert_eq!(block_text(r#"{"type":"text","text":"a\n"}"#), "a\n");
        assert_eq!(block_text(r#"{"type":"image","data":"AA"}"#), "[image, 28 bytes]\n");
    }
}
