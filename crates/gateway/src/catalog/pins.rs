//! Pins: the definitions of tools that are accepted. A changed definition can deceive a model.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use outlive::client::relay::CapabilityClass;
use serde::{Deserialize, Serialize};

use super::{
    definitions::{Definitions, Digest},
    stored::{StoredCatalogs, pins_key},
};

/// Accepted definitions of one tool: one per capability class, and older ones.
const MAX_DIGESTS: usize = 16;

/// The pins of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    pinned: Pinned,
    is_loaded: bool,
    /// Tools whose definition is not accepted, with its digest.
    changed: BTreeMap<String, String>,
}

/// Pins as they are stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pinned {
    /// Accepted digests by tool, newest last.
    tools: BTreeMap<String, Vec<String>>,
    /// Capability classes whose first list was pinned.
    classes: Vec<u8>,
}

impl Pins {
    /// Reads the pins from the store, once.
    pub(crate) async fn load(&self, stored: &StoredCatalogs, upstream: &str) {
        if self.lock().is_loaded {
            return;
        }
        let read = stored.read(&pins_key(upstream)).await;
        let mut inner = self.lock();
        if !inner.is_loaded {
            inner.is_loaded = true;
            inner.pinned = read.unwrap_or_default();
        }
    }

    /// Compares definitions with the pins. The first list of a capability class is pinned as it is:
    /// definitions may depend on the class. Returns whether the pins changed.
    pub(crate) fn compare(&self, class: CapabilityClass, definitions: &Definitions) -> bool {
        let mut inner = self.lock();
        let is_first = !inner.pinned.classes.contains(&class.bits());
        if is_first {
            inner.pinned.classes.push(class.bits());
        }
        let mut is_changed = is_first;
        let is_first_of_all = is_first && inner.pinned.classes.len() == 1;
        for (tool, digest) in definitions.tools.iter().zip(definitions.tool_digests()) {
            let digest = hex(digest);
            let known = inner.pinned.tools.get(&tool.name);
            let is_accepted = known.is_some_and(|known| known.contains(&digest));
            if is_accepted {
                inner.changed.remove(&tool.name);
                continue;
            }
            // A new tool is like a changed one, unless it is in the first list.
            if is_first_of_all || (is_first && known.is_some()) {
                accept(&mut inner.pinned, &tool.name, digest);
                is_changed = true;
            } else {
                inner.changed.insert(tool.name.clone(), digest);
            }
        }
        is_changed
    }

    /// Accepts the current definitions of one tool or of all tools. Returns their names.
    pub(crate) fn accept(&self, tool: Option<&str>) -> Vec<String> {
        let mut inner = self.lock();
        let names: Vec<String> = inner
            .changed
            .keys()
            .filter(|name| tool.is_none_or(|tool| tool == *name))
            .cloned()
            .collect();
        for name in &names {
            if let Some(digest) = inner.changed.remove(name) {
                accept(&mut inner.pinned, name, digest);
            }
        }
        names
    }

    /// Writes the pins to the store.
    pub(crate) async fn save(&self, stored: &StoredCatalogs, upstream: &str) {
        let pinned = self.lock().pinned.clone();
        stored.write(&pins_key(upstream), &pinned).await;
    }

    /// Returns the tools whose definition is not accepted.
    pub(crate) fn changed(&self) -> Vec<String> {
        self.lock().changed.keys().cloned().collect()
    }

    pub(crate) fn is_changed(&self, tool: &str) -> bool {
        self.lock().changed.contains_key(tool)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(pinned: &mut Pinned, tool: &str, digest: String) {
    let digests = pinned.tools.entry(tool.to_owned()).or_default();
    digests.push(digest);
    if digests.len() > MAX_DIGESTS {
        digests.remove(0);
    }
}

fn hex(digest: &Digest) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[(&str, &str)]) -> Definitions {
        let tools = tools.iter().map(|(name, description)| {
            serde_json::from_value(serde_json::json!({
                "name": name, "description": description, "inputSchema": {"type": "object"}
            }))
            .unwrap()
        });
        Definitions { tools: tools.collect(), ..Definitions::default() }
    }

    #[test]
    fn first_list_is_pinned_and_later_changes_are_reported_until_accepted() {
        let pins = Pins::default();
        let none = CapabilityClass::NONE;
        assert!(pins.compare(none, &list(&[("read", "a")])));
        assert!(pins.changed().is_empty());
        pins.compare(none, &list(&[("read", "b"), ("write", "c")]));
        assert_eq!(pins.changed(), ["read", "write"]);
        pins.compare(none, &list(&[("read", "a"), ("write", "c")]));
        assert_eq!(pins.changed(), ["write"]);
        assert_eq!(pins.accept(Some("write")), ["write"]);
        assert!(!pins.is_changed("write"));
    }

    #[test]
    fn known_tool_in_the_first_list_of_another_class_is_pinned() {
        let pins = Pins::default();
        pins.compare(CapabilityClass::NONE, &list(&[("read", "a")]));
        pins.compare(CapabilityClass::FORM, &list(&[("read", "with a form")]));
        assert!(pins.changed().is_empty());
    }
}
