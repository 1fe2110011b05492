//! The audit log as people read it: newest first, filtered.

use std::collections::HashSet;

use outlive_tasks::store::{
    AuditEvent, AuditRecord, IndexedTask, MAX_SEARCHED, TaskId, TaskQuery, UnixMillis,
};

use super::{
    error::PeopleError,
    roles::Visitor,
    state::{MAX_PAGE, People},
    tasks::scoped,
};
use crate::server::name_in_audit;

/// Number of events that one statement reads.
const BATCH: u64 = 1_000;

/// Maximum number of events of one task.
const MAX_TASK_EVENTS: usize = 1_000;

/// Number of a person's newest tasks whose events the person sees in the whole log.
const MAX_OWN_TASKS: usize = 1_000;

/// Conditions of a list of audit events. An event matches if all given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "conditions that a page fills in")]
pub struct AuditFilter {
    /// Principal that performed the action, or its person.
    pub actor: Option<String>,
    /// Action.
    pub action: Option<String>,
    /// Task.
    pub task: Option<TaskId>,
    /// Name of a bulk action.
    pub name: Option<String>,
}

/// A page of the audit log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AuditPage {
    /// Matching events, newest first.
    pub records: Vec<AuditRecord>,
    /// Number to continue before; `None` at the end of the log.
    pub next: Option<u64>,
    /// Time of the oldest checked event, if the page ended because it checked 20,000 events.
    pub searched_to: Option<UnixMillis>,
}

impl People {
    /// Returns audit events that match a filter, newest first, before a number. Viewers and
    /// operators see all events, other persons those of their newest 1,000 tasks.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the filter names a task that the visitor does not
    /// have, [`Forbidden`](PeopleError::Forbidden) for an MCP token.
    pub async fn audit(
        &self,
        visitor: &Visitor,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage, PeopleError> {
        let limit = limit.clamp(1, MAX_PAGE);
        if let Some(task) = &filter.task {
            let task = self.find_task(visitor, task).await?;
            visitor.require_person()?;
            let events = self.events_of(&task).await?;
            return Ok(AuditPage::of_task(events, filter, before, limit));
        }
        visitor.require_person()?;
        let own = match visitor.sees_all() {
            true => None,
            false => Some(self.own_tasks(visitor).await?),
        };
        let matches = |event: &AuditEvent| {
            own.as_ref().is_none_or(|own| own.contains(&event.task)) && filter.matches(event)
        };
        let newest = match before {
            Some(before) => before.saturating_sub(1),
            None => self.find_newest_event().await?,
        };
        self.search(newest, limit, matches).await
    }

    /// Returns the latest events of a task, oldest first.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task,
    /// [`Forbidden`](PeopleError::Forbidden) for an MCP token.
    pub async fn task_audit(
        &self,
        visitor: &Visitor,
        id: &TaskId,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        visitor.require_person()?;
        self.events_of(&task).await
    }

    /// Records that the visitor signed in to the console.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn signed_in(&self, visitor: &Visitor) -> Result<(), PeopleError> {
        let by = visitor.person().unwrap_or("an operator");
        let reason = format!("by {by}, {}", visitor.channel().as_str());
        let event = AuditEvent::new("", visitor.actor(), "signed-in").reason(Some(reason));
        self.record(vec![event]).await
    }

    /// Returns the latest events of a task that the visitor sees, oldest first.
    pub(super) async fn events_of(
        &self,
        task: &IndexedTask,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let name = name_in_audit(&task.summary.principal, task.summary.view.id.as_str());
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let page = self.store().read(Some(&name), after, MAX_TASK_EVENTS).await?;
            let Some(last) = page.last() else { return Ok(events) };
            after = last.number;
            events.extend(page);
            // Polls are events too, so the latest events are more useful than the first.
            let more = events.len().saturating_sub(MAX_TASK_EVENTS);
            events.drain(..more);
        }
    }

    /// Returns the names of the visitor's newest tasks in the audit log.
    async fn own_tasks(&self, visitor: &Visitor) -> Result<HashSet<String>, PeopleError> {
        let mut own = HashSet::new();
        let Some(query) = scoped(visitor, &TaskQuery::default()) else { return Ok(own) };
        let mut after = None;
        while own.len() < MAX_OWN_TASKS {
            let page = self.store().page(&query, after.as_ref(), MAX_PAGE).await?;
            let visible = page.tasks.iter().filter(|task| visitor.sees_task(task));
            own.extend(
                visible.map(|task| {
                    name_in_audit(&task.summary.principal, task.summary.view.id.as_str())
                }),
            );
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        Ok(own)
    }

    /// Returns the number of the newest event; zero for an empty log.
    ///
    /// The log reads forward only, so the number is found by bisection. "An event exists after N"
    /// is monotonic even where numbers are missing. The search starts at the last result, so most
    /// searches read once or twice.
    async fn find_newest_event(&self) -> Result<u64, PeopleError> {
        let (mut known, mut step) = (self.newest_event(), 1);
        let mut free = loop {
            match self.event_after(known.saturating_add(step - 1)).await? {
                Some(number) => {
                    known = number;
                    step *= 2;
                }
                None if step == 1 => {
                    self.know_event(known);
                    return Ok(known);
                }
                None => break known + step,
            }
        };
        // No event has the number `free` or a larger one.
        while known + 1 < free {
            let middle = known + (free - known) / 2;
            match self.event_after(middle - 1).await? {
                Some(number) => known = number,
                None => free = middle,
            }
        }
        self.know_event(known);
        Ok(known)
    }

    async fn event_after(&self, number: u64) -> Result<Option<u64>, PeopleError> {
        let found = self.store().read(None, number, 1).await?;
        Ok(found.first().map(|event| event.number))
    }

    /// Reads events backwards from `newest`, until `limit` match or 20,000 were checked.
    async fn search(
        &self,
        newest: u64,
        limit: usize,
        matches: impl Fn(&AuditEvent) -> bool,
    ) -> Result<AuditPage, PeopleError> {
        let mut page = AuditPage::default();
        let Some(oldest) = self.event_after(0).await? else { return Ok(page) };
        let next = |upper: u64| (upper >= oldest).then_some(upper + 1);
        let (mut upper, mut checked, mut batch) = (newest, 0, BATCH.min(limit as u64 + 1));
        while upper >= oldest && checked < MAX_SEARCHED {
            let lower = upper.saturating_sub(batch);
            let count = usize::try_from(upper - lower).unwrap_or(usize::MAX);
            let mut records = self.store().read(None, lower, count).await?;
            records.retain(|record| record.number <= upper);
            // Numbers without events are skipped in growing batches.
            let max_batch = if records.is_empty() { MAX_SEARCHED as u64 } else { BATCH };
            for record in records.into_iter().rev() {
                checked += 1;
                upper = record.number - 1;
                page.searched_to = Some(record.at);
                if matches(&record.event) {
                    page.records.push(record);
                }
                if page.records.len() == limit {
                    page.searched_to = None;
                    page.next = next(upper);
                    return Ok(page);
                }
            }
            (upper, batch) = (lower, (batch * 2).min(max_batch));
        }
        page.next = next(upper);
        page.searched_to = page.searched_to.filter(|_| page.next.is_some());
        Ok(page)
    }
}

impl AuditFilter {
    fn matches(&self, event: &AuditEvent) -> bool {
        let Self { actor, action, task: _, name } = self;
        let is_actor = |actor: &String| {
            let principal = event.principal.as_str();
            principal == actor || principal.split_once(':').is_some_and(|(_, it)| it == actor)
        };
        actor.as_ref().is_none_or(is_actor)
            && action.as_ref().is_none_or(|action| event.action == *action)
            && name.as_ref().is_none_or(|name| bulk_name(event) == Some(name.as_str()))
    }
}

impl AuditPage {
    /// Returns a page of the events of one task.
    fn of_task(
        events: Vec<AuditRecord>,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Self {
        let mut records: Vec<AuditRecord> = events.into_iter().rev().collect();
        records.retain(|it| before.is_none_or(|before| it.number < before));
        records.retain(|it| filter.matches(&it.event));
        let more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| more).map(|last| last.number);
        Self { records, next, searched_to: None }
    }
}

/// Returns the reason of an event that belongs to a bulk action. The name has no colon.
pub(super) fn bulk_reason(name: &str, details: &str) -> String {
    match details.is_empty() {
        true => format!("{BULK}{name}"),
        false => format!("{BULK}{name}: {details}"),
    }
}

/// Returns the name of the bulk action that an event belongs to.
pub fn bulk_name(event: &AuditEvent) -> Option<&str> {
    let rest = event.reason.as_deref()?.strip_prefix(BULK)?;
    Some(rest.split_once(": ").map_or(rest, |(name, _)| name))
}

const BULK: &str = "bulk action ";
