//! Which keys of the file were read, for the JSON Schema of it.

use super::reader::Key;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Which keys a section may have, gathered while a file is read; the page about them is checked
/// against it.
#[derive(Debug, Default)]
pub(crate) struct Asked(pub(crate) BTreeMap<&'static str, BTreeMap<&'static str, Json>>);

impl Asked {
    pub(crate) fn note(&mut self, section: &'static str, keys: Vec<Key>) {
        let known = self.0.entry(section).or_default();
        for Key { name, schema } in keys {
            known.entry(name).or_insert(schema);
        }
    }
}
