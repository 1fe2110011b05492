//! The index of the pages.

use std::sync::Arc;

use http::Method;
use outlive::store::TaskId;

use super::{
    actions, audit, bulk, inbox, overview, settings, sign_in, tasks,
    visit::{PageError, Visit},
};
use crate::{
    assets,
    http::{Reply, asset},
    request::{ConsoleRequest, decoded},
    state::ConsoleState,
};

/// Responds to a request to a page, an asset or the sign-in.
pub(crate) async fn respond(state: &Arc<ConsoleState>, request: &ConsoleRequest) -> Reply {
    let reply = match request.segments().first() {
        Some(&"assets") => file(request),
        Some(&"in") => sign_in::respond(state, request).await,
        _ => visit(state, request).await,
    };
    reply.unwrap_or_else(|error| error.reply(request))
}

fn file(request: &ConsoleRequest) -> Result<Reply, PageError> {
    let found = assets::find(&request.path).ok_or(PageError::NotFound)?;
    match request.is_read() {
        true => Ok(asset(found.media_type, found.body.as_bytes())),
        false => Err(PageError::Method("GET, HEAD")),
    }
}

/// Shows a page to a visitor with a session. A token without a session does not open pages: they
/// name the people who decide, and a model may read everything that an MCP token reads.
async fn visit(state: &Arc<ConsoleState>, request: &ConsoleRequest) -> Result<Reply, PageError> {
    let signed_in = state.sign_in.visitor(request).await?;
    match signed_in.filter(|signed_in| signed_in.session.is_some()) {
        Some(signed_in) => route(&Visit { state, request, signed_in }).await,
        None if request.is_read() => Ok(sign_in::redirect_here(request)),
        None => Err(PageError::StaleForm),
    }
}

async fn route(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let segments = visit.request.segments();
    let segments = segments.as_slice();
    check_method(segments, visit.request)?;
    match segments {
        [""] => inbox::show(visit).await,
        ["inputs", task, key @ ..] if !key.is_empty() => {
            inbox::input_request(visit, &id(task), &decoded(&key.join("/"))).await
        }
        ["tasks"] => tasks::list(visit).await,
        ["tasks", task] => tasks::show(visit, &id(task)).await,
        ["tasks", task, action] => actions::respond(visit, &id(task), action).await,
        ["bulk"] => bulk::respond(visit).await,
        ["bulk", bulk] => bulk::status(visit, &decoded(bulk)).await,
        ["overview"] => overview::respond(visit).await,
        ["audit"] => audit::show(visit).await,
        ["audit.jsonl"] => audit::export(visit).await,
        ["settings"] => settings::respond(visit).await,
        _ => Err(PageError::NotFound),
    }
}

/// Checks that a page supports the method of a request. Only pages with a form support POST.
fn check_method(segments: &[&str], request: &ConsoleRequest) -> Result<(), PageError> {
    let has_form = matches!(
        segments,
        ["inputs", _, _, ..] | ["tasks", _, _] | ["bulk", ..] | ["overview"] | ["settings"]
    );
    match has_form {
        _ if request.is_read() => Ok(()),
        true if *request.method() == Method::POST => Ok(()),
        true => Err(PageError::Method("GET, HEAD, POST")),
        false => Err(PageError::Method("GET, HEAD")),
    }
}

fn id(segment: &str) -> TaskId {
    TaskId::new(decoded(segment))
}
