//! Calls that take effect once: under an idempotency key of the client, or in a round whose journal
//! has effects.
//!
//! The store records the start of such a call before the handler runs, and its outcome after. A
//! repeated call gets the recorded outcome, and waits for it if necessary. A disconnect does not
//! stop the first call, because the client will retry.

use std::{borrow::Cow, sync::Arc, time::Duration};

use outlive_protocol::{Call, CallFuture, InputRequired, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{CreateOutcome, IdempotencyKey, Store, StoreError, TaskId};
use outlive_wire::{CallToolResult, ErrorObject, InputRequests, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::time::Instant;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::{executable::Executable, task_reply::existing, task_run::error_of},
    extract::cx::Cx,
    run::{
        bound_args::{fingerprint, hash},
        state::RunState,
    },
};

/// Time for which a started call blocks repeated calls if its process crashes.
const HOLD: Duration = Duration::from_secs(300);

/// Maximum time that a repeated call waits for the outcome of the first.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum bytes of an idempotency key.
const LONGEST_KEY: usize = 256;

/// Minimum bytes of an idempotency key of an anonymous caller: 128 random bits in Base64. Anonymous
/// callers share one namespace, so a key must be unguessable to protect its result.
const SHORTEST_SECRET: usize = 22;

/// Makes a call take effect once under a key.
#[derive(Clone)]
pub(crate) struct IdempotencyGuard {
    key: IdempotencyKey,
    /// Time for which the key blocks repeated calls if the process crashes.
    hold: Duration,
    /// Time for which the outcome is stored.
    remember: Duration,
    target: Arc<Executable>,
}

/// Stored record of a call.
#[derive(Serialize, Deserialize)]
struct CallRecord<'a> {
    /// Fingerprint of the request.
    fingerprint: Cow<'a, str>,
    /// Outcome of the call, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<RecordedOutcome>,
}

#[derive(Serialize, Deserialize)]
enum RecordedOutcome {
    Result(Box<CallToolResult>),
    Error(ErrorObject),
    InputRequired { requests: InputRequests, state: String, retry_after: Option<Duration> },
    Task(TaskId),
}

/// Result of an attempt to start a call.
enum Attempt {
    /// This attempt ran the call, with this outcome.
    Ran(Result<Outcome, ProtocolError>),
    /// The call was started before. Returns its record and the unused future.
    StartedBefore(RawJson, CallFuture),
}

impl IdempotencyGuard {
    /// Returns the guard of a call: by its key, or by a round whose journal has effects.
    pub(crate) fn new(
        env: &Env,
        tasks: &TaskBackend,
        call: &Call,
        round: Option<&RunState>,
        target: &Arc<Executable>,
    ) -> Result<Option<Self>, ProtocolError> {
        // A round without effects can be repeated, so it needs no guard.
        let with_effects = round.and_then(RunState::round_with_effects);
        // Each round under a key is guarded separately, because each has its own outcome.
        let round = round.and_then(RunState::round_id);
        let given = call.idempotency_key().transpose()?;
        let (what, hold) = match (&given, with_effects) {
            (None, None) => return Ok(None),
            (Some(key), _) if key.is_empty() || key.len() > LONGEST_KEY => {
                return Err(ProtocolError::invalid_params(format!(
                    "an idempotency key must have 1 to {LONGEST_KEY} bytes"
                )));
            }
            (Some(key), _) if call.principal().is_anonymous() && key.len() < SHORTEST_SECRET => {
                return Err(ProtocolError::invalid_params(format!(
                    "an idempotency key of an anonymous caller is its only secret; use a random key \
                     of at least {SHORTEST_SECRET} bytes, such as a UUID"
                )));
            }
            (Some(key), _) => (["key", key, round.unwrap_or_default()], HOLD),
            (None, Some(round)) => (["round", round, ""], env.profile.limits.request_state_ttl),
        };
        let fingerprint = fingerprint(env, call, &target.policy.replay.bound_args)?;
        Ok(Some(Self {
            key: IdempotencyKey::new(hash(&what), fingerprint),
            hold,
            remember: tasks.config.max_ttl,
            target: Arc::clone(target),
        }))
    }

    /// Returns the key for the task of the call.
    pub(crate) fn key(&self) -> IdempotencyKey {
        self.key.clone()
    }

    /// Runs a call, unless it was started before.
    pub(crate) async fn run(self, cx: Cx, mut work: CallFuture) -> Result<Outcome, ProtocolError> {
        // An earlier call may have created a task under this key without a record, when its tool
        // had another policy. This is checked before the key is reserved: a conflicting request
        // must not reserve it.
        if let Some(task) = self.task(&cx).await? {
            return Ok(task);
        }
        let began = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            // Spawned, because a disconnect here must not leave a reservation that blocks every
            // retry with this key.
            let trying = tokio::spawn(self.clone().try_begin(cx.clone(), work));
            let there = match trying.await.unwrap_or(Attempt::Ran(Err(ProtocolError::Internal))) {
                Attempt::Ran(outcome) => return outcome,
                Attempt::StartedBefore(there, unused) => {
                    work = unused;
                    there
                }
            };
            if let Some(outcome) = self.repeat(&cx, &there).await? {
                return Ok(outcome);
            }
            if began.elapsed() > PATIENCE {
                return Err(ProtocolError::over_limit("PATIENCE"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Returns the outcome of a call that was started before, or `None` if it is not known yet.
    async fn repeat(&self, cx: &Cx, there: &RawJson) -> Result<Option<Outcome>, ProtocolError> {
        let record: CallRecord<'_> =
            serde_json::from_str(there.get()).map_err(ProtocolError::internal)?;
        if record.fingerprint != self.key.fingerprint {
            return Err(key_conflict());
        }
        match record.outcome {
            Some(RecordedOutcome::Result(result)) => {
                Ok(Some(Outcome::Complete(MethodResult::Tool(*result))))
            }
            Some(RecordedOutcome::Error(error)) => Err(ProtocolError::Custom(error)),
            Some(RecordedOutcome::InputRequired { requests, state, retry_after }) => {
                let required = InputRequired { requests, state, retry_after };
                Ok(Some(Outcome::InputRequired(Box::new(required))))
            }
            Some(RecordedOutcome::Task(id)) => {
                let task = existing(cx, &self.target, &id).await?;
                if task.is_none() {
                    // The task was deleted, so its key is released too.
                    let store = cx.env().tasks()?.engine().store();
                    store.delete(&self.place(cx)).await.map_err(|error| unavailable(&error))?;
                }
                Ok(task)
            }
            // The process may have crashed after the promotion and before the outcome was recorded.
            None => self.task(cx).await,
        }
    }

    /// Returns the task that was created under the key, if there is one.
    async fn task(&self, cx: &Cx) -> Result<Option<Outcome>, ProtocolError> {
        let store = cx.env().tasks()?.engine().store();
        match store.find(cx.principal().key(), &self.key).await {
            Ok(Some(CreateOutcome::Existing(id))) => existing(cx, &self.target, &id).await,
            Ok(Some(CreateOutcome::KeyConflict)) => Err(key_conflict()),
            Ok(_) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Returns whether the key was used: the store has a task or an outcome under it.
    pub(crate) async fn is_used(&self, cx: &Cx) -> Result<bool, ProtocolError> {
        let store = cx.env().tasks()?.engine().store();
        let task = store.find(cx.principal().key(), &self.key).await;
        if task.map_err(|error| unavailable(&error))?.is_some() {
            return Ok(true);
        }
        let outcome = store.get_value(&self.place(cx)).await;
        Ok(outcome.map_err(|error| unavailable(&error))?.is_some())
    }

    /// Returns the outcome of an inline call under the key, if there was one.
    pub(crate) async fn done(&self, cx: &Cx) -> Result<Option<Outcome>, ProtocolError> {
        let store = cx.env().tasks()?.engine().store();
        match store.get_value(&self.place(cx)).await {
            Ok(Some(there)) => self.repeat(cx, &there).await,
            Ok(None) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Runs the call and records its outcome, unless the call was started before.
    async fn try_begin(self, cx: Cx, work: CallFuture) -> Attempt {
        let reserved = async {
            let tasks = cx.env().tasks()?;
            let (store, charge) = (tasks.engine().store(), tasks.charge(cx.principal()));
            let record = self.record(None)?;
            let there =
                store.put_if_absent(&self.place(&cx), record, self.hold, Some(&charge)).await;
            there.map_err(|error| tasks.refused(cx.call(), &error))
        };
        match reserved.await {
            Ok(None) => {}
            Ok(Some(there)) => return Attempt::StartedBefore(there, work),
            Err(error) => return Attempt::Ran(Err(error)),
        }
        // Spawned, so that an outcome is recorded even if the handler panics. Otherwise retries
        // would wait for it.
        let outcome = tokio::spawn(work).await.unwrap_or(Err(ProtocolError::Internal));
        self.settle(&cx, &outcome).await;
        Attempt::Ran(outcome)
    }

    async fn settle(&self, cx: &Cx, outcome: &Result<Outcome, ProtocolError>) {
        let recorded = match outcome {
            Ok(Outcome::Complete(MethodResult::Tool(result))) => {
                RecordedOutcome::Result(Box::new(result.clone()))
            }
            Ok(Outcome::Complete(MethodResult::Relayed(result, _))) => {
                RecordedOutcome::Result(Box::new(result.to_tool_result()))
            }
            Ok(Outcome::InputRequired(required)) => RecordedOutcome::InputRequired {
                requests: required.requests.clone(),
                state: required.state.clone(),
                retry_after: required.retry_after,
            },
            Ok(Outcome::Task(view)) => RecordedOutcome::Task(TaskId::new(view.id.as_str())),
            Ok(_) => return,
            Err(error) => RecordedOutcome::Error(error_of(cx.env(), cx.call(), error)),
        };
        let (Ok(tasks), Ok(record)) = (cx.env().tasks(), self.record(Some(recorded))) else {
            return;
        };
        let store: &dyn Store = &**tasks.engine().store();
        let (place, mut charge) = (self.place(cx), tasks.charge(cx.principal()));
        let mut written = store.put(&place, record, self.remember, Some(&charge)).await;
        if written == Err(StoreError::BytesExceeded) {
            // The client has the result. A retry with this key must not run the call again.
            let over = tasks.over_bytes(cx.principal());
            let error = RecordedOutcome::Error(error_of(cx.env(), cx.call(), &over));
            let Ok(record) = self.record(Some(error)) else { return };
            charge.max_bytes = u64::MAX;
            written = store.put(&place, record, self.remember, Some(&charge)).await;
        }
        if let Err(error) = written {
            tracing::warn!(%error, "outcome of a call under an idempotency key cannot be stored");
        }
    }

    fn record(&self, outcome: Option<RecordedOutcome>) -> Result<RawJson, ProtocolError> {
        let fingerprint = Cow::Borrowed(self.key.fingerprint.as_str());
        to_raw_value(&CallRecord { fingerprint, outcome }).map_err(ProtocolError::internal)
    }

    /// Returns the store key of the record. It includes the principal, so that keys of different
    /// callers do not collide.
    fn place(&self, cx: &Cx) -> String {
        format!("idempotency/{}", hash(&[cx.principal().key(), &self.key.key]))
    }
}

/// Returns the error for a key that was used with another request.
pub(crate) fn key_conflict() -> ProtocolError {
    ProtocolError::invalid_params(
        "this idempotency key was used for another request; use a new key",
    )
}
