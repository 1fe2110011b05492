//! Input requests that a client accepts: the client must declare the capability, and its version
//! must support the request.

use outlive_wire::{
    ClientCapabilities, CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestParams,
    InputRequest, PrimitiveSchemaDefinition as Field, RawJson,
    SamplingMessageContentBlock as Block,
};
use serde_json::{Value, json, value::to_raw_value};

use crate::{Call, InputSupport};

/// Returns the capabilities that the client lacks for an input request; `None` if the client
/// accepts the request.
pub fn missing_for(call: &Call, request: &InputRequest) -> Option<RawJson> {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let needed = needed(request);
    if declares(&declared, request) && can_express(&call.rules().inputs, request) {
        return None;
    }
    to_raw_value(&needed).ok()
}

/// Returns whether the client can run an input request as a task on its side.
pub fn hosts_task(call: &Call, request: &InputRequest) -> bool {
    if !call.rules().hosted_tasks {
        return false;
    }
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let place = match request {
        InputRequest::Elicit(_) => "/requests/elicitation/create",
        InputRequest::CreateMessage(_) => "/requests/sampling/createMessage",
        _ => return false,
    };
    declared.tasks.is_some_and(|tasks| tasks.pointer(place).is_some_and(Value::is_object))
}

/// Removes `includeContext` if the client does not declare support. The member is deprecated and
/// optional.
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
            // An empty capability means forms, because it is older than its two members.
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

fn can_express(inputs: &InputSupport, request: &InputRequest) -> bool {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            inputs.forms && (inputs.multi_select || !has_several_choices(form))
        }
        InputRequest::Elicit(_) => inputs.urls,
        InputRequest::CreateMessage(params) => can_express_sampling(inputs, params),
        InputRequest::ListRoots => true,
        _ => false,
    }
}

fn has_several_choices(form: &ElicitRequestFormParams) -> bool {
    let fields = &form.requested_schema.properties.0;
    fields.iter().any(|(_, field)| {
        matches!(field, Field::UntitledMultiSelect(_) | Field::TitledMultiSelect(_))
    })
}

fn can_express_sampling(inputs: &InputSupport, params: &CreateMessageRequestParams) -> bool {
    if inputs.sampling_tools {
        return true;
    }
    let can_express = |block: &Block| match block {
        Block::Text(_) | Block::Image(_) => true,
        Block::Audio(_) => inputs.sampling_audio,
        _ => false,
    };
    let mut blocks = params.messages.iter().flat_map(|message| message.content.blocks());
    !wants_tools(params) && blocks.all(can_express)
}

#[cfg(test)]
mod tests {
    use outlive_wire::InputRequest;
    use serde_json::{Value, json};

    use super::can_express;
    use crate::VERSIONS;

    /// Checks which versions support an input request, newest first.
    #[track_caller]
    fn check(method: &str, params: &Value, expected: [bool; 5]) {
        let request: InputRequest =
            serde_json::from_value(json!({"method": method, "params": params})).unwrap();
        let known = VERSIONS.map(|rules| can_express(&rules.inputs, &request));
        assert_eq!(known, expected, "{request:?}");
    }

    // ELIC-24, ELIC-12, SAMP-08
    #[test]
    fn input_request_is_expressed_only_by_versions_that_know_it() {
        let form = |field: Value| json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"x": field}}});
        let say = |block: Value| json!({"maxTokens": 1, "messages": [{"role": "user", "content": block}]});
        let (elicit, sample) = ("elicitation/create", "sampling/createMessage");
        check(elicit, &form(json!({"type": "string"})), [true, true, true, false, false]);
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
        check(elicit, &form(several), [true, true, false, false, false]);
        let url = json!({"mode": "url", "message": "?", "url": "https://a.b"});
        check(elicit, &url, [true, true, false, false, false]);
        check(sample, &say(json!({"type": "text", "text": "x"})), [true; 5]);
        let audio = json!({"type": "audio", "data": "", "mimeType": "audio/wav"});
        check(sample, &say(audio), [true, true, true, true, false]);
        let tool_use = json!({"type": "tool_use", "id": "1", "name": "t", "input": {}});
        check(sample, &say(tool_use), [true, true, false, false, false]);
        check("roots/list", &json!({}), [true; 5]);
        check("example/other", &json!({}), [false; 5]);
    }
}
