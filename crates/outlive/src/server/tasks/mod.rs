//! Where calls and tasks meet: the only place that knows both the protocol and the engine.
//!
//! - `config`: how tasks are run, and [`TaskPolicy`].
//! - `start`: how a call becomes a task: at once, or when it takes too long.
//! - `once`: calls that are done once, however often they are presented.
//! - `runner`: how a task is begun again as a call.
//! - `methods`: `tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result`, `tasks/list`.

mod config;
mod methods;
mod once;
mod runner;
mod start;

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use outlive_protocol::{Call, Fault, TaskState, TaskView};
use outlive_tasks::{
    engine::{Engine, News, Refused},
    store::{StoreError, TaskId, TaskOutcome, View, WorkerId},
};
use outlive_wire::Entries;

pub use config::{OnCrash, TaskConfig, TaskPolicy};
pub(super) use methods::{cancel, gate, get, list, look_at, result, update};
pub(super) use start::course;

use super::{DurableError, Error, core::Core};
use runner::CallRunner;

/// The tasks of a server.
pub(super) struct Tasks {
    config: TaskConfig,
    core: Weak<Core>,
    engine: OnceLock<Engine>,
}

impl Tasks {
    pub(super) fn new(config: TaskConfig, core: Weak<Core>) -> Self {
        Self { config, core, engine: OnceLock::new() }
    }

    /// The engine, started when it is first needed. Must be called inside a runtime.
    pub(super) fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| {
            let runner = Arc::new(CallRunner::new(self.core.clone()));
            let worker = super::durable::random_id().unwrap_or_default();
            let engine = self.config.engine.clone();
            Engine::start(&self.config.store, runner, WorkerId::new(worker), engine)
        })
    }

    /// A task as the eras want it.
    fn show(&self, view: View) -> TaskView {
        let state = match view.outcome {
            None if view.questions.is_empty() => TaskState::Working,
            None => TaskState::InputRequired(Entries(view.questions)),
            Some(TaskOutcome::Result(raw)) => match serde_json::from_str(raw.get()) {
                Ok(result) => TaskState::Result(Box::new(result)),
                Err(error) => TaskState::Error(internal(&error.to_string())),
            },
            Some(TaskOutcome::Error(error)) => TaskState::Error(error),
            Some(TaskOutcome::Cancelled) => TaskState::Cancelled,
            Some(TaskOutcome::Expired) => TaskState::Expired,
        };
        TaskView {
            id: view.id.as_str().to_owned(),
            created: view.created,
            updated: view.updated,
            ttl: view.ttl,
            poll: u64::try_from(self.config.poll.as_millis()).unwrap_or(u64::MAX),
            message: view.message,
            state,
        }
    }
}

impl Core {
    /// Stops to run tasks in this process.
    pub(super) async fn drain(&self, patience: Duration) {
        if let Some(engine) = self.tasks.as_ref().and_then(|tasks| tasks.engine.get()) {
            engine.drain(patience).await;
        }
    }

    /// Hears of changes of these tasks from now on.
    pub(super) fn task_news(&self, ids: &[TaskId]) -> Result<News, Fault> {
        Ok(self.tasks()?.engine().news(ids))
    }

    /// Whether something that must not be done twice is done for the first time.
    pub(super) async fn first_time(&self, key: &str) -> Result<bool, Error> {
        let Some(tasks) = &self.tasks else {
            return Err(DurableError::NoStore { key: key.to_owned() }.into());
        };
        let place = format!("step/{key}");
        let kept = tasks.engine().store().keep(&place, raw_null(), tasks.config.max_ttl).await;
        Ok(kept?.is_none())
    }

    fn tasks(&self) -> Result<&Tasks, Fault> {
        self.tasks.as_ref().ok_or_else(|| Fault::internal("tasks are not switched on"))
    }
}

/// One answer for a task that is not there, not this caller's, or forgotten.
fn unknown_task() -> Fault {
    Fault::invalid_params("unknown task; it may have expired")
}

/// The store is not there: that says nothing about the task.
fn unavailable(error: &StoreError) -> Fault {
    Fault::internal(error)
}

fn refusal(refused: Refused) -> Fault {
    match refused {
        Refused::OverQuota => Fault::Busy { retry_after: Duration::from_secs(1) },
        Refused::OtherRequest => once::other_request(),
        Refused::Store(error) => unavailable(&error),
        other => Fault::internal(format_args!("a task was not made: {other:?}")),
    }
}

fn internal(message: &str) -> outlive_wire::ErrorObject {
    outlive_wire::ErrorObject {
        code: outlive_wire::code::INTERNAL,
        message: message.to_owned(),
        data: None,
    }
}

/// The error that a call would have been answered with.
fn error_of(core: &Core, call: &Call, fault: &Fault) -> outlive_wire::ErrorObject {
    #[derive(serde::Deserialize)]
    struct Response {
        error: outlive_wire::ErrorObject,
    }
    let mut out = Vec::new();
    call.era().refuse(Some(call.id()), fault, &core.profile, &mut out);
    let response = serde_json::from_slice::<Response>(&out);
    response.map_or_else(|_| internal(&fault.to_string()), |response| response.error)
}
