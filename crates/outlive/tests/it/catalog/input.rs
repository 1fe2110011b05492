//! Input requests of any kind, whose responses pass unchanged.

use std::time::Duration;

use outlive::{
    server::{Durable, Result, Server, Tool},
    wire::InputRequest,
};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, result, text};

/// Sends the input request in its arguments, and returns the response as text.
async fn ask(cx: Durable) -> Result<String> {
    let request: InputRequest = serde_json::from_str(cx.call().arguments()?)?;
    let response = cx.request_input("far", request).timeout(Duration::from_secs(60)).await?;
    Ok(response.get().to_owned())
}

fn server() -> Server {
    Server::builder("near", "1")
        .tool(Tool::relayed(super::world::tool_definition("ask"), ask))
        .build()
        .unwrap()
}

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// Input requests, and a response to each with members that this server does not know.
fn cases() -> [(Value, Value); 4] {
    let form = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form", "message": "Name?",
            "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    });
    let url = json!({
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "far"},
    });
    let sample = json!({
        "method": "sampling/createMessage",
        "params": {
            "maxTokens": 5,
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        },
    });
    let roots = json!({"method": "roots/list", "params": {}});
    let message = json!({
        "role": "assistant", "model": "m", "content": {"type": "text", "text": "Ho"},
    });
    [
        // Neither a number nor a member of the form: the other server judges it.
        (form, json!({"action": "accept", "content": {"n": "one", "m": true}})),
        (url, json!({"action": "cancel"})),
        (sample, message),
        (roots, json!({"roots": [{"uri": "file:///a", "name": "a"}]})),
    ]
}

#[tokio::test(start_paused = true)]
async fn input_response_of_legacy_client_passes_unchanged() {
    for (request, response) in cases() {
        let mut pipe = Pipe::open(&server());
        pipe.legacy_with("2025-11-25", capabilities()).await;
        let id = pipe.send("tools/call", json!({"name": "ask", "arguments": request})).await;
        let asked = pipe.read().await;
        assert_eq!(asked["method"], request["method"]);
        if let Some(id) = asked["params"].get("elicitationId") {
            assert_ne!(id, "far", "IDs belong to this server");
        }
        pipe.reply(&asked, response.clone()).await;
        let answer = pipe.answer(id).await;
        assert_eq!(text(&answer["result"]), response.to_string(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_response_of_modern_client_passes_unchanged() {
    for (request, response) in cases() {
        let mut pipe = Pipe::open(&server());
        let params = json!({"name": "ask", "arguments": request});
        let asked = pipe.modern_with(capabilities(), "tools/call", params.clone()).await;
        let asked = result(&asked);
        assert_eq!(asked["inputRequests"]["far"]["method"], request["method"], "{asked}");
        assert!(asked["inputRequests"]["far"]["params"].get("elicitationId").is_none());
        let mut retry = params;
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({"far": response});
        let answer = pipe.modern_with(capabilities(), "tools/call", retry).await;
        assert_eq!(text(&result(&answer)), response.to_string(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_request_without_capability_fails() {
    for version in ["2025-11-25", MODERN] {
        for (request, _) in cases() {
            let mut pipe = Pipe::speaking(&server(), version).await;
            let params = json!({"name": "ask", "arguments": request});
            let answer = pipe.ask("tools/call", params).await;
            let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
            assert!(failed, "{version}: {answer}");
        }
    }
}
