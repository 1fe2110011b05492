//! The store and the engine of a server, with quotas, audit log and shared sessions.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use outlive_protocol::{Call, Clock, Profile, TaskCapability};
use outlive_tasks::{
    engine::{Engine, TaskRunner},
    store::{NewTask, OutcomeKind, PeopleStore, Subscription, TaskId, WorkerId},
};

use crate::deliveries::Sender;
use crate::server::{
    caller_key::caller_key,
    config::TaskConfig,
    env::{
        address_quotas::AddressQuotas, audit::Auditor, bridges::Bridges, overview::Overview,
        store_budget::Fullness, task_metrics::TaskMetrics, task_notifier::TaskNotifier,
    },
    hosts::{Hosts, learned::Learned},
    metrics::Counters,
    sessions::{charge::MaxBytes, store::SharedSessions},
    throttle::Throttle,
};

/// Task support of a server: the store, the engine and their settings.
pub(crate) struct TaskBackend {
    pub(crate) config: TaskConfig,
    /// The store with lists and decisions, if it has them. A gate needs it.
    pub(crate) people: Option<Arc<dyn PeopleStore>>,
    pub(crate) counters: Arc<Counters>,
    /// Rate limit on polls per caller.
    pub(crate) polls: Arc<Throttle>,
    pub(crate) quotas: Arc<AddressQuotas>,
    /// Requests that wait for tasks of bridged calls.
    pub(crate) bridges: Bridges,
    sessions: SharedSessions,
    clock: Arc<dyn Clock>,
    /// Learned limits of clients, if the server learns them.
    pub(crate) learned: Option<Learned>,
    /// Notifications, if the server has targets.
    notifier: Option<TaskNotifier>,
    runner: Arc<dyn TaskRunner>,
    worker_id: WorkerId,
    running: OnceLock<Running>,
}

/// Background services, started on first use.
struct Running {
    engine: Engine,
    auditor: Arc<Auditor>,
    fullness: Fullness,
    /// Counts for the overview of a console, if the server has one.
    overview: Option<Arc<Overview>>,
    sender: Option<Sender>,
}

/// Minimum time to write the last audit events.
const MIN_FLUSH: Duration = Duration::from_secs(1);

impl Running {
    async fn flush(&self, timeout: Duration) {
        let flushing = async {
            self.auditor.flush().await;
            if let Some(overview) = &self.overview {
                overview.flush().await;
            }
        };
        if tokio::time::timeout(timeout.max(MIN_FLUSH), flushing).await.is_err() {
            tracing::warn!(
                "audit log not flushed before the timeout; the last events are only in the log"
            );
        }
    }
}

impl TaskBackend {
    pub(crate) fn new(
        config: TaskConfig,
        profile: &Arc<Profile>,
        counters: &Arc<Counters>,
        runner: Arc<dyn TaskRunner>,
        worker_id: WorkerId,
    ) -> Self {
        let polls = Arc::new(Throttle::new(config.poll_rate, None));
        let (per_caller, anonymous) = (config.store_per_caller, config.anonymous_store);
        let max_bytes = MaxBytes { per_caller, anonymous };
        let sessions = SharedSessions::new(Arc::clone(&config.store) as _, profile, max_bytes);
        let learns = config.hosts.as_ref().is_some_and(Hosts::learns);
        let learned = learns
            .then(|| Learned::new(Arc::clone(&config.store) as _, Arc::clone(&profile.clock)));
        let (counters, quotas) = (Arc::clone(counters), Arc::default());
        let (bridges, running) = (Bridges::new(), OnceLock::new());
        let clock = Arc::clone(&profile.clock);
        let people = config.people.clone();
        Self {
            config,
            people,
            counters,
            polls,
            quotas,
            bridges,
            sessions,
            clock,
            learned,
            notifier: None,
            runner,
            worker_id,
            running,
        }
    }

    /// Sets the notifications of the server.
    pub(crate) fn notifier(self, notifier: Option<TaskNotifier>) -> Self {
        Self { notifier, ..self }
    }

    /// Returns the events of a new task of a tool that targets are notified of.
    pub(crate) fn subscriptions(&self, tool: &str) -> Vec<Subscription> {
        self.notifier.as_ref().map(|notifier| notifier.subscriptions(tool)).unwrap_or_default()
    }

    /// Takes note of a task that is about to be created.
    pub(crate) fn creating(&self, task: &NewTask) {
        if let Some(overview) = &self.running().overview {
            overview.creating(task);
        }
    }

    /// Takes note of a task without a worker that a person cancelled. The audit event of the person
    /// does not pass the auditor of this backend.
    pub(crate) fn cancelled_by_person(&self, principal: &str, task: &TaskId) {
        self.quotas.leave(task);
        if let Some(overview) = &self.running().overview {
            overview.note(principal, task, OutcomeKind::Cancelled.as_str(), None);
        }
    }

    /// Takes back a task that was admitted and not created.
    pub(crate) fn not_created(&self, task: &TaskId) {
        self.quotas.leave(task);
        if let Some(overview) = &self.running().overview {
            overview.not_created(task);
        }
    }

    /// Returns the sessions that all replicas on the store share.
    pub(crate) fn sessions(&self) -> &SharedSessions {
        &self.sessions
    }

    /// Returns the ID of this process's worker.
    pub(crate) fn worker_id(&self) -> &WorkerId {
        &self.worker_id
    }

    /// Returns the engine. Starts it on first use. Must be called inside a Tokio runtime.
    pub(crate) fn engine(&self) -> &Engine {
        &self.running().engine
    }

    fn running(&self) -> &Running {
        self.running.get_or_init(|| {
            let config = &self.config;
            let with_console = self.people.as_ref().filter(|_| config.indexed);
            let overview = with_console.map(|store| {
                let clock = Arc::clone(&self.clock);
                Arc::new(Overview::start(Arc::clone(store), self.worker_id.clone(), clock))
            });
            let auditor = Arc::new(Auditor::start(
                Arc::clone(&config.store) as _,
                config.audit_retention,
                config.audit_events,
                overview.clone(),
            ));
            let observer = Arc::new(TaskMetrics {
                counters: Arc::clone(&self.counters),
                quotas: Arc::clone(&self.quotas),
                auditor: Arc::clone(&auditor),
                worker_id: self.worker_id.clone(),
            });
            let mut engine = config.engine.clone();
            // Timelines show the durations of steps.
            engine.record_durations |= config.indexed;
            let engine = Engine::start(
                &config.store,
                Arc::clone(&self.runner),
                Some(observer),
                self.worker_id.clone(),
                engine,
            );
            let fullness = Fullness::watch(&config.store, config.max_store);
            let sender = self.notifier.as_ref().map(TaskNotifier::start);
            Running { engine, auditor, fullness, overview, sender }
        })
    }

    /// Drains the engine, if it runs, and flushes the audit log. Notifications that are being sent
    /// may finish meanwhile.
    pub(crate) async fn drain(&self, timeout: Duration) {
        let Some(running) = self.running.get() else { return };
        let sending = async {
            if let Some(sender) = &running.sender {
                sender.drain(timeout).await;
            }
        };
        tokio::join!(running.engine.drain(timeout), sending);
        running.flush(timeout).await;
    }

    /// Drains runs that were promoted after [`TaskBackend::drain`], and flushes the audit log.
    pub(crate) async fn drain_promoted(&self, timeout: Duration) {
        let Some(running) = self.running.get() else { return };
        running.engine.drain_promoted(timeout).await;
        running.flush(timeout).await;
    }

    /// Returns whether the store has reached `max_store` and rejects new tasks and entries.
    pub(crate) fn is_full(&self) -> bool {
        self.running().fullness.is_full()
    }

    /// Returns the maximum number of segments of a task, and the maximum bytes of each.
    pub(crate) fn segment_bounds(&self) -> (usize, usize) {
        (self.config.segments, self.config.segment_bytes)
    }

    /// Returns the task capability that the server advertises.
    pub(crate) fn offers(&self, list: bool) -> TaskCapability {
        TaskCapability { list, modes: self.config.modes, partials: self.config.partials }
    }

    /// Returns the maximum size of a task's journal in bytes.
    pub(crate) fn journal_bytes(&self) -> usize {
        self.config.journal_bytes
    }

    /// Adds an audit event for an action of a principal on a task.
    pub(crate) fn audit(
        &self,
        principal: &str,
        id: &TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        self.running().auditor.note(principal, id, what, cause);
    }

    /// Adds an audit event without a line in the log. The task ID is empty for inline calls.
    pub(crate) fn audit_quietly(
        &self,
        principal: &str,
        task: &str,
        what: &'static str,
        cause: String,
    ) {
        self.running().auditor.note_quietly(principal, TaskId::new(task), what, Some(cause));
    }

    /// Adds an audit event for the action of a call on a task.
    pub(crate) fn note(&self, call: &Call, id: &TaskId, what: &'static str, cause: Option<String>) {
        self.audit(call.principal().key(), id, what, cause);
    }

    /// Counts a failed or rate-limited lookup. Such lookups are counted because a caller can make
    /// any number of them.
    pub(crate) fn count(&self, call: &Call, id: &TaskId, what: &'static str) {
        self.running().auditor.count(caller_key(call), call.principal().key(), id, what);
    }
}
