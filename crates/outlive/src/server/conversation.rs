//! What a conversation must be before it is put to a client's model.

use outlive_wire::{Role, SamplingMessage, SamplingMessageContentBlock as Block};

/// Checks that every use of a tool is answered right behind it, by results and nothing else.
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
            return wrong("results of tools stand alone in their message");
        }
        if !results.is_empty() && message.role != Role::User {
            return wrong("results of tools are a message of the user");
        }
        if let Some(missing) = open.iter().find(|id| !results.contains(*id)) {
            return wrong(&format!("the use `{missing}` of a tool is to be answered first"));
        }
        if let Some(unknown) = results.iter().find(|id| !open.contains(*id)) {
            return wrong(&format!("nobody used a tool as `{unknown}`"));
        }
        if let Some(twice) = repeated(&results) {
            return wrong(&format!("the use `{twice}` of a tool is answered twice"));
        }
        open = blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse(tool) => Some(tool.id.as_str()),
                _ => None,
            })
            .collect();
        if !open.is_empty() && message.role != Role::Assistant {
            return wrong("only the model uses tools");
        }
        if let Some(twice) = repeated(&open) {
            return wrong(&format!("two uses of tools are both called `{twice}`"));
        }
    }
    match open.first() {
        Some(id) => Err(format!("the use `{id}` of a tool is not answered")),
        None => Ok(()),
    }
}

/// An id that is there more than once.
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
    fn every_use_of_a_tool_is_answered_right_behind_it() {
        check(json!([]), Ok(()));
        check(json!([text("user"), text("assistant"), text("user")]), Ok(()));
        check(json!([uses(&["a", "b"]), results(&["b", "a"]), text("user")]), Ok(()));
        check(json!([uses(&["a"]), results(&["a"]), uses(&["b"]), results(&["b"])]), Ok(()));
        check(json!([uses(&["a"])]), Err("the use `a` of a tool is not answered"));
        check(
            json!([uses(&["a"]), text("user")]),
            Err("message 2: the use `a` of a tool is to be answered first"),
        );
        check(
            json!([uses(&["a", "b"]), results(&["a"])]),
            Err("message 2: the use `b` of a tool is to be answered first"),
        );
        check(json!([text("user"), results(&["a"])]), Err("message 2: nobody used a tool as `a`"));
        let mut mixed = results(&["a"]);
        mixed["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "x"}));
        check(
            json!([uses(&["a"]), mixed]),
            Err("message 2: results of tools stand alone in their message"),
        );
        check(
            json!([uses(&["a"]), results(&["a", "a"])]),
            Err("message 2: the use `a` of a tool is answered twice"),
        );
        check(
            json!([uses(&["a", "a"]), results(&["a"])]),
            Err("message 1: two uses of tools are both called `a`"),
        );
        let mut user = uses(&["a"]);
        user["role"] = json!("user");
        check(json!([user]), Err("message 1: only the model uses tools"));
    }
}
