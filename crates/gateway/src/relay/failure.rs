//! Error texts: each names the upstream, the reason and the remedy.

use std::{collections::BTreeMap, error::Error as _, time::Duration};

use outlive::{
    client::{
        ClientError, Error as UpstreamError, ServerError, ServerErrorKind,
        transport::TransportErrorKind,
    },
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
            count(reached, &problem);
            Error::new(text)
        }
        AcquireError::Full { limit, in_use } => {
            let limit = format!("{limit} of upstream `{}` ({in_use} in use)", reached.name());
            ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY }.into()
        }
        AcquireError::Call(error) => error,
    }
}

/// Counts a failed call. The status shows nothing of a principal.
fn count(reached: &Reached, problem: &Problem) {
    let reason: &str = match problem.is_of_principal {
        true => "a user has no token for it",
        false => &problem.reason,
    };
    reached.member.state().count_failure(reason);
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
            let ServerError { code, message, data, .. } = error;
            return of_object(reached, ErrorObject { code, message, data }, uri);
        }
        other => other,
    };
    let name = reached.name();
    if let UpstreamError::Transport(error) = &error
        && let TransportErrorKind::TooLarge(_) = error.kind()
    {
        return unread(reached, error.source().map(ToString::to_string));
    }
    let problem = reached.member.state().problem_of(&error);
    count(reached, &problem);
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
fn of_object(reached: &Reached, error: ErrorObject, uri: Option<&str>) -> Error {
    let ErrorObject { code, message, data } = error;
    if let Some(bytes) = unread_bytes(data.as_ref()) {
        return unread(reached, Some(format!("it has {bytes} bytes")));
    }
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

/// Returns the error of a task that ran the call.
pub(super) fn of_task(reached: &Reached, error: ErrorObject) -> Error {
    of_object(reached, error, None)
}

/// Returns the error of a call whose request was lost with an earlier run.
pub(super) fn unknown(reached: &Reached) -> Error {
    let name = reached.name();
    let reason = "the gateway stopped during the call";
    reached.member.state().count_failure(reason);
    Error::new(format!(
        "upstream `{name}`: {reason}, and it is unknown whether `{name}` executed the call; check its \
         effect before you call it again, or set `on_crash = \"rerun\"` if it may run twice"
    ))
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

/// Returns the bytes of the result of a supervised process that was too long to be read.
fn unread_bytes(data: Option<&RawJson>) -> Option<u64> {
    let data: BTreeMap<String, u64> = serde_json::from_str(data?.get()).ok()?;
    data.get(outlive_jobs::MESSAGE_BYTES).copied()
}

/// Returns the error of a result that is too long to be read.
fn unread(reached: &Reached, size: Option<String>) -> Error {
    let most = reached.member.settings().max_message();
    let size = size.map(|size| format!(": {size}")).unwrap_or_default();
    let reason = format!("its result exceeds `max_result`{size}, and at most {most} are read");
    reached.member.state().count_failure(&reason);
    let name = reached.name();
    Error::new(format!("upstream `{name}`: {reason}; request less, or raise `max_result`"))
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
