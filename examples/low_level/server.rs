//! The low-level API: methods with raw parameters and raw results.
//!
//! Run with `cargo run -p outlive-examples --bin low-level`.

use outlive::{
    server::{Cx, Error, Json, ProtocolError, Result, Server, extract::RawParams},
    wire::RawJson,
};
use serde_json::{Value, json, value::to_raw_value};

/// Replaces the tool registry: returns a fixed list with one tool.
async fn list_tools() -> Json<Value> {
    Json(json!({"tools": [{
        "name": "reverse",
        "description": "Reverses a text",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    }], "ttlMs": 0, "cacheScope": "public"}))
}

async fn call_tool(RawParams(params): RawParams) -> Result<RawJson> {
    let params: Value = serde_json::from_str(params.get())?;
    match params["name"].as_str() {
        Some("reverse") => {
            let text = params["arguments"]["text"]
                .as_str()
                .ok_or_else(|| Error::invalid_params("`text` is missing"))?;
            let turned: String = text.chars().rev().collect();
            Ok(to_raw_value(&json!({"content": [{"type": "text", "text": turned}]}))?)
        }
        other => {
            let name = other.unwrap_or_default().to_owned();
            Err(ProtocolError::UnknownTool { name, suggestion: None }.into())
        }
    }
}

/// A custom method.
async fn uptime(cx: Cx) -> Result<Json<Value>> {
    cx.notify("com.example/asked", json!({"by": cx.principal().to_string()}))?;
    Ok(Json(json!({"answeredBy": "low-level"})))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder("low-level", "1.0.0")
        .advertise_tools()
        .extension("com.example/uptime", json!({}))
        .custom_method("tools/list", list_tools)
        .custom_method("tools/call", call_tool)
        .custom_method("com.example/uptime", uptime)
        .on_notification("com.example/hello", |notice| eprintln!("{} says hello", notice.principal))
        .build()?;
    outlive_examples::serve(server).await
}
