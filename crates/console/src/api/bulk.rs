//! `POST bulk`, `GET bulk/ID`, `POST bulk/ID/continue`.

use std::collections::BTreeMap;

use http::StatusCode;
use outlive::people::{BulkAction, BulkId, BulkRequest};
use serde::{Deserialize, Serialize};

use super::{call::ApiCall, error::ApiError};
use crate::{
    http::{Reply, json},
    task_query, times,
};

#[derive(Deserialize)]
struct Body {
    action: BulkAction,
    #[serde(default)]
    filter: BTreeMap<String, String>,
    before: String,
    name: String,
    expect: usize,
}

/// Starts an action on all tasks that match a filter.
pub(crate) async fn start(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Started<'a> {
        id: &'a str,
    }
    let Body { action, filter, before, name, expect } = call.body()?;
    if let Some(unknown) = filter.keys().find(|name| !task_query::NAMES.contains(&name.as_str())) {
        let remedy = format!("use `{}`", task_query::NAMES.join("`, `"));
        return Err(ApiError::bad_request(format!("`filter` has no `{unknown}`"), remedy));
    }
    let now = call.state.sign_in.vault.now();
    let query = task_query::read(|name| filter.get(name).map(String::as_str), now)
        .map_err(|error| ApiError::bad_request(error, "correct `filter`"))?;
    let before = times::parse(&before, now).ok_or_else(|| {
        let remedy = "send the time at which you read the list, such as 2026-07-28T12:00:00Z";
        ApiError::bad_request("`before` is not a time", remedy)
    })?;
    let request = BulkRequest { action, query, before, name, expect };
    let id = call.people().bulk(call.visitor(), request).await?;
    Ok(json(StatusCode::CREATED, &Started { id: id.as_str() }))
}

/// Returns the state of a bulk action.
pub(crate) async fn status(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Status<'a> {
        action: BulkAction,
        name: &'a str,
        by: &'a str,
        expect: usize,
        done: usize,
        skipped: usize,
        is_finished: bool,
        is_running: bool,
    }
    let id = BulkId::new(call.param(0));
    let status = call.people().bulk_status(call.visitor(), &id).await?;
    let status = Status {
        action: status.action,
        name: &status.name,
        by: &status.by,
        expect: status.expect,
        done: status.done,
        skipped: status.skipped,
        is_finished: status.is_finished,
        is_running: status.is_running,
    };
    Ok(json(StatusCode::OK, &status))
}

/// Continues a bulk action whose process stopped.
pub(crate) async fn resume(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Deserialize)]
    struct NoBody {}
    let NoBody {} = call.body()?;
    let id = BulkId::new(call.param(0));
    call.people().bulk_continue(call.visitor(), &id).await?;
    status(call).await
}
