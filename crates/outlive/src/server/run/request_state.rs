//! The request state: the sealed journal that a client holds between the rounds of a call.
//!
//! It is sealed, and valid for one principal, method, target and set of arguments.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use std::{collections::BTreeMap, sync::Arc};

use outlive_protocol::{Call, ProtocolError};
use outlive_tasks::{JournalEntry, JournalSnapshot, OpenInputRequest, store::TaskId};
use outlive_wire::{CreateMessageResult, ElicitResult, InputRequest, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::server::{
    caller_key::caller_key,
    env::environment::Env,
    random::random_id,
    run::{
        bound_args::{self, BoundArgs},
        input,
        journal_offload::JournalOffload,
        limits,
        replay_policy::{ReplayPolicy, migrated},
        state::{Offloaded, Round, RunState},
    },
    time::{SKEW, millis, now},
};

/// Version of the sealed format. Another version is rejected as an invalid request state.
const VERSION: u8 = 1;

/// Content of a request state. Member names are short because every round sends it twice.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "c")]
    call_id: String,
    #[serde(rename = "n")]
    round: u32,
    #[serde(rename = "j")]
    jti: String,
    #[serde(rename = "i")]
    issued: u64,
    #[serde(rename = "x")]
    expires: u64,
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    revision: Option<Arc<str>>,
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    yields: u32,
    /// Kinds of the open input requests, in order.
    #[serde(rename = "k", default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<Kind>,
    #[serde(rename = "l")]
    journal: JournalSnapshot,
    /// ID of the journal in the store, if it was offloaded.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    offloaded: Option<String>,
    /// Task that the next round waits for, and when the first request arrived. The journal is empty
    /// then.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    task: Option<(TaskId, u64)>,
}

/// The earlier rounds of a call.
pub(crate) enum Opened {
    /// The call runs inline over the journal of its earlier rounds.
    Run(Arc<RunState>),
    /// The call waits for its task.
    Task(TaskRound),
}

/// A round that waits for the task of its call.
pub(crate) struct TaskRound {
    pub(crate) task: TaskId,
    /// When the first request of the call arrived, in milliseconds since 1970.
    pub(crate) began_at: u64,
    /// Number of rounds before this one.
    pub(crate) round: u32,
    /// Input responses by wire key.
    pub(crate) responses: BTreeMap<String, RawJson>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Kind of an input request, to check its response.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "e")]
    Elicit,
    #[serde(rename = "s")]
    Sample,
    #[serde(rename = "r")]
    Roots,
}

impl Kind {
    fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::CreateMessage(_) => Self::Sample,
            InputRequest::ListRoots => Self::Roots,
            _ => Self::Elicit,
        }
    }

    fn check(self, raw: &RawValue) -> Result<(), String> {
        match self {
            Self::Elicit => input::read::<ElicitResult>(raw).map(drop),
            Self::Sample => input::read::<CreateMessageResult>(raw).map(drop),
            Self::Roots => input::read_roots(raw).map(drop),
        }
    }
}

/// Opens the request state and the input responses of a call. Returns `None` if the call has
/// neither.
pub(crate) fn open(
    env: &Env,
    call: &Call,
    replay: &ReplayPolicy,
) -> Result<Option<Opened>, ProtocolError> {
    if call.request_state().is_none() && call.input_responses().is_none() {
        return Ok(None);
    }
    let given: BTreeMap<String, RawJson> = match call.input_responses() {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.inputResponses` must be an object: {error}"
            ))
        })?,
    };
    let now = now(&env.profile);
    let Some(state) = call.request_state() else {
        let run = RunState::new(env, call);
        run.journal().inputs().apply_responses(None, given, now);
        return Ok(Some(Opened::Run(Arc::new(run))));
    };
    let Some(mut sealed) = unseal(env, call, replay, &state?, now) else {
        slow_down(env, call)?;
        return Err(ProtocolError::InvalidRequestState);
    };
    if let Some((task, began_at)) = sealed.task.take() {
        let round = TaskRound { task, began_at, round: sealed.round, responses: given };
        return Ok(Some(Opened::Task(round)));
    }
    let requested = sealed.journal.input_requests.clone();
    let answered = check_responses(&sealed, &given)?;
    if !requested.is_empty() && !answered {
        // None of the requests got a response, so the server has to send all of them again.
        slow_down(env, call)?;
    }
    let run = sealed.into_run(env, call, replay);
    run.journal().inputs().apply_responses(Some(&requested), given, now);
    Ok(Some(Opened::Run(Arc::new(run))))
}

impl Sealed {
    /// Returns the content of a request state with an empty journal.
    fn new(env: &Env, round: u32) -> Result<Self, ProtocolError> {
        let issued = now(&env.profile);
        let jti = random_id()
            .ok_or_else(|| ProtocolError::internal("no random bytes for a request state"))?;
        Ok(Self {
            version: VERSION,
            call_id: String::new(),
            round,
            jti,
            issued,
            expires: issued.saturating_add(millis(env.profile.limits.request_state_ttl)),
            revision: None,
            yields: 0,
            kinds: Vec::new(),
            journal: JournalSnapshot::default(),
            offloaded: None,
            task: None,
        })
    }

    fn seal(self, env: &Env, call: &Call, bound_args: &BoundArgs) -> Result<String, ProtocolError> {
        let content = serde_json::to_vec(&self).map_err(ProtocolError::internal)?;
        let context = bound_args::context(env, call, bound_args)?;
        let state = env.profile.seal.seal(&content, &context.parts());
        state.ok_or_else(|| ProtocolError::internal("no random bytes for a request state"))
    }

    fn into_run(self, env: &Env, call: &Call, replay: &ReplayPolicy) -> RunState {
        let Self { call_id, round, yields, journal, revision, jti, offloaded, .. } = self;
        // Only a large journal or one with secrets is offloaded, so it contains steps.
        let has_step = offloaded.is_some()
            || journal
                .entries
                .values()
                .any(|entry| matches!(entry, JournalEntry::Value(_) | JournalEntry::Secret(_)));
        let offloaded = offloaded.map(|place| Offloaded {
            place,
            revision: revision.clone(),
            replay: replay.clone(),
        });
        let foreign = replay.foreign(&journal, revision.as_deref());
        let journal = migrated(journal, revision.as_deref(), replay);
        let round = Round {
            id: Some(jti),
            has_effects: has_step || replay.single_use,
            yields,
            number: round,
            call_id: Some(call_id),
            offloaded,
            foreign,
        };
        RunState::in_round(env, call, journal, round)
    }
}

/// Seals the journal into a request state. Returns the part to offload, if there is one.
pub(crate) fn seal(
    env: &Env,
    call: &Call,
    run: &RunState,
    replay: &ReplayPolicy,
    requests: &[OpenInputRequest],
) -> Result<(String, Option<JournalOffload>), ProtocolError> {
    let call_id = run.call_id(env).to_owned();
    let mut journal = run.journal().snapshot();
    let offloads =
        env.tasks.is_some() && (run.was_offloaded() || !run.journal().fits(limits::carried(env)));
    let offload = match offloads {
        true => Some(
            JournalOffload::of(&mut journal)
                .ok_or_else(|| ProtocolError::internal("no random bytes for a journal"))?,
        ),
        false => None,
    };
    let sealed = Sealed {
        call_id,
        revision: replay.revision.clone(),
        yields: run.yields() + u32::from(requests.is_empty()),
        kinds: requests.iter().map(|open| Kind::of(&open.request)).collect(),
        journal,
        offloaded: offload.as_ref().map(|offload| offload.place.clone()),
        ..Sealed::new(env, run.rounds() + 1)?
    };
    Ok((sealed.seal(env, call, &replay.bound_args)?, offload))
}

/// Seals a request state that names the task of the call. `round` is the number of rounds so far,
/// and `began_at` the arrival of the first request.
pub(crate) fn seal_task(
    env: &Env,
    call: &Call,
    bound_args: &BoundArgs,
    (task, began_at): (&TaskId, u64),
    round: u32,
) -> Result<String, ProtocolError> {
    let sealed = Sealed { task: Some((task.clone(), began_at)), ..Sealed::new(env, round)? };
    sealed.seal(env, call, bound_args)
}

/// Opens a request state. The client gets the same error for every reason.
fn unseal(env: &Env, call: &Call, replay: &ReplayPolicy, state: &str, now: u64) -> Option<Sealed> {
    let context = bound_args::context(env, call, &replay.bound_args).ok()?;
    let content = env.profile.seal.open(state, &context.parts())?;
    let sealed: Sealed = serde_json::from_slice(&content).ok()?;
    let skew = millis(SKEW);
    let known = sealed.version == VERSION;
    let in_time =
        sealed.issued <= now.saturating_add(skew) && now <= sealed.expires.saturating_add(skew);
    // With a store, a repeated request state gets the outcome of its first use.
    let fresh = || match &env.used_states {
        // A round that waits for a task can be repeated: it has no effect.
        _ if env.tasks.is_some() || !replay.single_use || sealed.task.is_some() => true,
        Some(used) => used.first_use(&sealed.jti, sealed.expires, now),
        None => false,
    };
    (known && in_time && fresh()).then_some(sealed)
}

/// Returns whether any input request got a response. A malformed response rejects the call.
fn check_responses(
    sealed: &Sealed,
    given: &BTreeMap<String, RawJson>,
) -> Result<bool, ProtocolError> {
    let mut answered = false;
    for (key, kind) in sealed.journal.input_requests.iter().zip(&sealed.kinds) {
        let name = sealed.journal.name(key);
        let Some(raw) = given.get(&name) else { continue };
        kind.check(raw).map_err(|reason| {
            ProtocolError::invalid_params(format!("`params.inputResponses`: `{name}`: {reason}"))
        })?;
        answered = true;
    }
    Ok(answered)
}

/// Counts an invalid round. Returns an error if the caller exceeds its rate limit.
fn slow_down(env: &Env, call: &Call) -> Result<(), ProtocolError> {
    let now = env.profile.clock.now();
    match env.invalid_rounds.enter(&caller_key(call), now) {
        Ok(_) => Ok(()),
        Err(busy) => Err(ProtocolError::OverLimit {
            limit: "rate_limit_invalid_rounds".into(),
            retry_after: busy.retry_after,
        }),
    }
}
