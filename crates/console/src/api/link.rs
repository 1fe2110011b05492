//! `POST inputs/TASK/KEY/link`.

use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{call::ApiCall, error::ApiError};
use crate::{
    http::{Reply, json},
    times,
};

#[derive(Deserialize)]
struct Body {
    to: Option<String>,
    expires: Option<String>,
}

/// Creates an answer link for an addressee.
pub(crate) async fn link(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Link {
        url: String,
    }
    let Body { to, expires } = call.body()?;
    let expires = expires.map(|text| {
        let span = times::span(&text).map(Duration::from_millis);
        span.ok_or_else(|| {
            ApiError::bad_request("`expires` is not a span", "send a span such as `30m` or `2h`")
        })
    });
    let (task, key, expires) = (call.task(), call.param(1), expires.transpose()?);
    let url = call.people().link(call.visitor(), &task, key, to.as_deref(), expires).await?;
    Ok(json(StatusCode::OK, &Link { url }))
}
