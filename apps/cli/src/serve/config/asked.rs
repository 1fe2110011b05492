//! Keys that the reader requested, for the JSON Schema of the file.

use super::reader::Key;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Keys of each section, collected while a file is read. Tests compare the documentation with them.
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
