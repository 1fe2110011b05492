//! Handler revisions: which journals a revision accepts, and how it migrates them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use outlive_tasks::{JournalEntry, JournalSnapshot};
use outlive_wire::RawJson;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::run::bound_args::BoundArgs;

/// Migrates the journal entries of an earlier handler revision, key by key.
pub(crate) type Migrate = Arc<dyn Fn(&str, &str, &RawValue) -> Option<RawJson> + Send + Sync>;

/// Settings of a handler for replay and for later rounds.
#[derive(Clone, Default)]
pub(crate) struct ReplayPolicy {
    pub(crate) revision: Option<Arc<str>>,
    pub(crate) migrate: Option<Migrate>,
    pub(crate) bound_args: BoundArgs,
    pub(crate) single_use: bool,
    pub(crate) resume: ResumePolicy,
}

/// Entries of other handler revisions: journal key and label, which is empty if the revision had none.
pub(crate) type ForeignEntries = BTreeMap<String, Arc<str>>;

/// Handler revisions that may resume a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these two policies are complete")]
pub enum ResumePolicy {
    /// Any revision. Steps with a journal entry return it; steps without one run.
    #[default]
    AnyRevision,
    /// The revision that started the task, or one with a
    /// [`migrate_journal`](crate::server::Tool::migrate_journal) function. Under any other revision
    /// the task is quarantined.
    SameRevision,
}

impl ReplayPolicy {
    /// The default policy.
    pub(crate) const NONE: Self = Self {
        revision: None,
        migrate: None,
        bound_args: None,
        single_use: false,
        resume: ResumePolicy::AnyRevision,
    };

    /// Records the handler revision in the journal of a new task.
    pub(crate) fn sign(&self, journal: &mut JournalSnapshot) {
        let revision = self.revision.as_ref().and_then(|revision| to_raw_value(revision).ok());
        journal.entries.extend(revision.map(|raw| (REVISION.to_owned(), JournalEntry::State(raw))));
    }

    /// Checks whether this revision may resume a task.
    ///
    /// # Errors
    ///
    /// Returns the reason why it may not.
    pub(crate) fn may_resume(&self, journal: &JournalSnapshot) -> Result<(), String> {
        let signed = Signed::read(&journal.entries);
        let (last, now) = (signed.last(), self.revision.as_deref());
        if self.resume == ResumePolicy::AnyRevision || self.migrate.is_some() || last == now {
            return Ok(());
        }
        let [last, now] = [last, now].map(|revision| revision.unwrap_or("(unnamed)"));
        Err(format!(
            "incompatible handler revision: the task was started by revision `{last}`, and this is \
             `{now}`; deploy that revision, or set `migrate_journal`"
        ))
    }

    /// Migrates the journal of a task. Returns a marker that records the takeover by this revision,
    /// to be written before other entries, and the entries of other revisions.
    pub(crate) fn resume(
        &self,
        journal: &mut JournalSnapshot,
    ) -> (Option<(String, RawJson)>, ForeignEntries) {
        let signed = Signed::read(&journal.entries);
        journal.entries.retain(|key, _| !key.starts_with(REVISION));
        let is_new = signed.last() != self.revision.as_deref() && !journal.entries.is_empty();
        let mark = is_new.then(|| Mark {
            revision: self.revision.clone(),
            before: journal.entries.keys().cloned().collect(),
        });
        let mut foreign = ForeignEntries::new();
        for (key, entry) in &mut journal.entries {
            let from = signed.revision_of(key);
            if from == self.revision.as_deref() {
                continue;
            }
            foreign.insert(key.clone(), from.unwrap_or_default().into());
            if let Some(migrate) = &self.migrate {
                change(migrate, from, key, entry);
            }
        }
        let raw = mark.and_then(|mark| to_raw_value(&mark).ok());
        let mark = raw.map(|raw| (format!("{REVISION}#{}", signed.marks.len() + 1), raw));
        (mark, foreign)
    }

    /// Returns the entries of a journal that another revision recorded as a whole.
    pub(crate) fn foreign(&self, journal: &JournalSnapshot, from: Option<&str>) -> ForeignEntries {
        if from == self.revision.as_deref() {
            return ForeignEntries::new();
        }
        let from: Arc<str> = from.unwrap_or_default().into();
        journal.entries.keys().map(|key| (key.clone(), Arc::clone(&from))).collect()
    }
}

/// Migrates journal entries of another handler revision.
pub(crate) fn migrated(
    mut journal: JournalSnapshot,
    from: Option<&str>,
    upgrade: &ReplayPolicy,
) -> JournalSnapshot {
    let Some(migrate) = &upgrade.migrate else { return journal };
    if from == upgrade.revision.as_deref() {
        return journal;
    }
    for (key, entry) in &mut journal.entries {
        change(migrate, from, key, entry);
    }
    journal
}

fn change(migrate: &Migrate, from: Option<&str>, key: &str, entry: &mut JournalEntry) {
    if let JournalEntry::Value(raw)
    | JournalEntry::Secret(raw)
    | JournalEntry::Answer(raw)
    | JournalEntry::State(raw) = entry
        && let Some(changed) = migrate(from.unwrap_or_default(), key, raw)
    {
        *raw = changed;
    }
}

/// Journal key of the revision that started a task. Keys with a number appended hold the revisions
/// that resumed it. Keys of authors never have this prefix. Journal entries are immutable, so the
/// markers identify the revision that recorded each entry.
const REVISION: &str = "#revision";

/// Marker of a revision that resumed a task.
#[derive(Serialize, Deserialize)]
struct Mark {
    revision: Option<Arc<str>>,
    /// Keys that earlier revisions had recorded.
    before: BTreeSet<String>,
}

/// Revisions that ran a task.
struct Signed {
    first: Option<Arc<str>>,
    marks: Vec<Mark>,
}

impl Signed {
    fn read(entries: &BTreeMap<String, JournalEntry>) -> Self {
        fn state<T: DeserializeOwned>(
            entries: &BTreeMap<String, JournalEntry>,
            key: &str,
        ) -> Option<T> {
            match entries.get(key)? {
                JournalEntry::State(raw) => serde_json::from_str(raw.get()).ok(),
                _ => None,
            }
        }
        let marks = (1..).map_while(|number: u32| state(entries, &format!("{REVISION}#{number}")));
        Self { first: state(entries, REVISION), marks: marks.collect() }
    }

    /// Returns the revision that ran the task last.
    fn last(&self) -> Option<&str> {
        self.marks.last().map_or(&self.first, |mark| &mark.revision).as_deref()
    }

    /// Returns the revision that recorded the entry of `key`.
    fn revision_of(&self, key: &str) -> Option<&str> {
        let mut revision = &self.first;
        for mark in &self.marks {
            if mark.before.contains(key) {
                break;
            }
            revision = &mark.revision;
        }
        revision.as_deref()
    }
}
