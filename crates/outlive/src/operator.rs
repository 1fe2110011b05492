//! Operations on a store for its operator: list, inspect, retry, cancel and purge tasks.

use std::{fmt, sync::Arc, time::Duration};

use outlive_tasks::{
    engine::EngineConfig,
    store::{
        AuditEvent, AuditRecord, CancelOutcome, InputSource, ListCursor, OperatorStore,
        PurgeOutcome, RetryOutcome, StoreError, TaskDetail, TaskFilter, TaskId, TaskSummary,
        UnixMillis, open_operator,
    },
};
use outlive_wire::RawJson;

use crate::server::name_in_audit;

/// How long what an operator has done can be looked up: as long as what servers have, by default.
const AUDIT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many events of a task are shown.
const EVENTS: usize = 1_000;

/// Number of tasks that a search reads at once.
const PAGE: usize = 500;

/// Looks after a store, for all principals and without a server. Servers may use it meanwhile.
///
/// ```
/// use outlive::{
///     operator::Operator,
///     store::{Phase, RetryOutcome, TaskFilter},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let operator = Operator::open("memory:").await?.named("ada");
/// let quarantined = TaskFilter::default().phase(Some(Phase::Quarantined));
/// for task in operator.list(&quarantined, None, 100).await? {
///     let retried = operator.retry(&task.view.id).await?;
///     assert!(matches!(retried, Some(RetryOutcome::Queued(_))));
/// }
/// # Ok::<(), outlive::store::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Operator {
    store: Arc<dyn OperatorStore>,
    name: String,
}

/// All that is known of a task, and what has happened to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskReport {
    /// The task.
    pub task: TaskDetail,
    /// What has happened to it, oldest first.
    pub events: Vec<AuditRecord>,
}

impl Operator {
    /// Opens the store that a URL names, and brings its tables up to date:
    /// [`probe`](crate::store::probe) says before whether that changes anything.
    ///
    /// # Errors
    ///
    /// Like [`open`](crate::store::open).
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::new(open_operator(url).await?))
    }

    /// Looks after a store that is open.
    pub fn new(store: Arc<dyn OperatorStore>) -> Self {
        Self { store, name: "operator".to_owned() }
    }

    /// Who does it, for those who look at what has happened.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = format!("operator:{name}");
        self
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn OperatorStore> {
        &self.store
    }

    /// Tasks of all principals, newest first, from before a place on.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<TaskSummary>, StoreError> {
        self.store.tasks(filter, after, limit).await
    }

    /// All that is known of a task, and the last that has happened to it.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn show(&self, task: &TaskId) -> Result<Option<TaskReport>, StoreError> {
        let Some(found) = self.store.inspect(task).await? else { return Ok(None) };
        let name = name_in_audit(&found.task.principal, task.as_str());
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let page = self.store.read(Some(&name), after, EVENTS).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            events.extend(page);
            // Polls are events, too, and the last say more than the first.
            let more = events.len().saturating_sub(EVENTS);
            events.drain(..more);
        }
        Ok(Some(TaskReport { task: found, events }))
    }

    /// Ids of tasks that begin like this, newest first, so many at most. An id that is the whole of one
    /// is that one alone. It may look through all there are.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn find(&self, prefix: &str, limit: usize) -> Result<Vec<TaskId>, StoreError> {
        let whole = TaskId::new(prefix);
        if self.store.inspect(&whole).await?.is_some() {
            return Ok(vec![whole]);
        }
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < limit {
            let page = self.store.tasks(&TaskFilter::default(), after.as_ref(), PAGE).await?;
            let ids = page.iter().map(|task| &task.view.id);
            found.extend(ids.filter(|id| id.as_str().starts_with(prefix)).cloned());
            match page.last().filter(|_| page.len() == PAGE) {
                Some(last) => {
                    let created = last.view.created_at;
                    after = Some(ListCursor::new(created, last.view.id.clone()));
                }
                None => break,
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Cancels a task in place of its caller: at once if nobody runs it, else its worker is asked to
    /// stop.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn cancel(&self, task: &TaskId) -> Result<Option<CancelOutcome>, StoreError> {
        let Some(found) = self.store.inspect(task).await? else { return Ok(None) };
        let principal = &found.task.principal;
        let retention = EngineConfig::default().retention;
        let cancelled = self.store.cancel(principal, task, false, retention).await?;
        let what = match cancelled {
            Some(CancelOutcome::Cancelled) => "cancelled",
            Some(CancelOutcome::Requested) => "cancel-requested",
            Some(CancelOutcome::AlreadyEnded) | None => return Ok(cancelled),
        };
        let cause = Some("an operator wants it".to_owned());
        self.record(vec![self.event(principal, task, what, cause)]).await?;
        Ok(cancelled)
    }

    /// Gives responses to open input requests of a task in place of its caller, by their names on the
    /// wire; how many were taken. Those that are open to the client alone count: what a task waits
    /// for elsewhere is not an operator's to give.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn answer(
        &self,
        task: &TaskId,
        answers: Vec<(String, RawJson)>,
    ) -> Result<Option<usize>, StoreError> {
        let Some(found) = self.store.inspect(task).await? else { return Ok(None) };
        let principal = &found.task.principal;
        // An operator may, whatever its caller has stored.
        let answered = self.store.respond(principal, task, InputSource::Client, answers, u64::MAX);
        let taken = answered.await?;
        if let Some(taken @ 1..) = taken {
            let cause = Some(format!("{taken} answers were taken"));
            self.record(vec![self.event(principal, task, "updated", cause)]).await?;
        }
        Ok(taken)
    }

    /// Has a task tried again that is kept. It goes on from what it has recorded.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn retry(&self, task: &TaskId) -> Result<Option<RetryOutcome>, StoreError> {
        let retried = self.store.retry(task).await?;
        if let Some(RetryOutcome::Queued(principal)) = &retried {
            self.record(vec![self.event(principal, task, "retried", None)]).await?;
        }
        Ok(retried)
    }

    /// Forgets a task; one that has not ended only if it is forced to.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn purge(
        &self,
        task: &TaskId,
        force: bool,
    ) -> Result<Option<PurgeOutcome>, StoreError> {
        let purged = self.store.purge(task, force).await?;
        if let Some(PurgeOutcome::Purged(principal, phase)) = &purged {
            let cause = Some(format!("it was {phase:?}").to_lowercase());
            self.record(vec![self.event(principal, task, "purged", cause)]).await?;
        }
        Ok(purged)
    }

    /// Forgets tasks that have ended before a time, so many at most, and says how many it has.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn purge_ended(&self, before: UnixMillis, limit: usize) -> Result<usize, StoreError> {
        let gone = self.store.purge_ended(before, limit).await?;
        let cause = || Some("it had ended long ago".to_owned());
        let events = gone.iter().map(|(owner, task)| self.event(owner, task, "purged", cause()));
        self.record(events.collect()).await?;
        Ok(gone.len())
    }

    fn event(
        &self,
        principal: &str,
        task: &TaskId,
        what: &str,
        cause: Option<String>,
    ) -> AuditEvent {
        let task = name_in_audit(principal, task.as_str());
        AuditEvent::new(task, self.name.clone(), what).reason(cause)
    }

    async fn record(&self, events: Vec<AuditEvent>) -> Result<(), StoreError> {
        for AuditEvent { task, principal, action: what, reason: cause, .. } in &events {
            tracing::info!(target: "outlive::audit", action = what, task_id = task, principal, reason = cause);
        }
        self.store.append(events, AUDIT_RETENTION, u64::MAX).await
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}
