//! Where calls and tasks meet: the only place that knows both the protocol and the engine.
//!
//! - `audit`, `witness`: what is written down and counted.
//! - `budget`: how much callers may have stored.
//! - `clean_up`: what is done after a task that was cancelled or has expired.
//! - `config`: how tasks are run, and [`TaskPolicy`].
//! - `start`: how a call becomes a task: at once, or when it takes too long.
//! - `modes`: in which way a call that asks for a task is answered; `stream`: with its content as it
//!   grows.
//! - `once`: calls that are done once, however often they are presented.
//! - `partials`: what a task has emitted; `following`: for those who listen to it.
//! - `peers`: how many tasks there are for each address whose callers have no name.
//! - `progress`: how far a task is, for those who wait for it.
//! - `runner`: how a task is begun again as a call.
//! - `methods`: `tasks/get`, `tasks/update`, `tasks/cancel`; `list`: `tasks/list` and our own list;
//!   `result`: `tasks/result`; `dialogue`: what a client that waits is asked and told.

mod audit;
mod budget;
mod clean_up;
mod config;
mod dialogue;
mod following;
mod list;
mod methods;
mod modes;
mod once;
mod partials;
mod peers;
mod progress;
mod result;
mod runner;
mod start;
mod stream;
mod witness;

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use outlive_protocol::{
    Call, CompletionOutcome, Principal, Profile, ProtocolError, TaskCapability, TaskState,
    TaskView, era,
};
use outlive_tasks::{
    JournalError,
    engine::{ChangeStream, CreateError, Engine},
    store::{InputSource, StoreError, TaskId, TaskOutcome, TaskRecord, WorkerId},
};
use outlive_wire::{OrderedMap, RawJson};
use serde_json::value::RawValue;

pub(super) use clean_up::Hook;
pub use clean_up::{Cleanup, CleanupReason, IntoCleanupResult};
pub use config::{OnCrash, ResponseMode, TaskConfig, TaskPolicy};
pub(super) use following::Following;
pub(super) use list::{list, list_all};
pub(super) use methods::{cancel, gate, get, look_at, update};
pub(super) use progress::TaskProgress;
pub(super) use result::{LOOK, result};
pub(super) use start::course;

use super::{
    DurableError, Error,
    core::{Core, caller_key},
    durable::Token,
    sessions::{MaxBytes, SessionNotes},
    throttle::Throttle,
};
use audit::Auditor;
pub(crate) use audit::shown as name_in_audit;
use budget::Fullness;
use peers::Peers;
use runner::CallRunner;
use witness::Witness;

/// The tasks of a server.
pub(super) struct Tasks {
    config: TaskConfig,
    core: Weak<Core>,
    polls: Arc<Throttle>,
    peers: Peers,
    sessions: SessionNotes,
    running: OnceLock<Running>,
}

/// What runs in the background, from the first time it is needed.
struct Running {
    engine: Engine,
    auditor: Arc<Auditor>,
    fullness: Fullness,
}

impl Tasks {
    pub(super) fn new(config: TaskConfig, core: Weak<Core>, profile: &Arc<Profile>) -> Self {
        let polls = Arc::new(Throttle::new(config.poll_rate, None));
        let (per_caller, anonymous) = (config.store_per_caller, config.anonymous_store);
        let max_bytes = MaxBytes { per_caller, anonymous };
        let sessions = SessionNotes::new(Arc::clone(&config.store) as _, profile, max_bytes);
        let peers = Peers::default();
        Self { config, core, polls, peers, sessions, running: OnceLock::new() }
    }

    /// The sessions that all replicas on the store know.
    pub(super) fn sessions(&self) -> &SessionNotes {
        &self.sessions
    }

    /// The engine, started when it is first needed. Must be called inside a runtime.
    pub(super) fn engine(&self) -> &Engine {
        &self.running().engine
    }

    fn running(&self) -> &Running {
        self.running.get_or_init(|| {
            let config = &self.config;
            let auditor = Arc::new(Auditor::start(
                Arc::clone(&config.store) as _,
                config.audit_retention,
                config.audit_events,
            ));
            let runner = Arc::new(CallRunner::new(self.core.clone()));
            let observer = Witness { core: self.core.clone(), auditor: Arc::clone(&auditor) };
            let worker = WorkerId::new(super::durable::random_id().unwrap_or_default());
            let engine = config.engine.clone();
            let engine =
                Engine::start(&config.store, runner, Some(Arc::new(observer)), worker, engine);
            let fullness = Fullness::watch(&config.store, config.max_store);
            Running { engine, auditor, fullness }
        })
    }

    /// How many blocks a task may emit, and how many bytes each may have.
    pub(super) fn segment_bounds(&self) -> (usize, usize) {
        (self.config.segments, self.config.segment_bytes)
    }

    /// How the server offers tasks.
    pub(super) fn offers(&self, list: bool) -> TaskCapability {
        TaskCapability { list, modes: self.config.modes, partials: self.config.partials }
    }

    /// How many bytes the journal of a task may have.
    pub(super) fn journal_bytes(&self) -> usize {
        self.config.journal_bytes
    }

    /// A caller has done something to a task, or tried to.
    fn note(&self, call: &Call, id: &TaskId, what: &'static str, cause: Option<String>) {
        self.running().auditor.note(call.principal().key(), id, what, cause);
    }

    /// A caller has looked for a task in vain, or too often. Counted, because there is no end of it.
    fn count(&self, call: &Call, id: &TaskId, what: &'static str) {
        self.running().auditor.count(caller_key(call), call.principal().key(), id, what);
    }

    /// A task as the eras want it.
    fn show(&self, view: TaskRecord) -> TaskView {
        let state = match view.outcome {
            None if view.input_requests.is_empty() => TaskState::Working,
            None => TaskState::InputRequired(OrderedMap(view.input_requests)),
            Some(TaskOutcome::Result(raw)) => match serde_json::from_str(raw.get()) {
                Ok(result) => TaskState::Result(Box::new(result)),
                Err(error) => TaskState::Error(internal(&error.to_string())),
            },
            Some(TaskOutcome::Error(error)) => TaskState::Error(error),
            Some(TaskOutcome::Cancelled) => TaskState::Cancelled,
            Some(TaskOutcome::Expired) => TaskState::Expired,
        };
        let is_over = state.is_over();
        let kept = view.progress.filter(|_| self.config.partials && !is_over);
        TaskView {
            id: view.id.as_str().to_owned(),
            created: view.created_at,
            updated: view.updated_at,
            ttl: view.ttl,
            poll: millis(self.config.poll),
            message: view.status_message,
            progress: kept.and_then(|kept| Some(TaskProgress::read(&kept)?.into_progress())),
            immediate: None,
            fell_back: false,
            state,
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Core {
    /// Stops to run tasks in this process, and then ends the streams of those who listen.
    pub(super) async fn drain(&self, timeout: Duration) {
        if let Some(running) = self.tasks.as_ref().and_then(|tasks| tasks.running.get()) {
            running.engine.drain(timeout).await;
            if tokio::time::timeout(timeout, running.auditor.flush()).await.is_err() {
                tracing::warn!("the last events could not be written to the store");
            }
        }
        // After that, because a client that comes to another replica finds its tasks there.
        self.profile.bus.close();
    }

    /// Takes what came of something that a task waits for.
    pub(super) async fn answer_from_outside(
        &self,
        token: Token,
        value: RawJson,
    ) -> CompletionOutcome {
        let Ok(tasks) = self.tasks() else { return CompletionOutcome::Unknown };
        let Token { task, principal, key } = token;
        let id = TaskId::new(task);
        let said = vec![(key, value)];
        let max_bytes = tasks.allowance(&principal).max_bytes;
        let store = tasks.engine().store();
        let taken = store.respond(&principal, &id, InputSource::External, said, max_bytes).await;
        let (what, completed) = match taken {
            Ok(Some(1..)) => ("completed-outside", CompletionOutcome::Taken),
            Ok(_) => ("completed-outside-too-late", CompletionOutcome::TooLate),
            Err(error) => return CompletionOutcome::Unavailable(error.to_string()),
        };
        tasks.running().auditor.note(&principal, &id, what, None);
        completed
    }

    /// Hears of changes of these tasks from now on.
    pub(super) fn task_news(&self, ids: &[TaskId]) -> Result<ChangeStream, ProtocolError> {
        Ok(self.tasks()?.engine().news(ids))
    }

    /// Keeps the journal of a round.
    pub(super) async fn keep_journal(
        &self,
        call: &Call,
        place: &str,
        journal: RawJson,
        ttl: Duration,
    ) -> Result<(), ProtocolError> {
        let tasks = self.tasks()?;
        let (store, charge) = (tasks.engine().store(), tasks.charge(call.principal()));
        let kept =
            store.put_if_absent(&format!("journal/{place}"), journal, ttl, Some(&charge)).await;
        kept.map(drop).map_err(|error| tasks.refused(call, &error))
    }

    /// The journal of a round, unless its time is over.
    pub(super) async fn kept_journal(&self, place: &str) -> Result<Option<RawJson>, ProtocolError> {
        let store = self.tasks()?.engine().store();
        let kept = store.get_value(&format!("journal/{place}")).await;
        kept.map_err(|error| unavailable(&error))
    }

    /// Whether something that must not be done twice is done for the first time; `None` if there
    /// is no store to remember it.
    pub(super) async fn first_time(
        &self,
        principal: &Principal,
        key: &str,
    ) -> Option<Result<bool, Error>> {
        let tasks = self.tasks.as_ref()?;
        let place = format!("step/{key}");
        let (store, charge) = (tasks.engine().store(), tasks.charge(principal));
        let kept =
            store.put_if_absent(&place, nothing(), tasks.config.max_ttl, Some(&charge)).await;
        Some(kept.map(|there| there.is_none()).map_err(|error| match error {
            StoreError::OverBytes => {
                let limit = tasks.allowance(principal.key()).limit;
                DurableError::from(JournalError::OverBytes { limit }).into()
            }
            error => error.into(),
        }))
    }

    fn tasks(&self) -> Result<&Tasks, ProtocolError> {
        self.tasks.as_ref().ok_or_else(|| ProtocolError::internal("tasks are not switched on"))
    }
}

/// One answer for a task that is not there, not this caller's, or forgotten.
fn unknown_task() -> ProtocolError {
    ProtocolError::invalid_params("unknown task; it may have expired")
}

/// The store is not there: that says nothing about the task.
fn unavailable(error: &StoreError) -> ProtocolError {
    match error {
        StoreError::Unavailable(_) => ProtocolError::unavailable(error),
        _ => ProtocolError::internal(error),
    }
}

fn refusal(tasks: &Tasks, call: &Call, refused: CreateError) -> ProtocolError {
    match refused {
        CreateError::OverQuota => ProtocolError::OverLimit {
            limit: if call.principal().is_anonymous() {
                "max_anonymous_tasks"
            } else {
                "max_tasks_per_caller"
            }
            .into(),
            retry_after: Duration::from_secs(1),
        },
        CreateError::OverBytes => tasks.over_bytes(call.principal()),
        CreateError::OtherRequest => once::other_request(),
        CreateError::Store(error) => unavailable(&error),
        other => ProtocolError::internal(format_args!("a task was not made: {other:?}")),
    }
}

/// A note that says nothing but that it is there.
fn nothing() -> RawJson {
    RawValue::NULL.to_owned()
}

fn internal(message: &str) -> outlive_wire::ErrorObject {
    outlive_wire::ErrorObject {
        code: outlive_wire::code::INTERNAL,
        message: message.to_owned(),
        data: None,
    }
}

/// The error that a call would have been answered with.
fn error_of(core: &Core, call: &Call, fault: &ProtocolError) -> outlive_wire::ErrorObject {
    #[derive(serde::Deserialize)]
    struct Response {
        error: outlive_wire::ErrorObject,
    }
    let mut out = Vec::new();
    era::codec(call.rules().era).encode_error(Some(call.id()), fault, &core.profile, &mut out);
    let response = serde_json::from_slice::<Response>(&out);
    response.map_or_else(|_| internal(&fault.to_string()), |response| response.error)
}
