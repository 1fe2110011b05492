//! [`TaskIndex`] of the memory store.

use super::{
    input_row::InputRow,
    row::{EntryTime, Row},
    state::{MemoryStore, done},
    table::Tasks,
};
use crate::{
    JournalEntry,
    store::{
        EntryKind, IndexedTask, JournalCursor, JournalItem, ListCursor, MAX_SEARCHED, StoreFuture,
        TaskCount, TaskId, TaskIndex, TaskOutcome, TaskPage, TaskQuery, TaskState, TimelineEntry,
    },
};

impl TaskIndex for MemoryStore {
    fn page<'a>(
        &'a self,
        query: &'a TaskQuery,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, TaskPage> {
        let tasks = self.lock();
        let (mut page, mut checked) = (TaskPage::default(), None);
        for (searched, (id, row)) in tasks.searched(query, after).enumerate() {
            if page.tasks.len() == limit || searched == MAX_SEARCHED {
                let is_full = page.tasks.len() == limit;
                page.searched_to =
                    checked.as_ref().filter(|_| !is_full).map(|last: &ListCursor| last.created);
                page.next = checked;
                break;
            }
            if row.matches(query) {
                page.tasks.push(row.indexed_task(id));
            }
            checked = Some(ListCursor::new(row.created, id.clone()));
        }
        done(Ok(page))
    }

    fn count<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> StoreFuture<'a, TaskCount> {
        let tasks = self.lock();
        let mut counted = TaskCount::default();
        for (searched, (_, row)) in tasks.searched(query, None).enumerate() {
            if counted.count == limit || searched == MAX_SEARCHED {
                counted.more = true;
                break;
            }
            counted.count += usize::from(row.matches(query));
        }
        done(Ok(counted))
    }

    fn task<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<IndexedTask>> {
        done(Ok(self.lock().get(task).map(|row| row.indexed_task(task))))
    }

    fn journal<'a>(
        &'a self,
        task: &'a TaskId,
        after: Option<&'a JournalCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalItem>> {
        let tasks = self.lock();
        let recorded = tasks.get(task).map(Row::recorded).unwrap_or_default().into_iter();
        let is_after = |(key, _, time): &(&String, &JournalEntry, EntryTime)| {
            after.is_none_or(|after| (time.recorded_at, *key) > (after.recorded_at, &after.key))
        };
        let page = recorded.filter(is_after).take(limit).map(|(key, entry, time)| JournalItem {
            key: key.clone(),
            entry: entry.clone(),
            recorded_at: time.recorded_at,
            duration: time.duration,
        });
        done(Ok(page.collect()))
    }

    fn timeline<'a>(
        &'a self,
        task: &'a TaskId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TimelineEntry>> {
        let tasks = self.lock();
        let recorded = tasks.get(task).map(Row::recorded).unwrap_or_default().into_iter();
        let times = recorded.take(limit).map(|(key, entry, time)| TimelineEntry {
            key: key.clone(),
            kind: EntryKind::new(entry),
            recorded_at: time.recorded_at,
            duration: time.duration,
        });
        done(Ok(times.collect()))
    }
}

impl Tasks {
    /// Returns the tasks in the time of a query, newest first, from before a cursor.
    fn searched(
        &self,
        query: &TaskQuery,
        after: Option<&ListCursor>,
    ) -> impl Iterator<Item = (&TaskId, &Row)> {
        let since = query.since.unwrap_or(0);
        self.newest(query.until, after).take_while(move |(_, row)| row.created >= since)
    }
}

impl Row {
    fn matches(&self, query: &TaskQuery) -> bool {
        let TaskQuery { state, tool, person, tag, .. } = query;
        state.is_none_or(|state| state == self.state())
            && tool.as_ref().is_none_or(|tool| *tool == self.kind)
            && person.as_ref().is_none_or(|person| self.person.as_ref() == Some(person))
            && tag.as_ref().is_none_or(|tag| self.tags.contains(tag))
    }

    fn state(&self) -> TaskState {
        let outcome = self.outcome.as_ref().map(TaskOutcome::kind);
        TaskState::new(self.phase, outcome, self.input_requests.iter().any(InputRow::is_required))
    }

    fn indexed_task(&self, id: &TaskId) -> IndexedTask {
        let (summary, state) = (self.overseen(id), self.state());
        IndexedTask { summary, state, person: self.person.clone() }
    }

    /// Returns the journal entries in the order of their commits. Entries of a task that is not
    /// indexed have the time of its creation, as have those from before a promotion.
    fn recorded(&self) -> Vec<(&String, &JournalEntry, EntryTime)> {
        let created = EntryTime { recorded_at: self.created, duration: None };
        let time = |key: &String| self.times.get(key).copied().unwrap_or(created);
        let entries = self.journal.entries.iter();
        let mut entries: Vec<_> = entries.map(|(key, entry)| (key, entry, time(key))).collect();
        entries.sort_by_key(|(key, _, time)| (time.recorded_at, (*key).clone()));
        entries
    }
}
