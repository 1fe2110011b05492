//! The inbox of a person: open input requests, and those that the person settled.

use std::collections::HashMap;

use outlive_tasks::store::{Audience, InboxCursor, InboxItem};
use outlive_wire::InputRequest;
use serde_json::value::RawValue;

use super::{
    arguments::{ShownArgument, raw, shown},
    error::PeopleError,
    roles::Visitor,
    state::{MAX_PAGE, People},
};

/// Largest number that [`People::inbox_count`] counts to.
const MAX_COUNT: usize = 100;

/// A page of an inbox.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InboxPage {
    /// Open input requests, oldest first.
    pub items: Vec<InboxEntry>,
    /// Position to continue from; `None` at the end of the inbox.
    pub next: Option<InboxCursor>,
}

/// An input request in an inbox.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InboxEntry {
    /// The input request, without its call.
    pub item: InboxItem,
    /// Number of equal calls on this page, with this one. Each is decided by itself.
    pub equal: usize,
    /// Whether the task belongs to the visitor.
    pub is_own: bool,
    /// Whether the visitor may see the contents. If not, `item` has no request.
    pub shows_contents: bool,
    /// Arguments of the call; empty if the visitor may not see them.
    pub arguments: Vec<ShownArgument>,
}

impl InboxEntry {
    /// Creates an entry without arguments.
    pub fn new(item: InboxItem) -> Self {
        Self { item, equal: 1, is_own: false, shows_contents: true, arguments: Vec::new() }
    }
}

impl People {
    /// Returns the open input requests of the visitor, oldest first, after a cursor: those of own
    /// tasks and those addressed to the person. Viewers and operators see all.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn inbox(
        &self,
        visitor: &Visitor,
        after: Option<&InboxCursor>,
        limit: usize,
    ) -> Result<InboxPage, PeopleError> {
        let Some(reader) = visitor.inbox_reader() else { return Ok(InboxPage::default()) };
        let limit = limit.clamp(1, MAX_PAGE);
        let mut items = self.store().open_for(&reader, after, limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items
            .last()
            .filter(|_| more)
            .map(|last| InboxCursor::new(last.opened_at, last.task.clone(), last.name.clone()));
        Ok(InboxPage { items: self.entries(visitor, items), next })
    }

    /// Returns the last input requests that the person voted on, newest vote first.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn settled(
        &self,
        visitor: &Visitor,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, PeopleError> {
        let reader = visitor.inbox_reader();
        let Some(person) = reader.and_then(|reader| reader.person) else { return Ok(Vec::new()) };
        let items = self.store().voted_by(&person, limit.clamp(1, MAX_PAGE)).await?;
        Ok(self.entries(visitor, items))
    }

    /// Returns the number of open input requests of the visitor, at most 100.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn inbox_count(&self, visitor: &Visitor) -> Result<usize, PeopleError> {
        let Some(reader) = visitor.inbox_reader() else { return Ok(0) };
        Ok(self.store().count_open(&reader, MAX_COUNT).await?)
    }

    fn entries(&self, visitor: &Visitor, mut items: Vec<InboxItem>) -> Vec<InboxEntry> {
        items.retain(|item| is_visible(visitor, item));
        let mut equal: HashMap<(String, String), usize> = HashMap::new();
        items.iter().for_each(|item| *equal.entry(identity(item)).or_default() += 1);
        let entries = items.into_iter().map(|mut item| {
            let shows_contents = visitor.sees_request_contents(&item);
            let equal = equal.get(&identity(&item)).copied().unwrap_or(1);
            let arguments = match shows_contents {
                true => shown(self.tool(&item.tool).as_ref(), &item.call),
                false => Vec::new(),
            };
            let is_own = visitor.owns_request(&item);
            hide(&mut item, shows_contents);
            hide_people(visitor, &mut item.audience);
            InboxEntry { item, equal, is_own, shows_contents, arguments }
        });
        entries.collect()
    }
}

/// Returns whether an MCP token may see a request. Other visitors see what the store returns.
fn is_visible(visitor: &Visitor, item: &InboxItem) -> bool {
    visitor.only_principal().is_none_or(|principal| item.principal == principal)
}

/// Returns what equal calls have in common.
fn identity(item: &InboxItem) -> (String, String) {
    let what = match &item.binding {
        Some(binding) => binding.digest.clone(),
        None => raw(&item.call).map(|it| it.get().to_owned()).unwrap_or_default(),
    };
    (item.tool.clone(), what)
}

/// Removes the call of an input request, which may have secrets, and the request if its contents are
/// hidden.
pub(super) fn hide(item: &mut InboxItem, shows_contents: bool) {
    item.call = RawValue::NULL.to_owned();
    if !shows_contents {
        item.request = InputRequest::Unknown(RawValue::NULL.to_owned());
    }
}

/// Removes the people of an audience for an MCP token: an agent does not learn who approves.
pub(super) fn hide_people(visitor: &Visitor, audience: &mut Audience) {
    if visitor.only_principal().is_some() && audience.is_people() {
        *audience = Audience::Names(Vec::new());
    }
}
