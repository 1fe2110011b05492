//! Questions to the client as requests: which of them a revision knows, and how it writes them.

use outlive_wire::{
    CancelledNotificationParams, ClientCapabilities, CreateMessageRequestParams,
    ElicitRequestFormParams, ElicitRequestParams, ElicitationCompleteNotificationParams,
    InputRequest, LegacyTitledEnumSchema, Method, PrimitiveSchemaDefinition as Field,
    SamplingContent, SamplingMessage, SamplingMessageContentBlock as Block, Version,
};

use serde_json::{Value, json};

use super::{Legacy, shape};
use crate::{
    Call,
    era::{error::put, input, notify},
};

/// Elicitation came with 2025-06-18; URLs, several choices, and tools for the model with 2025-11-25.
pub(super) fn has_words_for(era: &Legacy, request: &InputRequest) -> bool {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            era.since(Version::V2025_11_25)
                || (era.since(Version::V2025_06_18) && !has_several_choices(form))
        }
        InputRequest::Elicit(_) => era.since(Version::V2025_11_25),
        InputRequest::CreateMessage(params) => has_words_for_model(era, params),
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

fn has_words_for_model(era: &Legacy, params: &CreateMessageRequestParams) -> bool {
    if era.since(Version::V2025_11_25) {
        return true;
    }
    let says = |block: &Block| match block {
        Block::Text(_) | Block::Image(_) => true,
        Block::Audio(_) => era.since(Version::V2025_03_26),
        _ => false,
    };
    let mut blocks = params.messages.iter().flat_map(|message| message.content.blocks());
    params.tools.is_none() && params.tool_choice.is_none() && blocks.all(says)
}

/// Whether the client has declared that it runs questions of this kind as tasks.
pub(super) fn hosts(call: &Call, request: &InputRequest) -> bool {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let place = match request {
        InputRequest::Elicit(_) => "/requests/elicitation/create",
        InputRequest::CreateMessage(_) => "/requests/sampling/createMessage",
        _ => return false,
    };
    declared.tasks.is_some_and(|tasks| tasks.pointer(place).is_some_and(Value::is_object))
}

/// Writes a request about a task that the client runs.
pub(super) fn task_request(id: u64, method: Method, task: &str, out: &mut Vec<u8>) {
    let params = json!({"taskId": task});
    put(&json!({"jsonrpc": "2.0", "method": method.as_str(), "params": params, "id": id}), out);
}

/// Writes a question as a request.
pub(super) fn request(
    era: &Legacy,
    call: &Call,
    id: u64,
    mut request: InputRequest,
    out: &mut Vec<u8>,
) {
    match &mut request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => shape_form(era, form),
        InputRequest::CreateMessage(params) => {
            // The capability is as old as the advice to have it.
            if era.since(Version::V2025_11_25) {
                input::spare_context(call, params);
            }
            shape_conversation(era, params);
        }
        _ => {}
    }
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    let at = out.len();
    put(&request, out);
    // Method and parameters are members of the request: the opening brace becomes a comma. They
    // come before the id, as in a notification: answers are told apart by beginning with one.
    out[at] = b',';
    out.pop();
    out.extend_from_slice(format!(r#","id":{id}}}"#).as_bytes());
}

/// Takes out of a form what came with 2025-11-25, and names choices as it was done before.
fn shape_form(era: &Legacy, form: &mut ElicitRequestFormParams) {
    if era.since(Version::V2025_11_25) {
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

/// Takes out of a conversation what the revision does not know.
fn shape_conversation(era: &Legacy, params: &mut CreateMessageRequestParams) {
    if !era.since(Version::V2025_11_25) {
        params.task = None;
        one_block_each(params);
    }
    params.tools.iter_mut().flatten().for_each(|tool| shape::tool(era, tool));
    for message in &mut params.messages {
        match &mut message.content {
            SamplingContent::One(block) => shape::model_block(era, block),
            SamplingContent::Many(blocks) => {
                blocks.iter_mut().for_each(|block| shape::model_block(era, block));
            }
        }
    }
}

/// Before 2025-11-25 a message is one block: what has several becomes several messages.
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

/// `false` where the revision has no word for it.
pub(super) fn url_done(era: &Legacy, elicitation_id: String, out: &mut Vec<u8>) -> bool {
    let known = era.since(Version::V2025_11_25);
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

    use super::{has_words_for, shape_conversation, shape_form};
    use crate::era::legacy::REVISIONS;

    fn request(method: &str, params: &Value) -> InputRequest {
        serde_json::from_value(json!({"method": method, "params": params})).unwrap()
    }

    /// Which revisions know a question, newest first.
    #[track_caller]
    fn check_known(method: &str, params: &Value, expected: [bool; 4]) {
        let request = request(method, params);
        let known = REVISIONS.each_ref().map(|era| has_words_for(era, &request));
        assert_eq!(known, expected, "{request:?}");
    }

    // ELIC-24, ELIC-12, SAMP-08
    #[test]
    fn a_revision_is_asked_what_it_has_words_for() {
        let form = |field: Value| json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"x": field}}});
        let say = |block: Value| json!({"maxTokens": 1, "messages": [{"role": "user", "content": block}]});
        let (elicit, sample) = ("elicitation/create", "sampling/createMessage");
        check_known(elicit, &form(json!({"type": "string"})), [true, true, false, false]);
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
        check_known(elicit, &form(several), [true, false, false, false]);
        let url = json!({"mode": "url", "message": "?", "url": "https://a.b"});
        check_known(elicit, &url, [true, false, false, false]);
        check_known(sample, &say(json!({"type": "text", "text": "x"})), [true; 4]);
        let audio = json!({"type": "audio", "data": "", "mimeType": "audio/wav"});
        check_known(sample, &say(audio), [true, true, true, false]);
        let tool_use = json!({"type": "tool_use", "id": "1", "name": "t", "input": {}});
        check_known(sample, &say(tool_use), [true, false, false, false]);
        check_known("roots/list", &json!({}), [true; 4]);
    }

    // ELIC-09, ELIC-10
    #[test]
    fn an_older_form_has_no_defaults_and_names_its_choices_beside_them() {
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
        shape_form(&REVISIONS[0], &mut form);
        assert_eq!(json!(form), json!(newest));
        shape_form(&REVISIONS[1], &mut form);
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
    fn an_older_message_is_one_block() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let InputRequest::CreateMessage(mut params) = request(
            "sampling/createMessage",
            &json!({"maxTokens": 1, "messages": [
                {"role": "user", "content": [text("a"), text("b")]},
                {"role": "assistant", "content": text("c")},
            ]}),
        ) else {
            panic!("a question for the model");
        };
        shape_conversation(&REVISIONS[1], &mut params);
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
    fn only_2025_11_25_can_be_asked_for_a_task() {
        let mut form: ElicitRequestFormParams = serde_json::from_value(json!({
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {}},
            "task": {"ttl": 1},
        }))
        .unwrap();
        let mut params = conversation(&json!({"maxTokens": 1, "messages": [], "task": {"ttl": 1}}));
        shape_form(&REVISIONS[0], &mut form);
        shape_conversation(&REVISIONS[0], &mut params);
        assert!(form.task.is_some() && params.task.is_some());
        shape_form(&REVISIONS[1], &mut form);
        shape_conversation(&REVISIONS[1], &mut params);
        assert!(form.task.is_none() && params.task.is_none());
    }

    // SAMP-15
    #[test]
    fn a_tool_result_is_structured_as_an_object_or_not_at_all() {
        let result = |structured: Value| json!({"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": structured});
        let mut params = conversation(&json!({"maxTokens": 1, "messages": [
            {"role": "user", "content": [result(json!([1])), result(json!({"a": 1}))]},
        ]}));
        shape_conversation(&REVISIONS[0], &mut params);
        let plain = json!({"type": "tool_result", "toolUseId": "1", "content": []});
        assert_eq!(json!(params.messages[0].content), json!([plain, result(json!({"a": 1}))]));
    }

    #[test]
    fn blocks_of_older_conversations_have_nothing_new_beside_them() {
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
        for (era, expected) in REVISIONS.iter().zip([&dated, &dated, &undated, &undated]) {
            let mut params = conversation(&json!({"maxTokens": 1, "messages": [
                {"role": "user", "content": said(dated.clone())},
            ]}));
            shape_conversation(era, &mut params);
            assert_eq!(json!(params.messages[0].content), said(expected.clone()), "{era:?}");
        }
    }

    fn conversation(params: &Value) -> CreateMessageRequestParams {
        serde_json::from_value(params.clone()).unwrap()
    }
}
