//! [`People`]: the functions behind pages, API and command line, and what they share.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{Clock, Seal};
use outlive_tasks::{
    engine::EngineConfig,
    store::{AuditEvent, IndexedTask, PeopleStore, TaskId, UnixMillis},
};
use outlive_transport::TokioClock;
use tokio::sync::broadcast;

use super::{error::PeopleError, roles::Visitor};
use crate::server::{BuildError, Env, Server, ShownTool, name_in_audit};

/// Retention of audit events without a server. Same as the default of servers.
const AUDIT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Largest page of a list.
pub(super) const MAX_PAGE: usize = 200;

/// Functions for people who see tasks, decide and respond. Clones share their state.
///
/// Pages, HTTP API and command line call the same functions, so all three have the same
/// permissions. Every function takes the [`Visitor`] first and checks its role. An object that the
/// visitor may not see and an object that does not exist return the same
/// [`NotFound`](PeopleError::NotFound) after the same statements.
#[derive(Clone)]
pub struct People(Arc<PeopleState>);

struct PeopleState {
    store: Arc<dyn PeopleStore>,
    server: Option<Server>,
    seal: Seal,
    clock: Arc<dyn Clock>,
    changes: OnceLock<broadcast::Sender<TaskId>>,
    /// Number of the newest known audit event.
    newest_event: AtomicU64,
}

impl People {
    /// Creates the functions of a server.
    ///
    /// # Errors
    ///
    /// If the server has no store, or a store without lists and decisions.
    pub fn new(server: &Server) -> Result<Self, BuildError> {
        let env = server.env();
        let store = env.tasks.as_ref().and_then(|tasks| tasks.people.clone());
        let store = store.ok_or_else(|| {
            BuildError(
                "people need a store with lists and decisions; call `.tasks(…)` with \
                 `TaskConfig::open` or `TaskConfig::people`"
                    .to_owned(),
            )
        })?;
        let (seal, clock) = (env.profile.seal.clone(), Arc::clone(&env.profile.clock));
        Ok(Self::from_parts(store, Some(server.clone()), seal, clock))
    }

    /// Creates the functions of a store without a server. They start no task, and create no link.
    ///
    /// # Errors
    ///
    /// If the operating system provides no random bytes.
    pub fn open(store: Arc<dyn PeopleStore>) -> Result<Self, BuildError> {
        let seal = Seal::random().map_err(|error| BuildError(error.to_string()))?;
        Ok(Self::from_parts(store, None, seal, Arc::new(TokioClock::new())))
    }

    fn from_parts(
        store: Arc<dyn PeopleStore>,
        server: Option<Server>,
        seal: Seal,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (changes, newest_event) = (OnceLock::new(), AtomicU64::new(0));
        Self(Arc::new(PeopleState { store, server, seal, clock, changes, newest_event }))
    }

    pub(super) fn store(&self) -> &Arc<dyn PeopleStore> {
        &self.0.store
    }

    /// Returns the server.
    ///
    /// # Errors
    ///
    /// If the functions belong to a store without a server.
    pub(super) fn server(&self) -> Result<&Server, PeopleError> {
        self.0.server.as_ref().ok_or(PeopleError::Forbidden(
            "a console without a server cannot do this; use the console of the server",
        ))
    }

    pub(super) fn env(&self) -> Option<&Arc<Env>> {
        self.0.server.as_ref().map(Server::env)
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(super) fn changes_channel(&self) -> &OnceLock<broadcast::Sender<TaskId>> {
        &self.0.changes
    }

    /// Returns the number of the newest known audit event.
    pub(super) fn newest_event(&self) -> u64 {
        self.0.newest_event.load(Ordering::Relaxed)
    }

    pub(super) fn know_event(&self, number: u64) {
        self.0.newest_event.fetch_max(number, Ordering::Relaxed);
    }

    /// Returns the time. Stores have clocks of their own, which decide about timeouts.
    pub(super) fn now(&self) -> UnixMillis {
        crate::server::wall_millis(&*self.0.clock)
    }

    /// Returns a tool, if there is a server that has it.
    pub(super) fn tool(&self, name: &str) -> Option<ShownTool> {
        self.0.server.as_ref()?.shown_tool(name)
    }

    /// Returns a task that the visitor sees.
    pub(super) async fn find_task(
        &self,
        visitor: &Visitor,
        id: &TaskId,
    ) -> Result<IndexedTask, PeopleError> {
        let task = self.store().task(id).await?;
        task.filter(|task| visitor.sees_task(task)).ok_or(PeopleError::NotFound)
    }

    /// Returns how long an ended task stays readable.
    pub(super) fn retention(&self) -> Duration {
        let config = self.env().and_then(|env| env.tasks.as_ref()).map(|tasks| &tasks.config);
        config.map_or_else(|| EngineConfig::default().retention, |config| config.engine.retention)
    }

    /// Returns the maximum stored bytes of a principal. An operator of a store has no limit.
    pub(super) fn max_bytes(&self, principal: &str) -> u64 {
        let tasks = self.env().and_then(|env| env.tasks.as_ref());
        tasks.map_or(u64::MAX, |tasks| tasks.allowance(principal).max_bytes)
    }

    /// Returns the retention and the maximum number of audit events.
    pub(super) fn audit_limits(&self) -> (Duration, u64) {
        let config = self.env().and_then(|env| env.tasks.as_ref()).map(|tasks| &tasks.config);
        config.map_or((AUDIT_RETENTION, u64::MAX), |it| (it.audit_retention, it.audit_events))
    }

    /// Appends events to the audit log and to the log.
    pub(super) async fn record(&self, events: Vec<AuditEvent>) -> Result<(), PeopleError> {
        events.iter().for_each(log);
        let (retention, max_events) = self.audit_limits();
        Ok(self.store().append(events, retention, max_events).await?)
    }
}

/// Returns the audit event of an action on a task.
pub(super) fn event(
    visitor: &Visitor,
    principal: &str,
    task: &TaskId,
    action: &str,
    reason: Option<String>,
) -> AuditEvent {
    let task = name_in_audit(principal, task.as_str());
    AuditEvent::new(task, visitor.actor(), action).reason(reason)
}

/// Writes an audit event to the log.
pub(super) fn log(event: &AuditEvent) {
    let AuditEvent { task, principal, action, reason, .. } = event;
    tracing::info!(target: "outlive::audit", action, task_id = task, principal, reason);
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").field("server", &self.0.server).finish_non_exhaustive()
    }
}
