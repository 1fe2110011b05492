//! Validates the messages of a sampling request.

use outlive_wire::{Role, SamplingMessage, SamplingMessageContentBlock as Block};

/// Checks that each tool use is followed by a message that contains its result and only results.
pub(crate) fn check_conversation(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("message {}: {what}", index + 1));
        let blocks = message.content.blocks();
        let results: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.tool_use_id.as_str()),
                _ => None,
            })
            .collect();
        if !results.is_empty() && results.len() < blocks.len() {
            return wrong("tool results must be the only content of their message");
        }
        if !results.is_empty() && message.role != Role::User {
            return wrong("tool results must be in a user message");
        }
        if let Some(missing) = open.iter().find(|id| !results.contains(*id)) {
            return wrong(&format!("the result of tool use `{missing}` is missing"));
        }
        if let Some(unknown) = results.iter().find(|id| !open.contains(*id)) {
            return wrong(&format!("no tool use has the ID `{unknown}`"));
        }
        if let Some(twice) = repeated(&results) {
            return wrong(&format!("tool use `{twice}` has two results"));
        }
        open = blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse(tool) => Some(tool.id.as_str()),
                _ => None,
            })
            .collect();
        if !open.is_empty() && message.role != Role::Assistant {
            return wrong("tool uses must be in an assistant message");
        }
        if let Some(twice) = repeated(&open) {
            return wrong(&format!("two tool uses have the ID `{twice}`"));
        }
    }
    match open.first() {
        Some(id) => Err(format!("tool use `{id}` has no result")),
        None => Ok(()),
    }
}

/// Returns an ID that occurs more than once.
fn repeated<'a>(ids: &[&'a str]) -> Option<&'a str> {
    ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)).map(|(_, id)| *id)
}

#[cfg(test)]
mod tests {
    use outlive_wire::SamplingMessage;
    use serde_json::{Value, json};

    use super::check_conversation;

    #[track_caller]
    fn check(messages: Value, expected: Result<(), &str>) {
        let messages: Vec<SamplingMessage> = serde_json::from_value(messages).unwrap();
        assert_eq!(check_conversation(&messages), expected.map_err(str::to_owned));
    }

    fn text(role: &str) -> Value {
        json!({"role": role, "content": {"type": "text", "text": "x"}})
    }

    fn uses(ids: &[&str]) -> Value {
        let uses =
            ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}}));
        json!({"role": "assistant", "content": uses.collect::<Vec<_>>()})
    }

    fn results(ids: &[&str]) -> Value {
        let results =
            ids.iter().map(|id| json!({"type": "tool_result", "toolUseId": id, "content": []}));
        json!({"role": "user", "content": results.collect::<Vec<_>>()})
    }

    // SAMP-09, SAMP-10
    #[test]
    fn conversation_needs_result_directly_after_each_tool_use() {
        check(json!([]), Ok(()));
        check(json!([text("user"), text("assistant"), text("user")]), Ok(()));
        check(json!([uses(&["a", "b"]), results(&["b", "a"]), text("user")]), Ok(()));
        check(json!([uses(&["a"]), results(&["a"]), uses(&["b"]), results(&["b"])]), Ok(()));
        check(json!([uses(&["a"])]), Err("tool use `a` has no result"));
        check(
            json!([uses(&["a"]), text("user")]),
            Err("message 2: the result of tool use `a` is missing"),
        );
        check(
            json!([uses(&["a", "b"]), results(&["a"])]),
            Err("message 2: the result of tool use `b` is missing"),
        );
        check(json!([text("user"), results(&["a"])]), Err("message 2: no tool use has the ID `a`"));
        let mut mixed = results(&["a"]);
        mixed["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "x"}));
        check(
            json!([uses(&["a"]), mixed]),
            Err("message 2: tool results must be the only content of their message"),
        );
        check(
            json!([uses(&["a"]), results(&["a", "a"])]),
            Err("message 2: tool use `a` has two results"),
        );
        check(
            json!([uses(&["a", "a"]), results(&["a"])]),
            Err("message 1: two tool uses have the ID `a`"),
        );
        let mut user = uses(&["a"]);
        user["role"] = json!("user");
        check(json!([user]), Err("message 1: tool uses must be in an assistant message"));
    }
}
