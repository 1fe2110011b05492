//! Sampling, with and without tools, and roots.

use outlive::{
    server::{Durable, Result, Server, Tool, durable::DurableError},
    wire::{
        ContentBlock, CreateMessageRequestParams, IncludeContext, ModelHint, ModelPreferences,
        Role, SamplingContent, SamplingMessage, SamplingMessageContentBlock as Block, ToolChoice,
        ToolChoiceMode, ToolResultContent,
    },
};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Talk, WIRES, server, text_of},
    support::pipe::{MODERN, REVISIONS, raw},
};

fn hello() -> CreateMessageRequestParams {
    CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, "What is the weather?")],
        max_tokens: 100,
        ..Default::default()
    }
}

fn says(text: &str) -> Value {
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "parrot-2",
        "stopReason": "endTurn",
    })
}

fn text_in(content: &SamplingContent) -> String {
    let texts = content.blocks().iter().map(|block| match block {
        Block::Text(text) => text.text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("+")
}

async fn ask(cx: Durable) -> Result<String> {
    let answer = cx.sample("ask", hello()).await?;
    let stopped = answer.stop_reason.unwrap_or_default();
    Ok(format!("{:?} {} {} {stopped}", answer.role, answer.model, text_in(&answer.content)))
}

/// Samples with every parameter set.
async fn everything(cx: Durable) -> Result<String> {
    let params = CreateMessageRequestParams {
        model_preferences: Some(ModelPreferences {
            hints: Some(vec![ModelHint { name: Some("parrot".into()) }]),
            cost_priority: Some(0.5),
            speed_priority: Some(0.0),
            intelligence_priority: Some(1.0),
        }),
        system_prompt: Some("Be brief.".into()),
        include_context: Some(IncludeContext::ThisServer),
        temperature: Some(0.7),
        stop_sequences: Some(vec!["stop".into()]),
        metadata: Some(json!({"com.example/user": 1}).as_object().unwrap().clone()),
        ..hello()
    };
    Ok(cx.sample("ask", params).await?.model)
}

/// Offers a tool to the model and returns the tool's results.
async fn with_tools(cx: Durable) -> Result<String> {
    let tool = outlive::wire::Tool::new("weather", raw(&json!({"type": "object"})));
    let tools = CreateMessageRequestParams {
        tools: Some(vec![tool]),
        tool_choice: Some(ToolChoice { mode: Some(ToolChoiceMode::Required) }),
        ..hello()
    };
    let first = cx.sample("first", tools.clone()).await?;
    let mut results = Vec::new();
    for block in first.content.blocks() {
        let Block::ToolUse(used) = block else { continue };
        results.push(Block::ToolResult(ToolResultContent {
            tool_use_id: used.id.clone(),
            content: vec![ContentBlock::text(format!("{} says rain", used.name))],
            ..Default::default()
        }));
    }
    let mut second = tools;
    let said = SamplingMessage { role: Role::Assistant, content: first.content, meta: first.meta };
    second.messages.push(said);
    let content = SamplingContent::Many(results);
    second.messages.push(SamplingMessage { role: Role::User, content, meta: None });
    let last = cx.sample("second", second).await?;
    Ok(text_in(&last.content))
}

/// Sends a conversation with an unanswered tool use, which is invalid.
async fn unanswered(cx: Durable) -> Result<String> {
    let mut params = hello();
    let used = json!({"role": "assistant", "content": {"type": "tool_use", "id": "u1", "name": "t", "input": {}}});
    params.messages.push(serde_json::from_value(used)?);
    params.messages.push(SamplingMessage::text(Role::User, "And?"));
    let error = cx.sample("ask", params).await.unwrap_err();
    match error.durable_error() {
        Some(DurableError::InvalidInputRequest { key, reason }) => Ok(format!("{key}: {reason}")),
        _ => Err(error),
    }
}

/// Sends a message with two content blocks.
async fn two_blocks(cx: Durable) -> Result<String> {
    let block = |text: &str| json!({"type": "text", "text": text});
    let message = json!({"role": "user", "content": [block("one"), block("two")]});
    let params =
        CreateMessageRequestParams { messages: vec![serde_json::from_value(message)?], ..hello() };
    Ok(cx.sample("ask", params).await?.model)
}

async fn roots(cx: Durable) -> Result<String> {
    let roots = cx.roots("roots").await?;
    let shown = roots.iter().map(|root| {
        let name = root.name.as_deref().unwrap_or("-");
        format!("{} {name}", root.uri)
    });
    Ok(shown.collect::<Vec<_>>().join(", "))
}

fn asking() -> Server {
    server([
        Tool::new("ask", ask),
        Tool::new("everything", everything),
        Tool::new("with_tools", with_tools),
        Tool::new("unanswered", unanswered),
        Tool::new("two_blocks", two_blocks),
        Tool::new("roots", roots),
    ])
}

// SAMP-04, SAMP-07, SAMP-13, SAMP-14
#[tokio::test(start_paused = true)]
async fn sampling_works_in_every_version() {
    for version in REVISIONS {
        let mut talk = Talk::open(&asking(), version).await;
        let played = talk.call("ask", |_| says("rain")).await;
        assert_eq!(played.text(), "Assistant parrot-2 rain endTurn", "{version}");
        let message =
            json!({"role": "user", "content": {"type": "text", "text": "What is the weather?"}});
        let params = json!({"messages": [message], "maxTokens": 100});
        assert_eq!(
            played.asked,
            [json!({"method": "sampling/createMessage", "params": params})],
            "{version}"
        );
    }
}

// SAMP-07, SAMP-08: a sampling result may have several blocks and any stop reason
#[tokio::test(start_paused = true)]
async fn sampling_result_with_several_blocks_and_own_stop_reason_is_accepted() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let block = |text: &str| json!({"type": "text", "text": text});
        let mut answer = says("");
        answer["content"] = json!([block("rain"), block("wind")]);
        answer["stopReason"] = json!("bored");
        answer["_meta"] = json!({"com.example/x": 1});
        let played = talk.call("ask", |_| answer.clone()).await;
        assert_eq!(played.text(), "Assistant parrot-2 rain+wind bored", "{version}");
        answer.as_object_mut().unwrap().remove("stopReason");
        answer["content"] = json!([]);
        let played = talk.call("ask", |_| answer.clone()).await;
        assert_eq!(played.text(), "Assistant parrot-2  ", "{version}");
    }
}

// SAMP-03, SAMP-04
#[tokio::test(start_paused = true)]
async fn sampling_request_carries_every_parameter() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let played = talk.call("everything", |_| says("x")).await;
        let mut params = played.asked[0]["params"].clone();
        params.as_object_mut().unwrap().remove("messages");
        assert_eq!(
            params,
            json!({
                "modelPreferences": {
                    "hints": [{"name": "parrot"}],
                    "costPriority": 0.5,
                    "speedPriority": 0,
                    "intelligencePriority": 1,
                },
                "systemPrompt": "Be brief.",
                "includeContext": "thisServer",
                "temperature": 0.7,
                "maxTokens": 100,
                "stopSequences": ["stop"],
                "metadata": {"com.example/user": 1},
            }),
            "{version}"
        );
    }
}

// SAMP-03
#[tokio::test(start_paused = true)]
async fn sampling_without_context_capability_omits_context() {
    for version in WIRES {
        for can in [json!({"sampling": {}}), json!({"sampling": {"tools": {}}})] {
            let mut talk = Talk::open_with(&asking(), version, can).await;
            let played = talk.call("everything", |_| says("x")).await;
            let context = played.asked[0]["params"].get("includeContext");
            assert!(context.is_none_or(|context| context == "none"), "{version}: {context:?}");
        }
    }
}

// SAMP-02, SAMP-04, SAMP-09, SAMP-10, SAMP-12
#[tokio::test(start_paused = true)]
async fn sampling_with_tools_exchanges_tool_results() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let uses = |id: &str| json!({"type": "tool_use", "id": id, "name": "weather", "input": {"at": id}});
        let mut using = says("");
        using["content"] = json!([uses("u1"), uses("u2")]);
        using["stopReason"] = json!("toolUse");
        let mut answers = vec![says("take an umbrella"), using.clone()];
        let played = talk.call("with_tools", |_| answers.pop().unwrap()).await;
        assert_eq!(played.text(), "take an umbrella", "{version}");
        for asked in &played.asked {
            assert_eq!(asked["params"]["tools"][0]["name"], "weather");
            assert_eq!(asked["params"]["toolChoice"], json!({"mode": "required"}));
        }
        let result = |id: &str| {
            let said = json!({"type": "text", "text": "weather says rain"});
            json!({"type": "tool_result", "toolUseId": id, "content": [said]})
        };
        let messages = &played.asked[1]["params"]["messages"];
        assert_eq!(messages[1], json!({"role": "assistant", "content": using["content"]}));
        assert_eq!(messages[2], json!({"role": "user", "content": [result("u1"), result("u2")]}));
    }
}

// SAMP-09, SAMP-10
#[tokio::test(start_paused = true)]
async fn sampling_with_unanswered_tool_use_is_not_sent() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let answer = talk.call_quietly("unanswered").await;
        let expected = "ask: message 3: the result of tool use `u1` is missing";
        assert_eq!(text_of(&answer), expected, "{version}");
        talk.pipe.quiet().await;
    }
}

// SAMP-08
#[tokio::test(start_paused = true)]
async fn sampling_before_2025_11_25_splits_blocks_into_messages() {
    let block = |text: &str| json!({"type": "text", "text": text});
    let one = |text: &str| json!({"role": "user", "content": block(text)});
    for version in REVISIONS {
        let mut talk = Talk::open(&asking(), version).await;
        let played = talk.call("two_blocks", |_| says("x")).await;
        let expected = match version >= "2025-11-25" {
            true => json!([{"role": "user", "content": [block("one"), block("two")]}]),
            false => json!([one("one"), one("two")]),
        };
        assert_eq!(played.asked[0]["params"]["messages"], expected, "{version}");
    }
}

// ROOT-02, ROOT-06
#[tokio::test(start_paused = true)]
async fn roots_request_works_in_every_version() {
    for version in REVISIONS {
        let mut talk = Talk::open(&asking(), version).await;
        let listed = json!({"roots": [
            {"uri": "file:///home/anna", "name": "Home", "_meta": {"com.example/x": 1}},
            {"uri": "file:///tmp"},
        ]});
        let played = talk.call("roots", |_| listed.clone()).await;
        assert_eq!(played.text(), "file:///home/anna Home, file:///tmp -", "{version}");
        assert_eq!(played.asked[0]["method"], "roots/list");
        let none = talk.call("roots", |_| json!({"roots": []})).await;
        assert_eq!(none.text(), "", "{version}: the list of roots may be empty");
    }
}

// ROOT-02
#[tokio::test(start_paused = true)]
async fn root_without_file_scheme_is_rejected() {
    for uri in ["https://example.com", "file:/home", "/home", "FILE:///home", "", "ffile:///"] {
        let mut talk = Talk::open(&asking(), MODERN).await;
        let played = talk.call("roots", |_| json!({"roots": [{"uri": uri}]})).await;
        let message =
            format!("`params.inputResponses`: `roots`: the root `{uri}` is not a file:// URI");
        assert_eq!(played.answer["error"], json!({"code": -32602, "message": message}));
    }
}
