//! Responds to a request to the API.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};

use super::{
    actions, answer, bulk,
    call::ApiCall,
    error::ApiError,
    inbox::{self, FORM_PATH},
    index::{self, Operation},
    link, operations, tasks,
};
use crate::{
    http::Reply,
    live,
    request::ConsoleRequest,
    sign_in::{check::SignedIn, token::Denied},
    state::ConsoleState,
};

/// Header with the form token of a change that a script of a page makes.
const FORM_TOKEN: &str = "x-form-token";

/// Responds to a request to `path` below the API.
pub(crate) async fn respond(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    path: &str,
) -> Reply {
    let reply = match state.sign_in.visitor(request).await {
        Ok(Some(signed_in)) => route(state, request, &signed_in, path).await,
        Ok(None) | Err(Denied::Rejected) => Err(ApiError::unauthenticated()),
        Err(Denied::Unavailable(after)) => Err(ApiError::unavailable(after)),
    };
    reply.unwrap_or_else(|error| error.reply())
}

async fn route(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    signed_in: &SignedIn,
    path: &str,
) -> Result<Reply, ApiError> {
    let method = if request.is_read() { Method::GET } else { request.method().clone() };
    let mut found = None;
    let mut allowed = Vec::new();
    for (endpoint, params) in index::at(path) {
        allowed.push(endpoint.method.as_str());
        if endpoint.method == method {
            found = Some((endpoint, params));
        }
    }
    let Some((endpoint, params)) = found else {
        return match allowed.is_empty() {
            true => Err(ApiError::not_found()),
            false => Ok(method_not_allowed(&allowed.join(", "))),
        };
    };
    let query = request.query();
    if let Some((unknown, _)) = query.pairs().find(|(name, _)| !endpoint.query.contains(name)) {
        let remedy = match endpoint.query {
            [] => "send no parameters".to_owned(),
            names => format!("use `{}`", names.join("`, `")),
        };
        return Err(ApiError::bad_request(format!("unknown parameter `{unknown}`"), remedy));
    }
    if endpoint.method == Method::POST {
        admit(state, request, signed_in)?;
    }
    let call = ApiCall { state, request, signed_in, endpoint, params, query };
    run(&call).await
}

/// Executes an operation.
async fn run(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    match call.endpoint.operation {
        Operation::Me => inbox::me(call),
        Operation::Inbox => inbox::inbox(call).await,
        Operation::InputRequest => inbox::input_request(call).await,
        Operation::Answer => answer::answer(call).await,
        Operation::Link => link::link(call).await,
        Operation::Tasks => tasks::tasks(call).await,
        Operation::Task => tasks::task(call).await,
        Operation::Journal => tasks::journal(call).await,
        Operation::Output => tasks::output(call).await,
        Operation::TaskAudit => tasks::audit(call).await,
        Operation::Cancel => actions::cancel(call).await,
        Operation::Retry => actions::retry(call).await,
        Operation::Rerun => actions::rerun(call).await,
        Operation::Purge => actions::purge(call).await,
        Operation::Bulk => bulk::start(call).await,
        Operation::BulkStatus => bulk::status(call).await,
        Operation::BulkContinue => bulk::resume(call).await,
        Operation::Metrics => operations::metrics(call).await,
        Operation::Audit => operations::audit(call).await,
        Operation::Workers => operations::workers(call).await,
        Operation::Deliveries => operations::deliveries(call).await,
        Operation::SendDelivery => operations::send_delivery(call).await,
        Operation::Stream => live::open(call).await,
    }
}

/// Admits a change: a browser must send it from a page of the console, and no visitor may send too
/// many.
fn admit(
    state: &ConsoleState,
    request: &ConsoleRequest,
    signed_in: &SignedIn,
) -> Result<(), ApiError> {
    if let Some(session) = &signed_in.session {
        let token = request.headers().get(FORM_TOKEN).and_then(|it| it.to_str().ok());
        let token = token.unwrap_or_default();
        if !state.sign_in.is_own_form(request, &session.digest, FORM_PATH, token) {
            let remedy =
                "send `form_token` of `GET me` as `x-form-token`, from a page of the console";
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "the form token is not valid",
                remedy,
            ));
        }
    }
    let now = state.sign_in.vault.instant();
    let admitted = state.writes.admit(&signed_in.key, now);
    admitted.map_err(|after| ApiError::too_many("you send too many changes", after))
}

fn method_not_allowed(allowed: &str) -> Reply {
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this address does not support the method",
        format!("use {allowed}"),
    );
    let mut reply = error.reply();
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        reply.headers_mut().insert(header::ALLOW, allowed);
    }
    reply
}
