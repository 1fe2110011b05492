//! What another version of a handler has recorded, and how it is brought up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use outlive_tasks::{JournalEntry, JournalSnapshot};
use outlive_wire::RawJson;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::run::bound_args::BoundArgs;

/// Changes what an earlier revision of a handler has recorded, key by key.
pub(crate) type Migrate = Arc<dyn Fn(&str, &str, &RawValue) -> Option<RawJson> + Send + Sync>;

/// What the registration of a handler says about its rounds.
#[derive(Clone, Default)]
pub(crate) struct ReplayPolicy {
    pub(crate) revision: Option<Arc<str>>,
    pub(crate) migrate: Option<Migrate>,
    pub(crate) bound_args: BoundArgs,
    pub(crate) single_use: bool,
    pub(crate) resume: ResumePolicy,
}

/// Which revisions of its handler may go on with a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum ResumePolicy {
    /// Any: what it asks for and finds is read back, what it does not find is done.
    #[default]
    AnyRevision,
    /// The one that has begun it, and one that can [`migrate`](crate::server::Tool::migrate_journal) what
    /// another has recorded. Under any other the task fails.
    SameRevision,
}

impl ReplayPolicy {
    /// Nothing is said.
    pub(crate) const NONE: Self = Self {
        revision: None,
        migrate: None,
        bound_args: None,
        single_use: false,
        resume: ResumePolicy::AnyRevision,
    };

    /// Writes down who begins a task.
    pub(crate) fn sign(&self, journal: &mut JournalSnapshot) {
        let revision = self.revision.as_ref().and_then(|revision| to_raw_value(revision).ok());
        journal.entries.extend(revision.map(|raw| (REVISION.to_owned(), JournalEntry::State(raw))));
    }

    /// Whether this revision may go on with a task.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn may_resume(&self, journal: &JournalSnapshot) -> Result<(), String> {
        let signed = Signed::read(&journal.entries);
        let (last, now) = (signed.last(), self.revision.as_deref());
        if self.resume == ResumePolicy::AnyRevision || self.migrate.is_some() || last == now {
            return Ok(());
        }
        let [last, now] = [last, now].map(|revision| revision.unwrap_or("without a name"));
        Err(format!(
            "incompatible version: it was begun by revision `{last}` of this tool, and this is \
             `{now}`; run that one, or migrate what it has recorded"
        ))
    }

    /// Brings the journal of a task up to date. Returns what is to be written down before more is
    /// recorded: that it is this revision's from now on.
    pub(crate) fn resume(&self, journal: &mut JournalSnapshot) -> Option<(String, RawJson)> {
        let signed = Signed::read(&journal.entries);
        journal.entries.retain(|key, _| !key.starts_with(REVISION));
        let is_new = signed.last() != self.revision.as_deref() && !journal.entries.is_empty();
        let mark = is_new.then(|| Mark {
            revision: self.revision.clone(),
            before: journal.entries.keys().cloned().collect(),
        });
        if let Some(migrate) = &self.migrate {
            for (key, entry) in &mut journal.entries {
                let from = signed.revision_of(key);
                if from != self.revision.as_deref() {
                    change(migrate, from, key, entry);
                }
            }
        }
        let raw = to_raw_value(&mark?).ok()?;
        Some((format!("{REVISION}#{}", signed.marks.len() + 1), raw))
    }
}

/// Brings what another revision has recorded up to date.
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

/// Where the journal of a task says which revision has begun it, and with a number behind it which
/// has gone on. No key of an author's begins so. What a store has recorded never changes, so each
/// value has to be told apart by who has recorded it.
const REVISION: &str = "#revision";

/// That another revision has gone on with a task.
#[derive(Serialize, Deserialize)]
struct Mark {
    revision: Option<Arc<str>>,
    /// What was there before it.
    before: BTreeSet<String>,
}

/// The revisions that have worked on a task.
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

    /// Who has worked on it last.
    fn last(&self) -> Option<&str> {
        self.marks.last().map_or(&self.first, |mark| &mark.revision).as_deref()
    }

    /// Who has recorded this.
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
