//! The messages that both transports send.

use serde_json::{Value, json};

/// The resource of every process.
pub(super) const URI: &str = "note://same";

/// The tools of a server.
pub(super) fn tools(names: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": {"mark": {"type": "string"}}});
    let tool = |name: &&str| {
        let mut tool = json!({"name": name, "inputSchema": schema});
        if *name == "work" {
            tool["execution"] = json!({"taskSupport": "required"});
        }
        tool
    };
    json!({"tools": names.iter().map(tool).collect::<Vec<_>>()})
}

/// The result of `initialize`.
pub(super) fn handshake(version: &str) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {},
    });
    if version == "2025-11-25" {
        capabilities["tasks"] =
            json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    json!({
        "protocolVersion": version, "capabilities": capabilities,
        "serverInfo": {"name": "marking", "version": "1"},
    })
}

pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// An input request about a mark.
pub(super) fn form(mark: &str) -> Value {
    json!({
        "message": format!("Confirm {mark}"),
        "requestedSchema": {"type": "object", "properties": {"mark": {"type": "string"}}},
    })
}

/// The result of a call after the input response.
pub(super) fn confirmed(mark: &str, response: &Value) -> Value {
    let said = response["content"]["mark"].as_str().unwrap_or("nothing");
    text(&format!("{mark} confirmed {said}"))
}

/// The mark in the arguments of a call.
pub(super) fn mark_of(message: &Value) -> &str {
    message["params"]["arguments"]["mark"].as_str().unwrap_or_default()
}

pub(super) fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) fn not_found(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not found"}})
}
