//! Tasks: lists, one task with its journal and output, and actions on it.

use outlive_tasks::{
    JournalEntry,
    store::{
        CancelOutcome, IndexedTask, JournalCursor, JournalItem, ListCursor, PageLimit,
        PurgeOutcome, RetryOutcome, StoredSegments, TaskCount, TaskDetail, TaskId, TaskPage,
        TaskQuery, TaskState, TaskSummary,
    },
};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    arguments::{ShownArgument, client, hidden_text, shown},
    error::PeopleError,
    inbox::hide_people,
    roles::{Role, Visitor},
    state::{MAX_PAGE, People, event},
};

/// Number at which counts stop.
pub(super) const MAX_COUNT: usize = 10_000;

/// Bytes after which a page of output ends.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Text of a function that returns contents of a task.
const HIDDEN: PeopleError =
    PeopleError::Forbidden("arguments, journal and result are visible only to the task's person");

/// A task as a person sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskView {
    /// The task, without its call and its journal. Has no result if `shows_contents` is `false`.
    pub detail: TaskDetail,
    /// State of the task.
    pub state: TaskState,
    /// Person of the task; `None` for an anonymous caller.
    pub person: Option<String>,
    /// Tags, as `key=value`.
    pub tags: Vec<String>,
    /// Task that this one runs again.
    pub rerun_of: Option<TaskId>,
    /// Arguments of the call; empty if the visitor may not see them.
    pub arguments: Vec<ShownArgument>,
    /// Name and version of the client that made the call, as the client claims.
    pub client: Option<String>,
    /// Number of journal entries.
    pub entries: usize,
    /// Whether the visitor may cancel the task and run it again.
    pub can_act: bool,
    /// Whether the visitor may also retry and delete the task.
    pub can_operate: bool,
    /// Whether the visitor may see arguments, journal and result.
    pub shows_contents: bool,
    /// Number of queued tasks that were created before this one; `None` if it is not queued.
    pub queue_position: Option<u64>,
}

impl TaskView {
    /// Creates the view of a task whose contents are visible.
    pub fn new(detail: TaskDetail, state: TaskState) -> Self {
        Self {
            person: detail.person.clone(),
            tags: detail.tags.clone(),
            rerun_of: detail.rerun_of.clone(),
            entries: detail.entries.len(),
            detail,
            state,
            arguments: Vec::new(),
            client: None,
            can_act: false,
            can_operate: false,
            shows_contents: true,
            queue_position: None,
        }
    }
}

impl People {
    /// Returns the tasks that match a query, newest first, from before a cursor. A person sees own
    /// tasks only, whatever the query says.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn tasks(
        &self,
        visitor: &Visitor,
        query: &TaskQuery,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<TaskPage, PeopleError> {
        let Some(query) = scoped(visitor, query) else { return Ok(TaskPage::default()) };
        let mut page = self.store().page(&query, after, limit.clamp(1, MAX_PAGE)).await?;
        page.tasks.retain(|task| visitor.sees_task(task));
        page.tasks.iter_mut().for_each(|task| hide_contents(visitor, task));
        Ok(page)
    }

    /// Returns the number of tasks that match a query. Counts stop at 10,000.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn count(
        &self,
        visitor: &Visitor,
        query: &TaskQuery,
    ) -> Result<TaskCount, PeopleError> {
        let Some(scoped) = scoped(visitor, query) else { return Ok(TaskCount::default()) };
        if visitor.only_principal().is_none() {
            return Ok(self.store().count(&scoped, MAX_COUNT).await?);
        }
        // The index has persons, and an MCP token must not learn of other clients of its person.
        let page = self.tasks(visitor, query, None, MAX_PAGE).await?;
        let mut count = TaskCount::default();
        count.count = page.tasks.len();
        count.more = page.next.is_some();
        Ok(count)
    }

    /// Returns a task.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task.
    pub async fn task(&self, visitor: &Visitor, id: &TaskId) -> Result<TaskView, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        let detail = self.store().inspect(id).await?.ok_or(PeopleError::NotFound)?;
        let mut view = TaskView::new(detail, task.state);
        view.shows_contents = visitor.sees_contents(&task);
        view.can_operate = visitor.role() == Role::Operator;
        let decides = visitor.only_principal().is_none();
        view.can_act = view.can_operate || visitor.owns_task(&task) && decides;
        if view.shows_contents {
            let tool = self.tool(&view.detail.task.view.tool);
            view.arguments = shown(tool.as_ref(), &view.detail.request);
        } else {
            hide(&mut view.detail.task);
            view.detail.input_requests.iter_mut().for_each(|asked| asked.request = None);
        }
        view.client = client(&view.detail.request);
        // The call may have secrets.
        view.detail.request = RawValue::NULL.to_owned();
        let asked = view.detail.input_requests.iter_mut();
        asked.for_each(|asked| hide_people(visitor, &mut asked.audience));
        view.detail.entries.clear();
        if task.state == TaskState::Queued {
            let before = Some(task.summary.view.created_at);
            let ahead = TaskQuery::default().state(Some(TaskState::Queued)).until(before);
            let ahead = self.store().count(&ahead, MAX_COUNT).await?;
            view.queue_position = Some(ahead.count as u64);
        }
        Ok(view)
    }

    /// Returns journal entries of a task in the order of their commits, after a cursor. Secret
    /// results are replaced by their size.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task,
    /// [`Forbidden`](PeopleError::Forbidden) if its contents are hidden, and for an MCP token.
    pub async fn journal(
        &self,
        visitor: &Visitor,
        id: &TaskId,
        after: Option<&JournalCursor>,
        limit: usize,
    ) -> Result<Vec<JournalItem>, PeopleError> {
        self.find_contents(visitor, id).await?;
        visitor.require_person()?;
        let mut items = self.store().journal(id, after, limit.clamp(1, MAX_PAGE)).await?;
        for item in &mut items {
            if let JournalEntry::Secret(value) = &mut item.entry {
                let text = hidden_text(value.get().chars().count());
                *value = to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned());
            }
        }
        Ok(items)
    }

    /// Returns the output of a task after a segment.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task,
    /// [`Forbidden`](PeopleError::Forbidden) if its contents are hidden.
    pub async fn output(
        &self,
        visitor: &Visitor,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<StoredSegments, PeopleError> {
        let principal = self.find_contents(visitor, id).await?;
        let limit = PageLimit::new(limit.clamp(1, MAX_PAGE), MAX_OUTPUT_BYTES);
        let segments = self.store().read_segments(&principal, id, after, limit).await?;
        segments.ok_or(PeopleError::NotFound)
    }

    /// Cancels a task. A task without a worker ends at once; otherwise its worker is requested to
    /// stop.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task,
    /// [`Forbidden`](PeopleError::Forbidden) if the visitor only sees it.
    pub async fn cancel(
        &self,
        visitor: &Visitor,
        id: &TaskId,
    ) -> Result<CancelOutcome, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        if !visitor.owns_task(&task) {
            visitor.require_operator()?;
        }
        let by = visitor.person().unwrap_or("an operator");
        let reason = format!("by {by}, {}", visitor.channel().as_str());
        self.cancel_as(visitor, &task.summary, reason).await?.ok_or(PeopleError::NotFound)
    }

    /// Cancels a task that the visitor may cancel.
    pub(super) async fn cancel_as(
        &self,
        visitor: &Visitor,
        task: &TaskSummary,
        reason: String,
    ) -> Result<Option<CancelOutcome>, PeopleError> {
        let (principal, id) = (&task.principal, &task.view.id);
        let cancelled = self.store().cancel(principal, id, false, self.retention()).await?;
        let action = match cancelled {
            Some(CancelOutcome::Cancelled) => "cancelled",
            Some(CancelOutcome::Requested) => "cancel-requested",
            Some(CancelOutcome::AlreadyEnded) | None => return Ok(cancelled),
        };
        if let (Some(CancelOutcome::Cancelled), Some(env)) = (&cancelled, self.env()) {
            // No worker ends the task, so no engine event counts it.
            env.counters.cancelled.add(1);
            env.tasks.iter().for_each(|tasks| tasks.cancelled_by_person(principal, id));
        }
        self.record(vec![event(visitor, principal, id, action, Some(reason))]).await?;
        Ok(cancelled)
    }

    /// Retries a quarantined task. For operators.
    ///
    /// # Errors
    ///
    /// Same as [`cancel`](Self::cancel).
    pub async fn retry(&self, visitor: &Visitor, id: &TaskId) -> Result<RetryOutcome, PeopleError> {
        self.find_task(visitor, id).await?;
        visitor.require_operator()?;
        self.retry_as(visitor, id, None).await?.ok_or(PeopleError::NotFound)
    }

    /// Retries a task that the visitor may retry.
    pub(super) async fn retry_as(
        &self,
        visitor: &Visitor,
        id: &TaskId,
        reason: Option<String>,
    ) -> Result<Option<RetryOutcome>, PeopleError> {
        let retried = self.store().retry(id).await?;
        if let Some(RetryOutcome::Queued(principal)) = &retried {
            self.record(vec![event(visitor, principal, id, "retried", reason)]).await?;
        }
        Ok(retried)
    }

    /// Deletes a task. A task that has not ended requires `force`. For operators.
    ///
    /// # Errors
    ///
    /// Same as [`cancel`](Self::cancel).
    pub async fn purge(
        &self,
        visitor: &Visitor,
        id: &TaskId,
        force: bool,
    ) -> Result<PurgeOutcome, PeopleError> {
        self.find_task(visitor, id).await?;
        visitor.require_operator()?;
        let purged = self.store().purge(id, force).await?.ok_or(PeopleError::NotFound)?;
        if let PurgeOutcome::Purged(principal, phase) = &purged {
            let reason = format!("the task was {phase:?}").to_lowercase();
            self.record(vec![event(visitor, principal, id, "purged", Some(reason))]).await?;
        }
        Ok(purged)
    }

    /// Returns the principal of a task whose contents the visitor sees.
    async fn find_contents(&self, visitor: &Visitor, id: &TaskId) -> Result<String, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        match visitor.sees_contents(&task) {
            true => Ok(task.summary.principal),
            false => Err(HIDDEN),
        }
    }
}

/// Returns a query over the tasks that the visitor sees; `None` if the visitor sees no task.
pub(super) fn scoped(visitor: &Visitor, query: &TaskQuery) -> Option<TaskQuery> {
    if visitor.sees_all() {
        return Some(query.clone());
    }
    let own = visitor.person().filter(|_| visitor.linked_digest().is_none())?;
    let is_own = query.person.as_deref().is_none_or(|person| person == own);
    is_own.then(|| query.clone().person(Some(own.to_owned())))
}

/// Removes the contents of a task in a list, unless the visitor sees them.
pub(super) fn hide_contents(visitor: &Visitor, task: &mut IndexedTask) {
    if !visitor.sees_contents(task) {
        hide(&mut task.summary);
    }
}

/// Removes the contents of a task. Its state stays known.
fn hide(task: &mut TaskSummary) {
    task.view.outcome = None;
    task.view.progress = None;
    task.view.status_message = None;
    task.view.input_requests.clear();
}
