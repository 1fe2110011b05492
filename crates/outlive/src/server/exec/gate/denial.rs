//! Standing denials: an equal call of the same person gets the reply of a denied one, without a new
//! request. Otherwise an agent in a loop would wear the approvers down.
//!
//! A denial stands from the commit of the deciding vote: the store finds the response by the denial
//! key of its request. The worker that ends the denied call also writes a key-value entry, which
//! stays if the task is deleted.

use std::time::Duration;

use outlive_protocol::{CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::Charge;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::{
        gate::{binding::GateRecord, decision::Decision, start::GatedCall, text},
        idempotency::IdempotencyGuard,
    },
    extract::cx::Cx,
    time::{millis, now},
};

/// Maximum number of responses that are searched for a denial: more than people give to equal calls
/// of one caller while a denial stands.
const MAX_RESPONSES: usize = 1_000;

/// A standing denial, as a key-value entry.
#[derive(Serialize, Deserialize)]
struct Denial {
    reason: String,
    /// When the denial ends, in milliseconds since 1970.
    until: u64,
}

/// Replies with a standing denial, or continues with `work`. A call under an idempotency key that
/// was used before continues, because its key finds its task.
pub(crate) async fn unless_denied(
    cx: Cx,
    gated: GatedCall,
    guard: Option<IdempotencyGuard>,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    let is_used = match &guard {
        Some(guard) => guard.is_used(&cx).await?,
        None => false,
    };
    if !is_used && let Some(Denial { reason, until }) = standing(cx.env(), &gated).await? {
        drop(work);
        let denied = text::denied(&reason, until, now(&cx.env().profile));
        return Ok(Outcome::Complete(MethodResult::Tool(denied)));
    }
    work.await
}

/// Returns the denial that stands for a call.
async fn standing(env: &Env, gated: &GatedCall) -> Result<Option<Denial>, ProtocolError> {
    // Most denials stand longer than their worker needs.
    match recorded(env, &gated.denial).await? {
        Some(denial) => Ok(Some(denial)),
        None => decided(env, gated).await,
    }
}

/// Returns the denial of a call that people denied, whether a worker has seen their decision or not.
async fn decided(env: &Env, gated: &GatedCall) -> Result<Option<Denial>, ProtocolError> {
    let approve = &gated.gate.approve;
    let (ttl, now) = (millis(approve.denial_ttl), now(&env.profile));
    let Some(people) = env.tasks()?.people.as_ref().filter(|_| ttl > 0) else { return Ok(None) };
    let since = now.saturating_sub(ttl);
    let settled = people.settled_since(&gated.denial, since, MAX_RESPONSES).await;
    for settled in settled.map_err(|error| unavailable(&error))? {
        let decision: Decision =
            serde_json::from_str(settled.response.get()).map_err(ProtocolError::internal)?;
        let until = settled.settled_at.saturating_add(ttl);
        if !decision.is_approval() && until > now {
            return Ok(Some(Denial { reason: decision.reason(Some(&approve.audience)), until }));
        }
    }
    Ok(None)
}

async fn recorded(env: &Env, key: &str) -> Result<Option<Denial>, ProtocolError> {
    let stored = env.tasks()?.engine().store().get_value(key).await;
    let Some(stored) = stored.map_err(|error| unavailable(&error))? else { return Ok(None) };
    let denial: Denial = serde_json::from_str(stored.get()).map_err(ProtocolError::internal)?;
    Ok(Some(denial).filter(|denial| denial.until > now(&env.profile)))
}

/// Makes a denial stand until `until`.
pub(crate) async fn record(
    tasks: &TaskBackend,
    principal: &str,
    gate: &GateRecord,
    reason: &str,
    until: u64,
) {
    let ttl = Duration::from_millis(gate.denial_millis);
    let denial = Denial { reason: reason.to_owned(), until };
    let Ok(value) = to_raw_value(&denial) else { return };
    if ttl.is_zero() {
        return;
    }
    // A caller whose bytes are used up must not escape a denial.
    let charge = Charge::new(principal.to_owned(), u64::MAX);
    let written = tasks.engine().store().put(&gate.denial, value, ttl, Some(&charge)).await;
    if let Err(error) = written {
        tracing::warn!(%error, "denial cannot be stored; an equal call makes a new request");
    }
}
