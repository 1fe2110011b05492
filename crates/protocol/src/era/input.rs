//! Which questions a client can be asked: what it has declared, in words that its revision has.

use outlive_wire::{
    ClientCapabilities, CreateMessageRequestParams, ElicitRequestParams, InputRequest, RawJson,
};
use serde_json::{Value, json, value::to_raw_value};

use crate::Call;

/// What the client lacks, as the capabilities it would have to declare.
pub(super) fn missing(call: &Call, request: &InputRequest) -> Option<RawJson> {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let needed = needed(request);
    if declares(&declared, request) && call.era().has_words_for(request) {
        return None;
    }
    to_raw_value(&needed).ok()
}

/// Asks for no context that the client did not offer: that is deprecated, and only a wish.
pub(super) fn spare_context(call: &Call, params: &mut CreateMessageRequestParams) {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    if declared.sampling.is_none_or(|sampling| sampling.context.is_none()) {
        params.include_context = None;
    }
}

fn declares(declared: &ClientCapabilities, request: &InputRequest) -> bool {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(_)) => declared
            .elicitation
            .as_ref()
            // Neither of the two means forms: the capability is older than its members.
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none()),
        InputRequest::Elicit(_) => {
            declared.elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some())
        }
        InputRequest::CreateMessage(params) => declared
            .sampling
            .as_ref()
            .is_some_and(|sampling| !wants_tools(params) || sampling.tools.is_some()),
        InputRequest::ListRoots => declared.roots.is_some(),
        _ => false,
    }
}

fn needed(request: &InputRequest) -> Value {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(_)) => json!({"elicitation": {"form": {}}}),
        InputRequest::Elicit(_) => json!({"elicitation": {"url": {}}}),
        InputRequest::CreateMessage(params) if wants_tools(params) => {
            json!({"sampling": {"tools": {}}})
        }
        InputRequest::CreateMessage(_) => json!({"sampling": {}}),
        InputRequest::ListRoots => json!({"roots": {}}),
        _ => json!({}),
    }
}

fn wants_tools(params: &CreateMessageRequestParams) -> bool {
    params.tools.is_some() || params.tool_choice.is_some()
}
