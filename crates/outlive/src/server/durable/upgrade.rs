//! What another version of a handler has recorded, and how it is brought up to date.

use std::sync::Arc;

use outlive_tasks::{Entry, Restored};
use outlive_wire::RawJson;
use serde_json::value::RawValue;

use super::salient::Salient;

/// Changes what an earlier revision of a handler has recorded, key by key.
pub(in crate::server) type Migrate =
    Arc<dyn Fn(&str, &str, &RawValue) -> Option<RawJson> + Send + Sync>;

/// What the registration of a handler says about its rounds.
#[derive(Clone, Default)]
pub(in crate::server) struct Upgrade {
    pub(in crate::server) revision: Option<Arc<str>>,
    pub(in crate::server) migrate: Option<Migrate>,
    pub(in crate::server) salient: Salient,
    pub(in crate::server) single_use: bool,
}

impl Upgrade {
    /// Nothing is said.
    pub(in crate::server) const NONE: Self =
        Self { revision: None, migrate: None, salient: None, single_use: false };
}

/// Brings what another revision has recorded up to date.
pub(super) fn migrated(mut journal: Restored, from: Option<&str>, upgrade: &Upgrade) -> Restored {
    let Some(migrate) = &upgrade.migrate else { return journal };
    if from == upgrade.revision.as_deref() {
        return journal;
    }
    for (key, entry) in &mut journal.entries {
        if let Entry::Value(raw) | Entry::Answer(raw) | Entry::State(raw) = entry
            && let Some(changed) = migrate(from.unwrap_or_default(), key, raw)
        {
            *raw = changed;
        }
    }
    journal
}
