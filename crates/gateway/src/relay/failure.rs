//! Error texts: each names the upstream, the reason and the remedy.

use std::time::Duration;

use outlive::{
    client::{ClientError, Error as UpstreamError, ServerError, ServerErrorKind},
    server::{Error, ProtocolError},
    wire::{ErrorObject, RawJson, code},
};
use serde::Deserialize;

use super::route::Reached;
use crate::{excerpt::excerpt, status::Problem, upstream::AcquireError};

/// Delay before a retry if a limit is reached.
const RETRY: Duration = Duration::from_secs(1);

/// Returns the error of a call that got no upstream connection.
pub(super) fn of_acquire(reached: &Reached, error: AcquireError) -> Error {
    match error {
        AcquireError::Problem { problem, retry_after } => {
            let mut text = of_problem(&reached.name(), &problem);
            if let Some(wait) = retry_after {
                let seconds = wait.as_secs().saturating_add(1);
                text.push_str(&format!("; the next attempt to connect is in {seconds} s"));
            }
            reached.member.state().count_failure(&problem.reason);
            Error::new(text)
        }
        AcquireError::Full { limit, in_use } => {
            let limit = format!("{limit} of upstream `{}` ({in_use} in use)", reached.name());
            ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY }.into()
        }
    }
}

/// Returns the text of a problem for clients.
pub(crate) fn of_problem(upstream: &str, problem: &Problem) -> String {
    format!("upstream `{upstream}`: {}; {}", problem.reason, problem.remedy)
}

/// Returns the error of a call that the upstream did not complete. `uri` is the resource that was
/// read, if any.
pub(super) fn of_call(reached: &Reached, error: UpstreamError, uri: Option<&str>) -> Error {
    let may_have_executed = error.may_have_executed();
    let error = match error {
        UpstreamError::Server(error) if is_of_request(error.kind) => {
            return of_server(reached, error, uri);
        }
        other => other,
    };
    let name = reached.name();
    let problem = reached.member.state().problem_of(&error);
    reached.member.state().count_failure(&problem.reason);
    if let UpstreamError::Client(ClientError::TimedOut(after)) = &error {
        let seconds = after.as_secs_f64();
        return Error::new(format!(
            "upstream `{name}` did not respond within {seconds:.1} s, so its call was cancelled; \
             raise `timeout`"
        ));
    }
    let mut text = of_problem(&name, &problem);
    if may_have_executed {
        text.push_str(&format!("; it is unknown whether `{name}` executed the call"));
    }
    Error::new(text)
}

/// Returns whether an error is the upstream's response to the request itself.
fn is_of_request(kind: ServerErrorKind) -> bool {
    !matches!(
        kind,
        ServerErrorKind::Unauthorized
            | ServerErrorKind::Forbidden
            | ServerErrorKind::RateLimited { .. }
    )
}

/// Passes an error of the upstream with its code, message and data, unless the code has a meaning
/// between gateway and upstream.
fn of_server(reached: &Reached, error: ServerError, uri: Option<&str>) -> Error {
    let ServerError { code, message, data, .. } = error;
    let required = (code == code::MISSING_CAPABILITY).then(|| required(data.as_ref())).flatten();
    if let Some(required) = required {
        return ProtocolError::MissingCapability { required }.into();
    }
    match (code, uri) {
        (code::RESOURCE_NOT_FOUND, Some(uri)) => {
            ProtocolError::UnknownResource { uri: uri.to_owned() }.into()
        }
        (code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION, _) => {
            let name = reached.name();
            Error::new(format!("upstream `{name}` rejected the request: {}", excerpt(&message)))
        }
        _ => ProtocolError::Custom(ErrorObject { code, message, data }).into(),
    }
}

/// Returns the capabilities that an error of the upstream names. The client lacks them, because the
/// gateway declares those of the client.
fn required(data: Option<&RawJson>) -> Option<RawJson> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        required_capabilities: RawJson,
    }
    let data: Data = serde_json::from_str(data?.get()).ok()?;
    Some(data.required_capabilities)
}

/// Returns the error of a result that is longer than the limit.
pub(super) fn too_long(upstream: &str, bytes: usize, most: usize) -> Error {
    Error::new(format!(
        "the result of upstream `{upstream}` has {bytes} bytes, and `max_result` is {most}; request \
         less, or raise `max_result`"
    ))
}

/// Returns the error of a result that is not one.
pub(super) fn invalid(reached: &Reached, reason: &str) -> Error {
    let reason = excerpt(reason);
    reached.member.state().count_failure(&reason);
    Error::new(format!("upstream `{}` returned an invalid result: {reason}", reached.name()))
}
