//! Encodes input requests as server-to-client requests of a legacy version.

use outlive_wire::{
    CancelledNotificationParams, CreateMessageRequestParams, ElicitRequestFormParams,
    ElicitRequestParams, ElicitationCompleteNotificationParams, InputRequest,
    LegacyTitledEnumSchema, Method, PrimitiveSchemaDefinition as Field, SamplingContent,
    SamplingMessage, Version,
};
use serde_json::json;

use super::shape;
use crate::{
    Call, VersionRules,
    era::{error::put, input, notify},
};

/// Encodes a request about a task that the client runs.
pub(super) fn task_request(id: u64, method: Method, task: &str, out: &mut Vec<u8>) {
    let params = json!({"taskId": task});
    put(&json!({"jsonrpc": "2.0", "method": method.as_str(), "params": params, "id": id}), out);
}

/// Encodes an input request.
pub(super) fn request(
    rules: &VersionRules,
    call: &Call,
    id: u64,
    mut request: InputRequest,
    out: &mut Vec<u8>,
) {
    match &mut request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => shape_form(rules, form),
        InputRequest::CreateMessage(params) => {
            // The client capability for `includeContext` exists since 2025-11-25.
            if rules.since(Version::V2025_11_25) {
                input::spare_context(call, params);
            }
            shape_conversation(rules, params);
        }
        _ => {}
    }
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    let at = out.len();
    put(&request, out);
    // Turns the members of the serialized object into members of the request. The ID comes last:
    // readers recognize responses by a leading `id`.
    out[at] = b',';
    out.pop();
    out.extend_from_slice(format!(r#","id":{id}}}"#).as_bytes());
}

/// Removes the members of a form that 2025-11-25 added, and converts titled choices to `enumNames`.
fn shape_form(rules: &VersionRules, form: &mut ElicitRequestFormParams) {
    if rules.since(Version::V2025_11_25) {
        return;
    }
    form.mode = None;
    form.task = None;
    form.requested_schema.schema = None;
    for (_, field) in &mut form.requested_schema.properties.0 {
        match field {
            Field::String(field) => field.default = None,
            Field::Number(field) => field.default = None,
            Field::UntitledSingleSelect(field) => field.default = None,
            Field::LegacyTitled(field) => field.default = None,
            Field::TitledSingleSelect(titled) => {
                let titled = std::mem::take(titled);
                let (values, names) =
                    titled.options.into_iter().map(|option| (option.value, option.title)).unzip();
                *field = Field::LegacyTitled(LegacyTitledEnumSchema {
                    title: titled.title,
                    description: titled.description,
                    values,
                    enum_names: Some(names),
                    default: None,
                });
            }
            _ => {}
        }
    }
}

/// Removes the members of a sampling request that the version does not have.
fn shape_conversation(rules: &VersionRules, params: &mut CreateMessageRequestParams) {
    if !rules.since(Version::V2025_11_25) {
        params.task = None;
        one_block_each(params);
    }
    params.tools.iter_mut().flatten().for_each(|tool| shape::tool(rules, tool));
    for message in &mut params.messages {
        match &mut message.content {
            SamplingContent::One(block) => shape::model_block(rules, block),
            SamplingContent::Many(blocks) => {
                blocks.iter_mut().for_each(|block| shape::model_block(rules, block));
            }
        }
    }
}

/// Splits messages: before 2025-11-25 a message has exactly one content block.
fn one_block_each(params: &mut CreateMessageRequestParams) {
    let messages = std::mem::take(&mut params.messages);
    for SamplingMessage { role, content, .. } in messages {
        let blocks = match content {
            SamplingContent::One(block) => vec![block],
            SamplingContent::Many(blocks) => blocks,
        };
        params.messages.extend(blocks.into_iter().map(|block| SamplingMessage {
            role,
            content: SamplingContent::One(block),
            meta: None,
        }));
    }
}

pub(super) fn withdraw(id: u64, reason: &str, out: &mut Vec<u8>) {
    let params = CancelledNotificationParams {
        request_id: Some((id as i64).into()),
        reason: Some(reason.to_owned()),
        meta: None,
    };
    notify::notification(Method::Cancelled.as_str(), &params, out);
}

/// Encodes the completion of a URL elicitation. Returns `false` if the version does not have it.
pub(super) fn url_done(rules: &VersionRules, elicitation_id: String, out: &mut Vec<u8>) -> bool {
    let known = rules.inputs.urls;
    if known {
        let params = ElicitationCompleteNotificationParams { elicitation_id, meta: None };
        notify::notification(Method::ElicitationComplete.as_str(), &params, out);
    }
    known
}

#[cfg(test)]
mod tests {
    use outlive_wire::{CreateMessageRequestParams, ElicitRequestFormParams, InputRequest};
    use serde_json::{Value, json};

    use super::{shape_conversation, shape_form};
    use crate::VERSIONS;

    fn request(method: &str, params: &Value) -> InputRequest {
        serde_json::from_value(json!({"method": method, "params": params})).unwrap()
    }

    // ELIC-09, ELIC-10
    #[test]
    fn form_before_2025_11_25_has_no_defaults_and_uses_enum_names() {
        let mut form: ElicitRequestFormParams = serde_json::from_value(json!({
            "mode": "form",
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {
                "text": {"type": "string", "default": "a"},
                "number": {"type": "integer", "default": 1},
                "flag": {"type": "boolean", "default": true},
                "plain": {"type": "string", "enum": ["a"], "default": "a"},
                "named": {"type": "string", "title": "T", "oneOf": [{"const": "a", "title": "A"}], "default": "a"},
            }},
        }))
        .unwrap();
        let newest = form.clone();
        shape_form(VERSIONS[1], &mut form);
        assert_eq!(json!(form), json!(newest));
        shape_form(VERSIONS[2], &mut form);
        assert_eq!(
            json!(form),
            json!({
                "message": "?",
                "requestedSchema": {"type": "object", "properties": {
                    "text": {"type": "string"},
                    "number": {"type": "integer"},
                    "flag": {"type": "boolean", "default": true},
                    "plain": {"type": "string", "enum": ["a"]},
                    "named": {"type": "string", "title": "T", "enum": ["a"], "enumNames": ["A"]},
                }},
            })
        );
    }

    // SAMP-08
    #[test]
    fn sampling_message_before_2025_11_25_has_one_block() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let InputRequest::CreateMessage(mut params) = request(
            "sampling/createMessage",
            &json!({"maxTokens": 1, "messages": [
                {"role": "user", "content": [text("a"), text("b")]},
                {"role": "assistant", "content": text("c")},
            ]}),
        ) else {
            panic!("expected a sampling request");
        };
        shape_conversation(VERSIONS[2], &mut params);
        assert_eq!(
            json!(params.messages),
            json!([
                {"role": "user", "content": text("a")},
                {"role": "user", "content": text("b")},
                {"role": "assistant", "content": text("c")},
            ])
        );
    }

    #[test]
    fn task_member_is_sent_only_in_2025_11_25() {
        let mut form: ElicitRequestFormParams = serde_json::from_value(json!({
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {}},
            "task": {"ttl": 1},
        }))
        .unwrap();
        let mut params = conversation(&json!({"maxTokens": 1, "messages": [], "task": {"ttl": 1}}));
        shape_form(VERSIONS[1], &mut form);
        shape_conversation(VERSIONS[1], &mut params);
        assert!(form.task.is_some() && params.task.is_some());
        shape_form(VERSIONS[2], &mut form);
        shape_conversation(VERSIONS[2], &mut params);
        assert!(form.task.is_none() && params.task.is_none());
    }

    // SAMP-15
    #[test]
    fn structured_content_that_is_not_an_object_is_removed() {
        let result = |structured: Value| json!({"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": structured});
        let mut params = conversation(&json!({"maxTokens": 1, "messages": [
            {"role": "user", "content": [result(json!([1])), result(json!({"a": 1}))]},
        ]}));
        shape_conversation(VERSIONS[1], &mut params);
        let plain = json!({"type": "tool_result", "toolUseId": "1", "content": []});
        assert_eq!(json!(params.messages[0].content), json!([plain, result(json!({"a": 1}))]));
    }

    #[test]
    fn sampling_block_in_older_version_has_no_newer_members() {
        let said = |beside: Value| {
            let mut block = json!({"type": "text", "text": "a"});
            block.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            block
        };
        let dated = json!({
            "annotations": {"priority": 1, "lastModified": "2025-01-12T15:00:58Z"},
            "_meta": {"example.com/a": 1},
        });
        let undated = json!({"annotations": {"priority": 1}});
        for (rules, expected) in VERSIONS[1..].iter().zip([&dated, &dated, &undated, &undated]) {
            let mut params = conversation(&json!({"maxTokens": 1, "messages": [
                {"role": "user", "content": said(dated.clone())},
            ]}));
            shape_conversation(rules, &mut params);
            assert_eq!(json!(params.messages[0].content), said(expected.clone()), "{rules:?}");
        }
    }

    fn conversation(params: &Value) -> CreateMessageRequestParams {
        serde_json::from_value(params.clone()).unwrap()
    }
}
