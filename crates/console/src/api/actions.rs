//! `POST tasks/ID/cancel`, `retry`, `rerun`, `purge`.

use http::StatusCode;
use outlive::store::{CancelOutcome, Phase, PurgeOutcome, RetryOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{call::ApiCall, error::ApiError};
use crate::http::{Reply, json};

#[derive(Serialize)]
struct Done {
    state: &'static str,
}

#[derive(Deserialize)]
struct NoBody {}

/// Cancels a task.
pub(crate) async fn cancel(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let NoBody {} = call.body()?;
    match call.people().cancel(call.visitor(), &call.task()).await? {
        CancelOutcome::Cancelled => done("cancelled"),
        CancelOutcome::Requested => done("cancel-requested"),
        CancelOutcome::AlreadyEnded => {
            Err(conflict("the task has ended", "read the task; an ended task never changes"))
        }
    }
}

/// Retries a quarantined task.
pub(crate) async fn retry(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let NoBody {} = call.body()?;
    match call.people().retry(call.visitor(), &call.task()).await? {
        RetryOutcome::Queued(_) => done("queued"),
        RetryOutcome::NotQuarantined(_) => {
            Err(conflict("the task is not quarantined", "retry only quarantined tasks"))
        }
    }
}

/// Runs a task again, as a new task.
pub(crate) async fn rerun(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Deserialize)]
    struct Body {
        arguments: Option<Value>,
    }
    #[derive(Serialize)]
    struct Rerun<'a> {
        id: &'a str,
    }
    let Body { arguments } = call.body()?;
    let id = call.people().rerun(call.visitor(), &call.task(), arguments).await?;
    Ok(json(StatusCode::CREATED, &Rerun { id: id.as_str() }))
}

/// Deletes a task.
pub(crate) async fn purge(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        force: bool,
    }
    let Body { force } = call.body()?;
    match call.people().purge(call.visitor(), &call.task(), force).await? {
        PurgeOutcome::Purged(..) => done("purged"),
        PurgeOutcome::NotEnded(phase) => Err(conflict(
            "the task has not ended",
            "cancel the task, or send `force` to delete it at once",
        )
        .with("phase", phase_name(phase))),
        PurgeOutcome::CleanupPending => {
            Err(conflict("the cleanup of the task is pending", "wait for its cleanup"))
        }
    }
}

fn done(state: &'static str) -> Result<Reply, ApiError> {
    Ok(json(StatusCode::OK, &Done { state }))
}

fn conflict(error: &str, remedy: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, error, remedy)
}

fn phase_name(phase: Phase) -> String {
    format!("{phase:?}").to_lowercase()
}
