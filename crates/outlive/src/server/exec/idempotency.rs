//! Calls that are done once, however often they are presented: under a key of the caller's, or in
//! a round whose journal holds what has been done before.
//!
//! That such a call began is noted in the store before its handler runs, and what came of it after.
//! Whoever presents it again is told what came of it, and waits for that if need be. A caller who
//! leaves does not stop it: it will ask again.

use std::{borrow::Cow, sync::Arc, time::Duration};

use outlive_protocol::{Call, CallFuture, InputRequired, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{CreateOutcome, IdempotencyKey, Store, StoreError, TaskId};
use outlive_wire::{CallToolResult, ErrorObject, InputRequests, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::{
    hex::hex,
    server::{
        env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
        exec::{executable::Executable, task_reply::existing, task_run::error_of},
        extract::cx::Cx,
        run::{bound_args::fingerprint, state::RunState},
    },
};

/// For how long a call that has begun keeps others from beginning it, should its process be lost.
const HOLD: Duration = Duration::from_secs(300);

/// How long somebody who presents it again waits for what comes of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an idempotency key may be.
const LONGEST_KEY: usize = 256;

/// How long an idempotency key is at least that nobody can guess: 128 random bits, written as
/// shortly as can be. Callers without a name share one namespace, in which the key is all that
/// keeps others from a result.
const SHORTEST_SECRET: usize = 22;

/// What a call is done once under.
#[derive(Clone)]
pub(crate) struct IdempotencyGuard {
    key: IdempotencyKey,
    /// For how long it is held when it has begun and its process is lost.
    hold: Duration,
    /// For how long what came of it is remembered.
    remember: Duration,
    target: Arc<Executable>,
}

/// What is noted of a call.
#[derive(Serialize, Deserialize)]
struct Note<'a> {
    /// What was asked for.
    digest: Cow<'a, str>,
    /// What came of it, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    came: Option<Came>,
}

#[derive(Serialize, Deserialize)]
enum Came {
    Result(Box<CallToolResult>),
    Error(ErrorObject),
    Asked { requests: InputRequests, state: String, retry_after: Option<Duration> },
    Task(TaskId),
}

/// What came of the attempt to begin a call.
enum Begun {
    /// It was begun, and this came of it.
    Over(Result<Outcome, ProtocolError>),
    /// It had been begun before. What begins it was not needed.
    Before(RawJson, CallFuture),
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
        // A round without effects can be presented any number of times.
        let with_effects = round.and_then(RunState::round_with_effects);
        // Under a key every round counts: each of them has another outcome.
        let round = round.and_then(RunState::round_id);
        let given = call.idempotency_key().transpose()?;
        let (what, hold) = match (&given, with_effects) {
            (None, None) => return Ok(None),
            (Some(key), _) if key.is_empty() || key.len() > LONGEST_KEY => {
                return Err(ProtocolError::invalid_params(format!(
                    "an idempotency key has 1 to {LONGEST_KEY} bytes"
                )));
            }
            (Some(key), _) if call.principal().is_anonymous() && key.len() < SHORTEST_SECRET => {
                return Err(ProtocolError::invalid_params(format!(
                    "an idempotency key of a caller without a name is its only secret: use a random \
                     one of at least {SHORTEST_SECRET} bytes, such as a UUID"
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

    /// The key under which its task is made.
    pub(crate) fn key(&self) -> IdempotencyKey {
        self.key.clone()
    }

    /// Does a call, unless it has been done.
    pub(crate) async fn run(self, cx: Cx, mut work: CallFuture) -> Result<Outcome, ProtocolError> {
        // The key may have made a task without a note, when its tool had another policy. Looked for
        // before anything is noted: who uses the key for something else must not take it away.
        if let Some(task) = self.task(&cx).await? {
            return Ok(task);
        }
        let began = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            // By itself: who leaves while it is being noted would leave a note behind under which
            // nobody works, and for which everybody waits.
            let trying = tokio::spawn(self.clone().try_begin(cx.clone(), work));
            let there = match trying.await.unwrap_or(Begun::Over(Err(ProtocolError::Internal))) {
                Begun::Over(outcome) => return outcome,
                Begun::Before(there, unused) => {
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

    /// What came of a call that was begun before; `None` if that is not known yet.
    async fn repeat(&self, cx: &Cx, there: &RawJson) -> Result<Option<Outcome>, ProtocolError> {
        let note: Note<'_> = serde_json::from_str(there.get()).map_err(ProtocolError::internal)?;
        if note.digest != self.key.fingerprint {
            return Err(key_conflict());
        }
        match note.came {
            Some(Came::Result(result)) => Ok(Some(Outcome::Complete(MethodResult::Tool(*result)))),
            Some(Came::Error(error)) => Err(ProtocolError::Custom(error)),
            Some(Came::Asked { requests, state, retry_after }) => {
                let asked = InputRequired { requests, state, retry_after };
                Ok(Some(Outcome::InputRequired(Box::new(asked))))
            }
            Some(Came::Task(id)) => {
                let task = existing(cx, &self.target, &id).await?;
                if task.is_none() {
                    // It has been forgotten, and so is its key.
                    let store = cx.env().tasks()?.engine().store();
                    store.delete(&self.place(cx)).await.map_err(|error| unavailable(&error))?;
                }
                Ok(task)
            }
            // Its process may have been lost after it became a task, and before that was noted.
            None => self.task(cx).await,
        }
    }

    /// The task that was made under the key, if there is one.
    async fn task(&self, cx: &Cx) -> Result<Option<Outcome>, ProtocolError> {
        let store = cx.env().tasks()?.engine().store();
        match store.find(cx.principal().key(), &self.key).await {
            Ok(Some(CreateOutcome::Existing(id))) => existing(cx, &self.target, &id).await,
            Ok(Some(CreateOutcome::KeyConflict)) => Err(key_conflict()),
            Ok(_) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// What came of a call without a task that was done under the key, if there was one.
    pub(crate) async fn done(&self, cx: &Cx) -> Result<Option<Outcome>, ProtocolError> {
        let store = cx.env().tasks()?.engine().store();
        match store.get_value(&self.place(cx)).await {
            Ok(Some(there)) => self.repeat(cx, &there).await,
            Ok(None) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Does it, and notes what came of it; unless it has been begun before.
    async fn try_begin(self, cx: Cx, work: CallFuture) -> Begun {
        let noted = async {
            let tasks = cx.env().tasks()?;
            let (store, charge) = (tasks.engine().store(), tasks.charge(cx.principal()));
            let note = self.note(None)?;
            let there = store.put_if_absent(&self.place(&cx), note, self.hold, Some(&charge)).await;
            there.map_err(|error| tasks.refused(cx.call(), &error))
        };
        match noted.await {
            Ok(None) => {}
            Ok(Some(there)) => return Begun::Before(there, work),
            Err(fault) => return Begun::Over(Err(fault)),
        }
        // By itself, so that there is a word about a handler that panics, too: without one,
        // everybody would wait for what came of it.
        let outcome = tokio::spawn(work).await.unwrap_or(Err(ProtocolError::Internal));
        self.settle(&cx, &outcome).await;
        Begun::Over(outcome)
    }

    async fn settle(&self, cx: &Cx, outcome: &Result<Outcome, ProtocolError>) {
        let came = match outcome {
            Ok(Outcome::Complete(MethodResult::Tool(result))) => {
                Came::Result(Box::new(result.clone()))
            }
            Ok(Outcome::InputRequired(asked)) => Came::Asked {
                requests: asked.requests.clone(),
                state: asked.state.clone(),
                retry_after: asked.retry_after,
            },
            Ok(Outcome::Task(view)) => Came::Task(TaskId::new(view.id.as_str())),
            Ok(_) => return,
            Err(fault) => Came::Error(error_of(cx.env(), cx.call(), fault)),
        };
        let (Ok(tasks), Ok(note)) = (cx.env().tasks(), self.note(Some(came))) else { return };
        let store: &dyn Store = &**tasks.engine().store();
        let (place, mut charge) = (self.place(cx), tasks.charge(cx.principal()));
        let mut noted = store.put(&place, note, self.remember, Some(&charge)).await;
        if noted == Err(StoreError::BytesExceeded) {
            // Its caller has the result. A retry with this key must not run the call again.
            let over = tasks.over_bytes(cx.principal());
            let came = Came::Error(error_of(cx.env(), cx.call(), &over));
            let Ok(note) = self.note(Some(came)) else { return };
            charge.max_bytes = u64::MAX;
            noted = store.put(&place, note, self.remember, Some(&charge)).await;
        }
        if let Err(error) = noted {
            tracing::warn!(%error, "what came of a call could not be noted");
        }
    }

    fn note(&self, came: Option<Came>) -> Result<RawJson, ProtocolError> {
        let digest = Cow::Borrowed(self.key.fingerprint.as_str());
        to_raw_value(&Note { digest, came }).map_err(ProtocolError::internal)
    }

    /// Where it is noted. What callers choose is theirs alone.
    fn place(&self, cx: &Cx) -> String {
        format!("idempotency/{}", hash(&[cx.principal().key(), &self.key.key]))
    }
}

/// The key was used before, for something else.
pub(crate) fn key_conflict() -> ProtocolError {
    ProtocolError::invalid_params(
        "this idempotency key was used for another request; use another one",
    )
}

/// A digest of several texts that no other texts have.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}
