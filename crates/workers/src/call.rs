//! The handler of a tool: one [`Durable`] over the runs of a function in processes.
//!
//! The engine's run of a call continues when a process is lost, or when the code changes: the handler
//! replays its journal, and the next process starts the function at its first line.

use std::{sync::Arc, time::Duration};

use outlive::server::{
    CallToolResult, Durable, Error, Result,
    durable::{Capacity, Permit},
};
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::{
    key::read_key,
    line::{from_server::RunNumber, start::Start},
    losses::ALONE_AFTER,
    pool::PlaceError,
    route::ToolRoute,
    run::{Run, RunOutcome},
    seat::Seat,
};

/// Time that an inline call waits for a place before it becomes a task or fails.
const MOMENT: Duration = Duration::from_secs(1);

/// Delay before a task without a process is claimed again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Key of the step that records the start of a function that is not durable.
const STARTED: &str = "started";

/// Handles a call.
pub(crate) async fn call(cx: Durable, route: Arc<ToolRoute>) -> Result<CallToolResult> {
    let arguments = RawValue::from_string(cx.call().arguments()?.to_owned())?;
    let mut permit = acquire(&cx, &route.pool.capacity, route.pool.settings.max_concurrent).await?;
    // A function that is not durable has state that no replay restores.
    let _unparkable = (!route.declared.durable).then(|| cx.prevent_parking());
    record_start(&cx, &route).await?;
    let key = cx.idempotency_key("");
    loop {
        let seat = start(&cx, &route, &arguments, &key, permit).await?;
        permit = match Run::new(&cx, &route, seat).follow().await {
            RunOutcome::Over(result) => {
                route.pool.losses.forget(&key);
                return result;
            }
            RunOutcome::Incompatible { key, reason } => {
                return Err(match read_key(&key) {
                    Ok(key) => cx.incompatible(key, reason).await,
                    Err(error) => Error::new(error),
                });
            }
            RunOutcome::Moved { permit, operations } => {
                cx.replay(operations).await?;
                permit
            }
            RunOutcome::Lost { reason, permit, operations } => {
                cx.replay(operations).await?;
                lost(&cx, &route, &key, &reason).await?;
                permit
            }
        };
    }
}

/// Starts a run of the function in a process.
async fn start(
    cx: &Durable,
    route: &ToolRoute,
    arguments: &RawValue,
    key: &str,
    permit: Permit,
) -> Result<Seat> {
    let records = cx.records();
    let losses = route.pool.losses.of(key, records.len());
    let tool = &*route.declared.name;
    let mut seat = match Seat::take(cx, &route.pool, tool, permit, losses >= ALONE_AFTER).await {
        Ok(seat) => seat,
        Err(error) => return Err(unavailable(cx, route, error).await),
    };
    let start = Start {
        run: RunNumber::Call(seat.number()),
        tool,
        arguments,
        records: if route.declared.durable { &records } else { &[] },
        responses: &[],
        attempt: Some(losses + 1),
        idempotency_key: key,
        reason: None,
        principal: Some(cx.principal()),
    };
    let Ok(lines) = start.lines() else {
        seat.end();
        return Err(Error::new("the arguments of the call exceed 4 MiB; pass a reference instead"));
    };
    seat.start(lines).await;
    Ok(seat)
}

/// Acquires a place for the call. A task waits in the store, without occupying a worker.
async fn acquire(cx: &Durable, capacity: &Capacity, max_concurrent: usize) -> Result<Permit> {
    if cx.task_id().is_none() {
        let caller = caller_of(cx);
        if let Ok(permit) = timeout(MOMENT, capacity.acquire(&caller)).await {
            return Ok(permit);
        }
    }
    let is_full = capacity.used() >= capacity.max();
    if is_full {
        cx.set_status_message(format!(
            "waiting for a process of the tool worker (max_concurrent = {max_concurrent})"
        ));
    }
    let permit = cx.acquire(capacity).await?;
    if is_full {
        cx.set_status_message("started");
    }
    Ok(permit)
}

/// Returns the caller that takes turns with others: the principal, or the network address of an
/// anonymous client.
fn caller_of(cx: &Durable) -> String {
    match cx.principal().is_anonymous() {
        false => cx.principal().key().to_owned(),
        true => cx.call().peer_addr().map_or_else(String::new, |address| address.to_string()),
    }
}

/// Records the start of a function that must not run twice.
///
/// # Errors
///
/// Returns an error if an earlier run has started it.
async fn record_start(cx: &Durable, route: &ToolRoute) -> Result<()> {
    if route.declared.durable || route.may_rerun {
        return Ok(());
    }
    if cx.get::<bool>(STARTED)?.is_some() {
        return Err(interrupted("the server was stopped while it ran"));
    }
    cx.step(STARTED, async || Ok(true)).await.map(drop)
}

fn interrupted(reason: &str) -> Error {
    Error::new(format!(
        "the tool was interrupted: {reason}; it is not rerun, because it may have taken effect in part; \
         make it durable, or set `on_crash = \"rerun\"` if a rerun is safe"
    ))
}

/// Counts a lost process. Returns an error if the call must not run again.
async fn lost(cx: &Durable, route: &ToolRoute, key: &str, reason: &str) -> Result<()> {
    let tool_worker = route.worker();
    if cx.is_cancelled() {
        return Err(Error::new("the tool was cancelled"));
    }
    if !route.declared.durable && !route.may_rerun {
        return Err(interrupted(&format!("a process of the tool worker `{tool_worker}` {reason}")));
    }
    let losses = route.pool.losses.lost(key, cx.records().len());
    let tool = &*route.declared.name;
    if !route.pool.settings.crash_after_each_entry {
        tracing::warn!(
            tool_worker,
            tool,
            losses,
            reason,
            "a call lost its process and continues in another one"
        );
    }
    if losses < route.max_attempts {
        return Ok(());
    }
    route.pool.losses.forget(key);
    let reason = format!(
        "the call has lost its process {losses} times in a row without recording a step; the last process \
         of the tool worker `{tool_worker}` {reason}; see the log of the server"
    );
    Err(cx.quarantine(reason).await)
}

/// Returns the error of a call that gets no process. A task returns to the store instead.
async fn unavailable(cx: &Durable, route: &ToolRoute, error: PlaceError) -> Error {
    let tool_worker = route.worker();
    let reason = match error {
        PlaceError::UnknownTool => {
            return Error::new(format!("the tool worker `{tool_worker}` no longer has this tool"));
        }
        PlaceError::Unavailable(reason) => reason,
    };
    tracing::warn!(tool_worker, reason, "no process accepts a call");
    if route.declared.durable && cx.task_id().is_some() {
        cx.set_status_message("waiting for a process of the tool worker");
        // Completes only if the run has ended.
        if let Err(error) = cx.yield_to_replica().retry_after(RETRY_AFTER).await {
            return error;
        }
    }
    Error::new(format!("the tool worker `{tool_worker}` does not run; retry later"))
}
