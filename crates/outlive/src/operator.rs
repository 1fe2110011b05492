//! Looking after a store: what its operator sees and does, and that it is written down.

use std::{fmt, sync::Arc, time::Duration};

use outlive_tasks::store::{
    After, Audit, AuditEvent, Filter, Inspected, Millis, Operated, Overseen, Purged, Retried,
    StoreError, TaskId, open_operated,
};

use crate::server::name_in_audit;

/// How long what an operator has done can be looked up: as long as what servers have, by default.
const AUDIT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many events of a task are shown.
const EVENTS: usize = 1_000;

/// Looks after a store, for all principals and without a server. Servers may use it meanwhile.
///
/// ```
/// use outlive::tasks::{Filter, Operator, Phase, Retried};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let operator = Operator::open("memory:").await?.called("ada");
/// let kept = Filter { phase: Some(Phase::Kept), ..Filter::default() };
/// for task in operator.list(&kept, None, 100).await? {
///     let retried = operator.retry(&task.view.id).await?;
///     assert!(matches!(retried, Some(Retried::Queued(_))));
/// }
/// # Ok::<(), outlive::tasks::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Operator {
    store: Arc<dyn Operated>,
    name: String,
}

/// All that is known of a task, and what has happened to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shown {
    /// The task.
    pub task: Inspected,
    /// What has happened to it, oldest first.
    pub events: Vec<Audit>,
}

impl Operator {
    /// Opens the store that a URL names, and brings its tables up to date:
    /// [`probe`](crate::tasks::probe) says before whether that changes anything.
    ///
    /// # Errors
    ///
    /// Like [`open`](crate::tasks::open).
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::of(open_operated(url).await?))
    }

    /// Looks after a store that is open.
    pub fn of(store: Arc<dyn Operated>) -> Self {
        Self { store, name: "operator".to_owned() }
    }

    /// Who does it, for those who look at what has happened.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.name = format!("operator:{name}");
        self
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Operated> {
        &self.store
    }

    /// Tasks of all principals, newest first, from before a place on.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn list(
        &self,
        filter: &Filter,
        after: Option<&After>,
        limit: usize,
    ) -> Result<Vec<Overseen>, StoreError> {
        self.store.tasks(filter, after, limit).await
    }

    /// All that is known of a task, and the last that has happened to it.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn show(&self, task: &TaskId) -> Result<Option<Shown>, StoreError> {
        let Some(found) = self.store.inspect(task).await? else { return Ok(None) };
        let name = name_in_audit(&found.task.principal, task.as_str());
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let page = self.store.audit(Some(&name), after, EVENTS).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            events.extend(page);
            // Polls are events, too, and the last say more than the first.
            let more = events.len().saturating_sub(EVENTS);
            events.drain(..more);
        }
        Ok(Some(Shown { task: found, events }))
    }

    /// Has a task tried again that is kept. It goes on from what it has recorded.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn retry(&self, task: &TaskId) -> Result<Option<Retried>, StoreError> {
        let retried = self.store.retry(task).await?;
        if let Some(Retried::Queued(principal)) = &retried {
            self.record(vec![self.event(principal, task, "retried", None)]).await?;
        }
        Ok(retried)
    }

    /// Forgets a task; one that has not ended only if it is forced to.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn purge(&self, task: &TaskId, force: bool) -> Result<Option<Purged>, StoreError> {
        let purged = self.store.purge(task, force).await?;
        if let Some(Purged::Gone(principal, phase)) = &purged {
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
    pub async fn purge_ended(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
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
        AuditEvent { task, principal: self.name.clone(), what: what.to_owned(), cause }
    }

    async fn record(&self, events: Vec<AuditEvent>) -> Result<(), StoreError> {
        for AuditEvent { task, principal, what, cause } in &events {
            tracing::info!(target: "outlive::audit", what, task, principal, cause);
        }
        self.store.record(events, AUDIT_RETENTION).await
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}
