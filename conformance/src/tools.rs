//! The tools of the suite.

use std::time::Duration;

use outlive::{
    server::{
        Args, BuildError, CallToolResult, ContentBlock, Cx, LoggingLevel, Prompt, Result, Server,
        ServerBuilder, Tool,
    },
    wire::ResourceContents,
};
use serde_json::{json, value::to_raw_value};

/// A red dot.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(Tool::new("test_simple_text", simple_text).description("Returns text"))
        .tool(Tool::new("test_image_content", image).description("Returns an image"))
        .tool(Tool::new("test_audio_content", audio).description("Returns audio"))
        .tool(Tool::new("test_embedded_resource", embedded).description("Returns a resource"))
        .tool(
            Tool::new("test_multiple_content_types", mixed)
                .description("Returns several kinds of content"),
        )
        .tool(Tool::new("test_error_handling", failing).description("Fails"))
        .tool(Tool::new("test_tool_with_progress", progress).description("Reports progress"))
        .tool(Tool::new("test_tool_with_logging", logging).description("Logs while it works"))
        .tool(
            Tool::new("test_logging_tool", logging).description("Logs if the request asks for it"),
        )
        .tool(
            Tool::new("test_reconnection", reconnection)
                .description("Closes its stream and continues"),
        )
        .tool(
            Tool::new("test_missing_capability", missing_capability)
                .description("Requires sampling"),
        )
        .tool(
            Tool::new("test_custom_header", custom_header)
                .description("Takes an argument that a header mirrors"),
        )
        .tool(
            Tool::new("json_schema_2020_12_tool", simple_text)
                .description("Has a schema with every keyword")
                .input_schema(to_raw_value(&schema_2020_12()).unwrap_or_default()),
        )
}

/// Adds the tools that change their own server.
pub(crate) fn own(server: &Server) -> Result<(), BuildError> {
    let own = server.clone();
    server.add_tool(
        Tool::new("test_trigger_tool_change", move || change_tools(own.clone()))
            .description("Changes the list of tools"),
    )?;
    let own = server.clone();
    server.add_tool(
        Tool::new("test_trigger_prompt_change", move || change_prompts(own.clone()))
            .description("Changes the list of prompts"),
    )
}

async fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

async fn image() -> ContentBlock {
    ContentBlock::image_base64(PNG, "image/png")
}

async fn audio() -> ContentBlock {
    ContentBlock::audio_base64(WAV, "audio/wav")
}

async fn embedded() -> ContentBlock {
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

async fn mixed() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image_base64(PNG, "image/png"),
        resource(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ]
}

async fn failing() -> CallToolResult {
    CallToolResult::error("This tool intentionally returns an error for testing")
}

async fn progress(cx: Cx) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        cx.progress(done, 100.0, "");
        tokio::time::sleep(PAUSE).await;
    }
    "done"
}

async fn logging(cx: Cx) -> &'static str {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        cx.log(LoggingLevel::Info, line);
        tokio::time::sleep(PAUSE).await;
    }
    "logged"
}

async fn reconnection(cx: Cx) -> &'static str {
    cx.close_stream(Duration::from_millis(200));
    tokio::time::sleep(2 * PAUSE).await;
    "Reconnection test completed successfully."
}

async fn missing_capability(cx: Cx) -> Result<&'static str> {
    cx.require_capabilities(&json!({"sampling": {}}))?;
    Ok("the client can sample")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CustomHeader {
    /// The value that the header mirrors.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

async fn custom_header(Args(args): Args<CustomHeader>) -> String {
    args.value
}

/// Adds a tool, or removes it. A gateway ignores a list that is the same as before.
async fn change_tools(server: Server) -> Result<&'static str> {
    if !server.remove_tool("test_added_tool") {
        server
            .add_tool(Tool::new("test_added_tool", simple_text).description("Was added later"))?;
    }
    Ok("the list of tools has changed")
}

async fn change_prompts(server: Server) -> Result<&'static str> {
    if !server.remove_prompt("test_added_prompt") {
        server.add_prompt(
            Prompt::new("test_added_prompt", || async { "added" }).description("Was added later"),
        )?;
    }
    Ok("the list of prompts has changed")
}

pub(crate) fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::Resource(ResourceContents::text(uri, text).with_mime_type(mime_type).into())
}

fn schema_2020_12() -> serde_json::Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    })
}
