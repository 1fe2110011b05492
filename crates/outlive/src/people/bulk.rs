//! Bulk actions: the same action on all tasks that match a query.
//!
//! The server processes a bulk action in batches and stores its position after each batch. After a
//! crash, any operator can continue it. A repeated batch changes nothing: a retried task is no longer
//! quarantined, and a cancelled one has ended.

use std::time::Duration;

use outlive_tasks::store::{
    AuditEvent, CancelOutcome, IndexedTask, ListCursor, RetryOutcome, TaskQuery, TaskState,
    UnixMillis,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{audit::bulk_reason, error::PeopleError, roles::Visitor, state::People};
use crate::server::random_id;

/// Maximum number of tasks of a bulk action.
const MAX_TASKS: usize = 10_000;

/// Number of tasks after which the position is stored.
const BATCH: usize = 100;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 64;

/// Time for which the state of a bulk action is stored.
const STATE_TTL: Duration = Duration::from_secs(2_592_000);

/// Time after which a bulk action whose process crashed can be continued.
const RUN_TTL: Duration = Duration::from_secs(60);

/// An action on many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "every action has its own button")]
pub enum BulkAction {
    /// Retries quarantined tasks.
    Retry,
    /// Cancels tasks.
    Cancel,
}

/// A bulk action to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a form that callers fill in")]
pub struct BulkRequest {
    /// The action.
    pub action: BulkAction,
    /// Conditions of the tasks.
    pub query: TaskQuery,
    /// Time before which the tasks were created: when the operator saw the list.
    pub before: UnixMillis,
    /// Name of the bulk action in the audit log, without a colon.
    pub name: String,
    /// Number of matching tasks that the operator saw. If more match, nothing is done.
    pub expect: usize,
}

/// ID of a bulk action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BulkId(String);

/// State of a bulk action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkStatus {
    /// The action.
    pub action: BulkAction,
    /// Name in the audit log.
    pub name: String,
    /// Actor who started it.
    pub by: String,
    /// Number of tasks that the operator saw.
    pub expect: usize,
    /// Number of tasks that the action changed.
    pub done: usize,
    /// Number of tasks that did not need the action any longer.
    pub skipped: usize,
    /// Whether all tasks were processed.
    pub is_finished: bool,
    /// Whether a process works on the action. An operator can continue an action that is neither
    /// running nor finished.
    pub is_running: bool,
}

impl BulkStatus {
    /// Creates the state of a bulk action that has not processed a task.
    pub fn new(
        action: BulkAction,
        name: impl Into<String>,
        by: impl Into<String>,
        expect: usize,
    ) -> Self {
        Self {
            action,
            name: name.into(),
            by: by.into(),
            expect,
            done: 0,
            skipped: 0,
            is_finished: false,
            is_running: false,
        }
    }
}

/// Stored state of a bulk action.
#[derive(Serialize, Deserialize)]
struct BulkEntry {
    action: BulkAction,
    query: StoredQuery,
    name: String,
    by: String,
    expect: usize,
    done: usize,
    skipped: usize,
    after: Option<ListCursor>,
    is_finished: bool,
}

/// Stored form of a query.
#[derive(Serialize, Deserialize)]
struct StoredQuery {
    state: Option<String>,
    tool: Option<String>,
    person: Option<String>,
    tag: Option<String>,
    since: Option<UnixMillis>,
    until: Option<UnixMillis>,
}

impl BulkAction {
    /// Returns the name in addresses and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }

    /// Returns the action with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Retry, Self::Cancel].into_iter().find(|action| action.as_str() == name)
    }
}

impl BulkId {
    /// Creates an ID from a text, unchanged.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn state_key(&self) -> String {
        format!("bulk/{}", self.0)
    }

    fn run_key(&self) -> String {
        format!("bulk-run/{}", self.0)
    }
}

impl People {
    /// Starts a bulk action in the background. For operators. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles; [`Invalid`](PeopleError::Invalid) if
    /// the name is invalid, more tasks match than expected, or more than 10,000.
    pub async fn bulk(
        &self,
        visitor: &Visitor,
        request: BulkRequest,
    ) -> Result<BulkId, PeopleError> {
        visitor.require_operator()?;
        let BulkRequest { action, query, before, name, expect } = request;
        let name = checked_name(&name)?;
        let until = query.until.map_or(before, |until| until.min(before));
        let query = query.until(Some(until));
        if expect > MAX_TASKS {
            return Err(PeopleError::field("expect", "must be at most 10,000; narrow the filter"));
        }
        let found = self.store().count(&query, expect + 1).await?.count;
        if found > expect {
            let message = format!("was {expect}, but more tasks match now; review the list");
            return Err(PeopleError::field("expect", message));
        }
        let random = random_id().ok_or(PeopleError::Forbidden("no random bytes for an ID"))?;
        let id = BulkId(random);
        let by = visitor.actor();
        let details = format!("{} of {found} tasks", action.as_str());
        let event = AuditEvent::new("", by.clone(), "bulk");
        self.record(vec![event.reason(Some(bulk_reason(&name, &details)))]).await?;
        let query = StoredQuery::from(query);
        let (done, skipped, after, is_finished) = (0, 0, None, false);
        let entry =
            BulkEntry { action, query, name, by, expect, done, skipped, after, is_finished };
        self.put_bulk(&id, &entry).await?;
        self.start_bulk(visitor, &id).await?;
        Ok(id)
    }

    /// Returns the state of a bulk action. For viewers and operators.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles, [`NotFound`](PeopleError::NotFound)
    /// for an unknown ID.
    pub async fn bulk_status(
        &self,
        visitor: &Visitor,
        id: &BulkId,
    ) -> Result<BulkStatus, PeopleError> {
        visitor.require_viewer()?;
        let entry = self.get_bulk(id).await?.ok_or(PeopleError::NotFound)?;
        let is_running = self.store().get_value(&id.run_key()).await?.is_some();
        let BulkEntry { action, name, by, expect, done, skipped, is_finished, .. } = entry;
        let is_running = is_running && !is_finished;
        Ok(BulkStatus { action, name, by, expect, done, skipped, is_finished, is_running })
    }

    /// Continues a bulk action whose process crashed. For operators. Must be called inside a Tokio
    /// runtime. Does nothing if the action is finished.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles and while the action runs,
    /// [`NotFound`](PeopleError::NotFound) for an unknown ID.
    pub async fn bulk_continue(&self, visitor: &Visitor, id: &BulkId) -> Result<(), PeopleError> {
        visitor.require_operator()?;
        let entry = self.get_bulk(id).await?.ok_or(PeopleError::NotFound)?;
        match entry.is_finished {
            true => Ok(()),
            false => self.start_bulk(visitor, id).await,
        }
    }

    /// Starts to process a bulk action, unless another process does.
    async fn start_bulk(&self, visitor: &Visitor, id: &BulkId) -> Result<(), PeopleError> {
        let mark = RawValue::NULL.to_owned();
        let running = self.store().put_if_absent(&id.run_key(), mark, RUN_TTL, None).await?;
        if running.is_some() {
            return Err(PeopleError::Forbidden("the bulk action runs already; wait for it"));
        }
        let (people, visitor, id) = (self.clone(), visitor.clone(), id.clone());
        // Detached: it ends with the last batch, and an operator can continue it after a crash.
        tokio::spawn(async move {
            let stopped = loop {
                match people.run_batch(&visitor, &id).await {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if let Err(error) = stopped {
                tracing::warn!(%error, bulk_id = id.as_str(), "bulk action stopped; continue it");
            }
            if let Err(error) = people.store().delete(&id.run_key()).await {
                tracing::warn!(%error, bulk_id = id.as_str(), "the end of a bulk action was not stored");
            }
        });
        Ok(())
    }

    /// Processes one batch. Returns whether tasks remain.
    async fn run_batch(&self, visitor: &Visitor, id: &BulkId) -> Result<bool, PeopleError> {
        let Some(mut entry) = self.get_bulk(id).await? else { return Ok(false) };
        let left = entry.expect.saturating_sub(entry.done + entry.skipped);
        if entry.is_finished || left == 0 {
            entry.is_finished = true;
            self.put_bulk(id, &entry).await?;
            return Ok(false);
        }
        // Another version may have stored a condition that this one does not know. Without it, the action
        // would include tasks that the operator did not select.
        let query = entry.query.to_query().ok_or(PeopleError::Forbidden(
            "another version of the server started the bulk action; continue it there",
        ))?;
        let page = self.store().page(&query, entry.after.as_ref(), left.min(BATCH)).await?;
        for task in &page.tasks {
            match self.act(visitor, entry.action, &entry.name, task).await? {
                true => entry.done += 1,
                false => entry.skipped += 1,
            }
        }
        entry.is_finished = page.next.is_none();
        entry.after = page.next;
        self.put_bulk(id, &entry).await?;
        // Renews the time in which no other process continues the action.
        self.store().put(&id.run_key(), RawValue::NULL.to_owned(), RUN_TTL, None).await?;
        Ok(!entry.is_finished)
    }

    /// Performs an action on one task, for an operator. Returns whether the task changed.
    pub(super) async fn act(
        &self,
        visitor: &Visitor,
        action: BulkAction,
        name: &str,
        task: &IndexedTask,
    ) -> Result<bool, PeopleError> {
        let reason = bulk_reason(name, "");
        Ok(match action {
            BulkAction::Retry => {
                let retried = self.retry_as(visitor, &task.summary.view.id, Some(reason)).await?;
                matches!(retried, Some(RetryOutcome::Queued(_)))
            }
            BulkAction::Cancel => {
                let cancelled = self.cancel_as(visitor, &task.summary, reason).await?;
                matches!(cancelled, Some(CancelOutcome::Cancelled | CancelOutcome::Requested))
            }
        })
    }

    async fn get_bulk(&self, id: &BulkId) -> Result<Option<BulkEntry>, PeopleError> {
        let value = self.store().get_value(&id.state_key()).await?;
        Ok(value.and_then(|value| serde_json::from_str(value.get()).ok()))
    }

    async fn put_bulk(&self, id: &BulkId, entry: &BulkEntry) -> Result<(), PeopleError> {
        let value =
            to_raw_value(entry).map_err(|error| PeopleError::field("name", error.to_string()))?;
        Ok(self.store().put(&id.state_key(), value, STATE_TTL, None).await?)
    }
}

/// Returns the name of a bulk action without surrounding spaces.
pub(super) fn checked_name(name: &str) -> Result<String, PeopleError> {
    let name = name.trim();
    let error = match name.chars().count() {
        0 => "is required",
        1..=MAX_NAME if name.contains(':') => "must not contain a colon",
        1..=MAX_NAME if !name.chars().all(outlive_protocol::text::is_visible) => {
            "must have visible characters only"
        }
        1..=MAX_NAME => return Ok(name.to_owned()),
        _ => "must have at most 64 characters",
    };
    Err(PeopleError::field("name", error))
}

impl From<TaskQuery> for StoredQuery {
    fn from(query: TaskQuery) -> Self {
        let TaskQuery { state, tool, person, tag, since, until, .. } = query;
        let state = state.map(|state| state.as_str().to_owned());
        Self { state, tool, person, tag, since, until }
    }
}

impl StoredQuery {
    /// Returns the query. Returns `None` if a newer version has written an unknown state.
    fn to_query(&self) -> Option<TaskQuery> {
        let Self { state, tool, person, tag, since, until } = self;
        let state = match state {
            Some(state) => Some(TaskState::from_name(state)?),
            None => None,
        };
        let query = TaskQuery::default().state(state).tool(tool.clone()).person(person.clone());
        let mut query = query.tag(tag.clone());
        (query.since, query.until) = (*since, *until);
        Some(query)
    }
}
