//! Standing denials: an equal call of the same person gets the reply of a denied one, without a new
//! request. Otherwise an agent in a loop would wear the approvers down.

use std::time::Duration;

use outlive_protocol::{CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::Charge;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::{
        gate::{binding::GateRecord, text},
        idempotency::IdempotencyGuard,
    },
    extract::cx::Cx,
    time::now,
};

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
    key: String,
    guard: Option<IdempotencyGuard>,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    let is_used = match &guard {
        Some(guard) => guard.is_used(&cx).await?,
        None => false,
    };
    if !is_used && let Some(Denial { reason, until }) = find(cx.env(), &key).await? {
        drop(work);
        let denied = text::denied(&reason, until, now(&cx.env().profile));
        return Ok(Outcome::Complete(MethodResult::Tool(denied)));
    }
    work.await
}

async fn find(env: &Env, key: &str) -> Result<Option<Denial>, ProtocolError> {
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
