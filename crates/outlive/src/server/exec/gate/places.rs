//! The undecided calls of one caller, which `max_open` limits.
//!
//! Each undecided call has a place: a key-value entry with its task. A decision frees the place. The
//! place of a call that was cancelled is taken by the next call that finds no free one.

use std::time::Duration;

use outlive_protocol::ProtocolError;
use outlive_tasks::store::TaskId;
use outlive_wire::RawJson;
use serde_json::value::to_raw_value;

use crate::server::{
    caller_key::caller_key,
    env::{task_backend::TaskBackend, task_error::unavailable},
    exec::gate::text::is_undecided,
    extract::cx::Cx,
    run::bound_args::hash,
};

/// Time after which a caller over its limit retries.
const RETRY: Duration = Duration::from_secs(60);

/// Takes a place for a new task. Returns the key of the place.
///
/// # Errors
///
/// Returns an error if the caller has `max_open` undecided calls.
pub(crate) async fn take(
    cx: &Cx,
    task: &TaskId,
    max_open: usize,
    ttl: Duration,
) -> Result<String, ProtocolError> {
    let tasks = cx.env().tasks()?;
    let (store, charge) = (tasks.engine().store(), tasks.charge(cx.principal()));
    let caller = hash(&[caller_key(cx.call()).as_str()]);
    let value = to_raw_value(task).map_err(ProtocolError::internal)?;
    let mut taken = Vec::new();
    // Concurrent calls start at different places, so few of them try the same one.
    let first = task.as_str().bytes().fold(0, |sum, byte| sum + usize::from(byte));
    for offset in 0..max_open {
        let place = format!("gate/{caller}/{}", (first + offset) % max_open);
        let there = store.put_if_absent(&place, value.clone(), ttl, Some(&charge)).await;
        match there.map_err(|error| tasks.refused(cx.call(), &error))? {
            None => return Ok(place),
            Some(holder) => taken.push((place, holder)),
        }
    }
    for (place, holder) in taken {
        if !is_in_use(tasks, cx, &holder).await? {
            let written = store.put(&place, value, ttl, Some(&charge)).await;
            written.map_err(|error| tasks.refused(cx.call(), &error))?;
            return Ok(place);
        }
    }
    Err(ProtocolError::OverLimit { limit: "max_open".into(), retry_after: RETRY })
}

/// Frees a place. A place that cannot be freed expires with its request.
pub(crate) async fn free(tasks: &TaskBackend, place: &str) {
    if let Err(error) = tasks.engine().store().delete(place).await {
        tracing::debug!(%error, "place of a decided call cannot be freed");
    }
}

/// Returns whether the call that has a place is undecided.
async fn is_in_use(tasks: &TaskBackend, cx: &Cx, holder: &RawJson) -> Result<bool, ProtocolError> {
    let Ok(holder) = serde_json::from_str::<TaskId>(holder.get()) else { return Ok(false) };
    let record = tasks.engine().store().get(cx.principal().key(), &holder).await;
    let record = record.map_err(|error| unavailable(&error))?;
    Ok(record.as_ref().is_some_and(is_undecided))
}
