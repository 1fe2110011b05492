//! Builds input requests and decodes input responses.

use outlive_protocol::{Call, InputMode};
use outlive_schema::forms;
use outlive_wire::{
    CreateMessageResult, ElicitAction, ElicitRequestFormParams, ElicitRequestParams,
    ElicitRequestURLParams, ElicitResult, FormMode, InputRequest, ListRootsResult, RequestedSchema,
    Root,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::server::{
    durable_error::DurableError, env::environment::Env, error::Result as HandlerResult,
    run::state::RunState,
};

/// The user's response to an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three actions of the protocol")]
pub enum ElicitOutcome<T> {
    /// The user accepted, with this content.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user cancelled: neither accepted nor declined.
    Cancelled,
}

impl<T> ElicitOutcome<T> {
    pub(crate) fn accepted(self, key: &str) -> HandlerResult<T> {
        let key = key.to_owned();
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(DurableError::Declined { key }.into()),
            Self::Cancelled => Err(DurableError::Cancelled { key }.into()),
        }
    }
}

/// Decodes the response to a form or URL elicitation.
pub(crate) fn read_elicit<T>(
    raw: &RawValue,
    accept: impl FnOnce(Option<&RawValue>) -> std::result::Result<T, String>,
) -> std::result::Result<std::result::Result<ElicitOutcome<T>, String>, String> {
    let result: ElicitResult =
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(match result.action {
        ElicitAction::Accept => accept(result.content.as_deref()).map(ElicitOutcome::Accepted),
        ElicitAction::Decline => Ok(ElicitOutcome::Declined),
        _ => Ok(ElicitOutcome::Cancelled),
    })
}

/// Validates and decodes the content of a form.
pub(crate) fn read_form<T: DeserializeOwned>(
    schema: &RequestedSchema,
    content: Option<&RawValue>,
) -> std::result::Result<T, String> {
    let content = content.map_or("{}", RawValue::get);
    let content = forms::check(schema, content)?;
    serde_json::from_value(content.into()).map_err(|error| error.to_string())
}

/// Builds a URL elicitation. Returns an error if the URL is invalid.
pub(crate) fn url_request(
    env: &Env,
    call: &Call,
    run: &RunState,
    key: &str,
    params: ElicitRequestURLParams,
) -> std::result::Result<InputRequest, DurableError> {
    let rest = params.url.split_once("://").filter(|(scheme, _)| {
        scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let odd = |char: char| char.is_whitespace() || char.is_control();
    if rest.is_none_or(|(_, rest)| rest.is_empty() || rest.starts_with('/') || rest.contains(odd)) {
        let reason = format!("`{}` is not a URL; use one such as https://example.com", params.url);
        return Err(DurableError::InvalidInputRequest { key: key.to_owned(), reason });
    }
    Ok(with_elicitation_id(env, call, run, key, params))
}

/// Returns a URL elicitation with the ID of this server. 2025-11-25 requires an ID; other protocol
/// versions do not have one.
pub(crate) fn with_elicitation_id(
    env: &Env,
    call: &Call,
    run: &RunState,
    key: &str,
    mut params: ElicitRequestURLParams,
) -> InputRequest {
    let has_id = call.rules().input_mode == InputMode::Stream;
    params.elicitation_id = has_id.then(|| run.idempotency_key(env, key));
    InputRequest::Elicit(ElicitRequestParams::Url(params))
}

pub(crate) fn form_request(
    prompt: &str,
    why: Option<&str>,
    schema: &RequestedSchema,
) -> InputRequest {
    let message = match why {
        None => prompt.to_owned(),
        Some(why) => format!("{prompt}\n\nThe last response was invalid: {why}."),
    };
    InputRequest::Elicit(ElicitRequestParams::Form(ElicitRequestFormParams {
        mode: Some(FormMode::Form),
        message,
        requested_schema: schema.clone(),
        task: None,
        meta: None,
    }))
}

pub(crate) fn read<T: DeserializeOwned>(raw: &RawValue) -> std::result::Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
}

/// Decodes the response to a roots request. Roots must be `file://` URIs.
pub(crate) fn read_roots(raw: &RawValue) -> std::result::Result<Vec<Root>, String> {
    let list: ListRootsResult = read(raw)?;
    match list.roots.iter().find(|root| !root.uri.starts_with("file://")) {
        Some(root) => Err(format!("the root `{}` is not a file:// URI", root.uri)),
        None => Ok(list.roots),
    }
}

/// Checks that a response matches the kind of the input request.
pub(crate) fn check_response(
    request: &InputRequest,
    response: &RawValue,
) -> std::result::Result<(), String> {
    match request {
        InputRequest::CreateMessage(_) => read::<CreateMessageResult>(response).map(drop),
        InputRequest::ListRoots => read::<ListRootsResult>(response).map(drop),
        _ => read::<ElicitResult>(response).map(drop),
    }
}
