//! Tasks that the client runs for the input requests of a server; 2025-11-25.
//!
//! The client returns a task immediately and the server polls for the input response, so no request
//! stays open while a user decides. Each client has its own tasks, so servers cannot see each
//! other's.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks>

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use outlive_protocol::rfc3339;
use outlive_wire::{Meta, RawJson, code};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::watch, task::AbortHandle, time::Instant};

/// Maximum number of tasks per server.
const MOST: usize = 100;
/// TTL of a task, if the server names none.
const TTL: Duration = Duration::from_secs(60 * 60);
/// Maximum TTL of a task.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Poll interval that the client suggests, in milliseconds.
const POLL: u64 = 1_000;

/// Result of an input request, or an error code and message.
pub(crate) type Outcome = Result<RawJson, (i32, String)>;

/// Tasks of one server.
#[derive(Debug, Default)]
pub(crate) struct Hosted {
    tasks: Mutex<BTreeMap<String, Task>>,
}

#[derive(Debug)]
struct Task {
    created: SystemTime,
    updated: SystemTime,
    until: Instant,
    ttl: Duration,
    outcome: watch::Sender<Option<State>>,
    working: Option<AbortHandle>,
}

#[derive(Clone, Debug)]
enum State {
    Done(RawJson),
    Failed(i32, String),
    Cancelled,
}

impl Hosted {
    /// Creates a task for an input response in progress and returns the task for the server.
    pub(crate) fn host(
        self: &Arc<Self>,
        params: &str,
        answering: impl Future<Output = Outcome> + Send + 'static,
    ) -> Outcome {
        let ttl = ttl_in(params)?;
        let id = super::random::random_id();
        let (outcome, _) = watch::channel(None);
        let now = SystemTime::now();
        let task = Task {
            created: now,
            updated: now,
            until: Instant::now() + ttl,
            ttl,
            outcome,
            working: None,
        };
        let told = task.told(&id);
        {
            let mut tasks = self.tasks();
            if tasks.len() >= MOST {
                return Err((code::INTERNAL, "too many tasks; retry later".to_owned()));
            }
            tasks.insert(id.clone(), task);
        }
        let here = Arc::clone(self);
        let own = id.clone();
        let working = tokio::spawn(async move {
            let state = match answering.await {
                Ok(result) => State::Done(result),
                Err((code, message)) => State::Failed(code, message),
            };
            here.end(&own, state);
        });
        if let Some(task) = self.tasks().get_mut(&id) {
            task.working = Some(working.abort_handle());
        }
        raw(&json!({"task": told}))
    }

    /// `tasks/get`.
    pub(crate) fn get(&self, id: &str) -> Outcome {
        self.tasks().get(id).map(|task| task.told(id)).map_or_else(unknown, |told| raw(&told))
    }

    /// `tasks/list`.
    pub(crate) fn list(&self) -> Outcome {
        let told: Vec<Value> = self.tasks().iter().map(|(id, task)| task.told(id)).collect();
        raw(&json!({"tasks": told}))
    }

    /// `tasks/cancel`. Rejected if the task has ended.
    pub(crate) fn cancel(&self, id: &str) -> Outcome {
        match self.tasks().get(id) {
            None => return unknown(),
            Some(task) if task.outcome.borrow().is_some() => {
                return Err((code::INVALID_PARAMS, "the task has ended".to_owned()));
            }
            Some(task) => {
                if let Some(working) = &task.working {
                    working.abort();
                }
            }
        }
        self.end(id, State::Cancelled);
        self.get(id)
    }

    /// `tasks/result`. Waits until the task has ended.
    pub(crate) async fn result(&self, id: &str) -> Outcome {
        let Some(mut over) = self.tasks().get(id).map(|task| task.outcome.subscribe()) else {
            return unknown();
        };
        let state = match over.wait_for(Option::is_some).await {
            Ok(state) => state.clone(),
            // The task expired during the wait.
            Err(_) => return unknown(),
        };
        match state {
            Some(State::Done(result)) => {
                let mut result: Value = serde_json::from_str(result.get()).unwrap_or_default();
                result["_meta"] = json!({Meta::RELATED_TASK: {"taskId": id}});
                raw(&result)
            }
            Some(State::Failed(code, message)) => Err((code, message)),
            Some(State::Cancelled) | None => {
                Err((code::INTERNAL, "the task was cancelled".to_owned()))
            }
        }
    }

    fn end(&self, id: &str, state: State) {
        if let Some(task) = self.tasks().get_mut(id) {
            task.outcome.send_if_modified(|outcome| {
                let is_first = outcome.is_none();
                if is_first {
                    *outcome = Some(state);
                }
                is_first
            });
            task.updated = SystemTime::now();
        }
    }

    /// Locks the tasks and removes the expired ones.
    fn tasks(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Task>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        tasks.retain(|_, task| task.until > now);
        tasks
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // An expired task cannot be read, so its input handler is stopped.
        if let Some(working) = &self.working {
            working.abort();
        }
    }
}

impl Task {
    fn told(&self, id: &str) -> Value {
        let status = match &*self.outcome.borrow() {
            None => "working",
            Some(State::Done(_)) => "completed",
            Some(State::Failed(..)) => "failed",
            Some(State::Cancelled) => "cancelled",
        };
        #[expect(clippy::cast_possible_truncation, reason = "a day in milliseconds")]
        let ttl = self.ttl.as_millis() as u64;
        json!({
            "taskId": id,
            "status": status,
            "createdAt": moment(self.created),
            "lastUpdatedAt": moment(self.updated),
            "ttl": ttl,
            "pollInterval": POLL,
        })
    }
}

fn moment(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    rfc3339(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Returns whether a request asks for a task.
pub(crate) fn wants_task(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Params {
        task: Option<Value>,
    }
    serde_json::from_str::<Params>(params).is_ok_and(|params| params.task.is_some())
}

fn ttl_in(params: &str) -> Result<Duration, (i32, String)> {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    match params.pointer("/task/ttl") {
        None | Some(Value::Null) if params["task"].is_object() => Ok(TTL),
        Some(ttl) => match ttl.as_u64() {
            Some(ttl) => Ok(Duration::from_millis(ttl).min(LONGEST)),
            None => Err((code::INVALID_PARAMS, "`ttl` must be milliseconds".to_owned())),
        },
        _ => Err((code::INVALID_PARAMS, "`task` must be an object".to_owned())),
    }
}

fn unknown() -> Outcome {
    Err((code::INVALID_PARAMS, "unknown task".to_owned()))
}

fn raw(value: &Value) -> Outcome {
    serde_json::value::to_raw_value(value).map_err(|error| (code::INTERNAL, error.to_string()))
}
