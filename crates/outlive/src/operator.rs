//! Operations on a store for its operator: list, inspect, retry, cancel and purge tasks.

use std::{fmt, sync::Arc, time::Duration};

use outlive_tasks::{
    engine::EngineConfig,
    store::{
        AuditEvent, AuditRecord, CancelOutcome, InputSource, ListCursor, OperatorStore,
        PurgeOutcome, RetryOutcome, StoreError, TaskDetail, TaskFilter, TaskId, TaskOutcome,
        TaskSummary, UnixMillis, assemble, open_operator,
    },
};
use outlive_wire::RawJson;

use crate::server::{
    hosts::{client::Transport, learned::PREFIX as LEARNED_PREFIX, observations::Observations},
    name_in_audit,
};

/// Retention of an operator's audit events. Same as the default of servers.
const AUDIT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Maximum number of audit events in a report.
const EVENTS: usize = 1_000;

/// Number of tasks that a search reads per page.
const PAGE: usize = 500;

/// Operator access to a store, for all principals and without a server. Servers may run
/// concurrently.
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

/// A task and its audit events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskReport {
    /// Details of the task.
    pub task: TaskDetail,
    /// Audit events of the task, oldest first.
    pub events: Vec<AuditRecord>,
}

/// Call timeout of a client that servers on the store have learned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LearnedTimeout {
    /// Principal that uses the client; `None` for an anonymous session.
    pub principal: Option<String>,
    /// `clientInfo.name` of the client, in lower case.
    pub client: String,
    /// `clientInfo.version` of the client.
    pub version: String,
    /// Transport of the client: `stdio` or `http`.
    pub transport: &'static str,
    /// Time after which the client ends a call; `None` if only `spans_rounds` is known.
    pub call_timeout: Option<Duration>,
    /// Whether the client counts all rounds of a call together.
    pub spans_rounds: bool,
    /// Time after which the limit is not used.
    pub expires_at: UnixMillis,
}

impl Operator {
    /// Opens the store at a URL and migrates its schema. [`probe`](crate::store::probe) reports
    /// pending migrations without applying them.
    ///
    /// # Errors
    ///
    /// Same as [`open`](crate::store::open).
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::new(open_operator(url).await?))
    }

    /// Creates an operator for an open store.
    pub fn new(store: Arc<dyn OperatorStore>) -> Self {
        Self { store, name: "operator".to_owned() }
    }

    /// Sets the name of the operator in the audit log.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = format!("operator:{name}");
        self
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn OperatorStore> {
        &self.store
    }

    /// Lists tasks of all principals after a cursor, newest first.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<TaskSummary>, StoreError> {
        self.store.tasks(filter, after, limit).await
    }

    /// Returns a task and its latest audit events.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn show(&self, task: &TaskId) -> Result<Option<TaskReport>, StoreError> {
        let Some(mut found) = self.store.inspect(task).await? else { return Ok(None) };
        if let Some(TaskOutcome::LargeResult(large)) = &found.task.view.outcome {
            let whole = assemble(&*self.store, &found.task.principal, task, large).await?;
            found.task.view.outcome =
                whole.map(TaskOutcome::Result).or(found.task.view.outcome.take());
        }
        let name = name_in_audit(&found.task.principal, task.as_str());
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let page = self.store.read(Some(&name), after, EVENTS).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            events.extend(page);
            // Polls are events too, so the latest events are more useful than the first.
            let more = events.len().saturating_sub(EVENTS);
            events.drain(..more);
        }
        Ok(Some(TaskReport { task: found, events }))
    }

    /// Returns at most `limit` task IDs that start with `prefix`, newest first. Returns only the
    /// exact match if there is one. May read all tasks of the store.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
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

    /// Cancels a task on behalf of its caller. A task without a worker ends immediately; otherwise
    /// its worker is asked to stop.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
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
        let cause = Some("cancelled by an operator".to_owned());
        self.record(vec![self.event(principal, task, what, cause)]).await?;
        Ok(cancelled)
    }

    /// Responds to open input requests of a task on behalf of its caller, by their keys. Returns
    /// the number of accepted responses. Cannot deliver external events.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn answer(
        &self,
        task: &TaskId,
        answers: Vec<(String, RawJson)>,
    ) -> Result<Option<usize>, StoreError> {
        let Some(found) = self.store.inspect(task).await? else { return Ok(None) };
        let principal = &found.task.principal;
        // The caller's quota does not apply to an operator.
        let answered = self.store.respond(principal, task, InputSource::Client, answers, u64::MAX);
        let taken = answered.await?;
        if let Some(taken @ 1..) = taken {
            let cause = Some(format!("{taken} input responses stored"));
            self.record(vec![self.event(principal, task, "updated", cause)]).await?;
        }
        Ok(taken)
    }

    /// Retries a quarantined task. The task resumes from its journal.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn retry(&self, task: &TaskId) -> Result<Option<RetryOutcome>, StoreError> {
        let retried = self.store.retry(task).await?;
        if let Some(RetryOutcome::Queued(principal)) = &retried {
            self.record(vec![self.event(principal, task, "retried", None)]).await?;
        }
        Ok(retried)
    }

    /// Deletes a task. A task that has not ended requires `force`.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn purge(
        &self,
        task: &TaskId,
        force: bool,
    ) -> Result<Option<PurgeOutcome>, StoreError> {
        let purged = self.store.purge(task, force).await?;
        if let Some(PurgeOutcome::Purged(principal, phase)) = &purged {
            let cause = Some(format!("the task was {phase:?}").to_lowercase());
            self.record(vec![self.event(principal, task, "purged", cause)]).await?;
        }
        Ok(purged)
    }

    /// Deletes at most `limit` tasks that ended before a time. Returns their number.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn purge_ended(&self, before: UnixMillis, limit: usize) -> Result<usize, StoreError> {
        let gone = self.store.purge_ended(before, limit).await?;
        let cause = || Some("the retention of the task was over".to_owned());
        let events = gone.iter().map(|(owner, task)| self.event(owner, task, "purged", cause()));
        self.record(events.collect()).await?;
        Ok(gone.len())
    }

    /// Returns call timeouts that servers have learned, of at most `limit` callers.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn learned_timeouts(&self, limit: usize) -> Result<Vec<LearnedTimeout>, StoreError> {
        let entries = self.store.key_values(LEARNED_PREFIX, limit).await?;
        let read = entries.iter().filter_map(|(_, entry)| serde_json::from_str(entry.get()).ok());
        Ok(read.flat_map(learned).collect())
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

/// Returns what was learned for the clients of a caller.
fn learned(Observations { principal, clients }: Observations) -> Vec<LearnedTimeout> {
    let learned = clients.into_iter().filter_map(|client| {
        let limit = client.limit(0)?;
        Some(LearnedTimeout {
            principal: principal.clone(),
            client: client.name,
            version: client.version,
            transport: match client.transport {
                Transport::Stdio => "stdio",
                Transport::Http => "http",
            },
            call_timeout: limit.call_timeout,
            spans_rounds: limit.timeout_spans_rounds,
            expires_at: client.expires_at,
        })
    });
    learned.collect()
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}
