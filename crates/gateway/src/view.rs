//! A view: the joined lists of all upstreams for one capability class, and for one principal if
//! credentials belong to it.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use outlive::{
    client::relay::CapabilityClass,
    server::{
        Scopes,
        catalog::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
    },
};

use crate::names::{UriTemplate, qualified, split_qualified};

/// Clients that see the same lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ViewKey {
    pub(crate) class: CapabilityClass,
    /// Whether the caller is anonymous on an open listener.
    pub(crate) is_unrelated: bool,
    /// Key of the principal, if a credential for an upstream belongs to it.
    pub(crate) principal: Option<Arc<str>>,
}

/// The joined lists of all upstreams.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) generation: u64,
    /// Upstreams whose lists are missing.
    pub(crate) missing: Vec<Arc<str>>,
    pub(crate) tools: Joined<ShownTool>,
    pub(crate) prompts: Joined<PromptEntry>,
    pub(crate) resources: Joined<ShownResource>,
    pub(crate) templates: Joined<TemplateEntry>,
    pub(crate) readers: Vec<Reader>,
}

/// Items of a list in their order, by the name under which clients see them.
#[derive(Debug)]
pub(crate) struct Joined<T> {
    items: Vec<(Arc<str>, T)>,
    by_name: HashMap<Arc<str>, usize>,
}

/// A tool in a view.
#[derive(Clone, Debug)]
pub(crate) struct ShownTool {
    pub(crate) entry: ToolEntry,
    /// Whether it is listed also with search.
    pub(crate) is_eager: bool,
    /// Scopes that a principal needs.
    pub(crate) scopes: Scopes,
}

/// A resource in a view.
#[derive(Clone, Debug)]
pub(crate) struct ShownResource {
    pub(crate) entry: ResourceEntry,
    /// Place of its upstream among the readers.
    pub(crate) reader: usize,
}

/// An upstream with resources.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) upstream: Arc<str>,
    /// Reads any URI of the upstream.
    pub(crate) entry: ResourceEntry,
    pub(crate) templates: Vec<UriTemplate>,
}

impl<T> Default for Joined<T> {
    fn default() -> Self {
        Self { items: Vec::new(), by_name: HashMap::new() }
    }
}

impl<T> Joined<T> {
    /// Adds an item, unless the name is taken.
    pub(crate) fn push(&mut self, name: &str, item: T) {
        let name: Arc<str> = name.into();
        if !self.by_name.contains_key(&name) {
            self.by_name.insert(Arc::clone(&name), self.items.len());
            self.items.push((name, item));
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.by_name.get(name).map(|at| &self.items[*at].1)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.items.iter().map(|(name, item)| (&**name, item))
    }

    /// Returns the items of a page, and the position after it.
    ///
    /// A position has the name of the last item, and its place in case the item is gone.
    pub(crate) fn page<U>(
        &self,
        after: Option<&str>,
        max: usize,
        show: impl Fn(&T) -> Option<U>,
    ) -> (Vec<U>, Option<String>) {
        let start = after.map_or(0, |after| self.place_after(after));
        let mut shown = Vec::new();
        for (at, (name, item)) in self.items.iter().enumerate().skip(start) {
            shown.extend(show(item));
            if shown.len() >= max && at + 1 < self.items.len() {
                let name: String = name.chars().take(200).collect();
                return (shown, Some(format!("{at} {name}")));
            }
        }
        (shown, None)
    }

    fn place_after(&self, after: &str) -> usize {
        let (place, name) = after.split_once(' ').unwrap_or((after, ""));
        match self.by_name.get(name) {
            Some(at) => at + 1,
            None => place.parse::<usize>().map_or(0, |place| place.saturating_add(1)),
        }
    }
}

impl Reader {
    /// Returns whether a template of the upstream has the URI.
    fn fits(&self, uri: &str) -> bool {
        self.templates.iter().any(|template| template.fits(uri))
    }
}

impl View {
    /// Finds the entry that reads a URI, as clients see it. While lists are missing, a URI without an
    /// owner may belong to their upstreams.
    pub(crate) fn reader(&self, uri: &str) -> Option<&ResourceEntry> {
        if let Some(listed) = self.resources.get(uri) {
            return Some(&listed.entry);
        }
        let is_certain = |reader: &&Reader| {
            let is_named = split_qualified(uri).is_some_and(|(name, _)| *name == *reader.upstream);
            is_named || self.missing.is_empty() || reader.fits(uri)
        };
        self.unlisted_reader(uri).filter(is_certain).map(|reader| &reader.entry)
    }

    /// Finds the entry that reads a URI as [`View::reader`] does, among the upstreams that are listed.
    pub(crate) fn listed_reader(&self, uri: &str) -> Option<&ResourceEntry> {
        match self.resources.get(uri) {
            Some(listed) => Some(&listed.entry),
            None => self.unlisted_reader(uri).map(|reader| &reader.entry),
        }
    }

    /// Finds the upstream of a URI that no list has, as clients see it.
    fn unlisted_reader(&self, uri: &str) -> Option<&Reader> {
        let Some((name, _)) = split_qualified(uri) else { return self.unlisted(uri) };
        let named = self.readers.iter().find(|reader| *reader.upstream == *name);
        // Another upstream must not get the URI while the named one is not listed.
        let is_missing = self.missing.iter().any(|missing| **missing == *name);
        named.or_else(|| self.unlisted(uri).filter(|_| !is_missing))
    }

    /// Returns the name of the upstream that a URI identifies, as clients see it.
    pub(crate) fn upstream_of(&self, uri: &str) -> Option<&str> {
        let reader = match self.resources.get(uri) {
            Some(listed) => self.readers.get(listed.reader),
            None => self.unlisted_reader(uri),
        };
        reader.map(|reader| &*reader.upstream)
    }

    /// Finds the upstream of a URI that no list has.
    fn unlisted(&self, uri: &str) -> Option<&Reader> {
        let fitting = self.readers.iter().find(|reader| reader.fits(uri));
        match (fitting, self.readers.as_slice()) {
            (Some(reader), _) => Some(reader),
            (None, [only]) => Some(only),
            _ => None,
        }
    }

    /// Returns the form of an upstream's URI that clients see.
    pub(crate) fn shown_uri<'a>(&self, upstream: &str, uri: &'a str) -> Cow<'a, str> {
        let owner = match self.resources.get(uri) {
            Some(listed) => self.readers.get(listed.reader),
            None => self.unlisted(uri),
        };
        match owner {
            Some(reader) if *reader.upstream == *upstream && !is_own(uri) => Cow::Borrowed(uri),
            _ => Cow::Owned(qualified(upstream, uri)),
        }
    }

    /// Returns the form of the URI of a tool's view that clients see, if it is another one.
    pub(crate) fn changed_ui_uri(&self, upstream: &str, uri: &str) -> Option<String> {
        // Nothing reads a resource of an upstream that lists none.
        let is_reader = self.readers.iter().any(|reader| *reader.upstream == *upstream);
        match self.shown_uri(upstream, uri) {
            Cow::Owned(shown) if is_reader => Some(shown),
            _ => None,
        }
    }

    /// Returns whether every URI identifies its upstream.
    pub(crate) fn keeps_uris(&self) -> bool {
        self.readers.len() <= 1
    }
}

/// Returns whether a URI belongs to the server's own templates.
pub(crate) fn is_own(uri: &str) -> bool {
    uri.starts_with("outlive://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_continues_after_its_last_item_also_if_items_are_gone() {
        let mut list = Joined::default();
        for name in ["a", "b", "c", "d"] {
            list.push(name, name);
        }
        let (first, next) = list.page(None, 2, |item| Some(*item));
        assert_eq!(first, ["a", "b"]);
        let next = next.unwrap();
        assert_eq!(list.page(Some(&next), 2, |item| Some(*item)), (vec!["c", "d"], None));
        let mut changed = Joined::default();
        for name in ["b", "new", "c"] {
            changed.push(name, name);
        }
        assert_eq!(changed.page(Some(&next), 9, |item| Some(*item)).0, ["new", "c"]);
        assert_eq!(list.page(None, 9, |item| (*item != "b").then_some(*item)).0, ["a", "c", "d"]);
    }
}
