//! Small conveniences of the API.

use outlive::{
    client::{Client, Version},
    server::{CallToolResult, ContentBlock, Server, Tool, tasks::TaskConfig},
};
use serde_json::json;

async fn nothing() {}

#[tokio::test]
async fn builder_given_several_tools_registers_each() {
    let tools = ["one", "two"].map(|name| Tool::new(name, nothing));
    let server = Server::builder("small", "1").tools(tools).build().unwrap();
    let client = Client::builder("test", "1").connect(&server).await.unwrap();
    let listed = client.list_tools().collect().await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test]
async fn server_declares_idempotency_keys_only_if_enabled() {
    let builder = || Server::builder("small", "1").tool(Tool::new("tool", nothing));
    let stored = || builder().tasks(TaskConfig::in_memory());
    for (builder, says) in
        [(builder(), false), (stored(), false), (stored().idempotency_keys(true), true)]
    {
        let server = builder.build().unwrap();
        let client = Client::builder("test", "1").connect(&server).await.unwrap();
        let declared = client.server_info().await.unwrap().capabilities.experimental;
        let known = declared.is_some_and(|it| it.contains_key("dev.outlive/idempotency"));
        assert_eq!(known, says);
    }
    let error = builder().idempotency_keys(true).build().unwrap_err().to_string();
    assert!(error.contains("need a store; call `.tasks("), "{error}");
}

#[test]
fn version_from_date_string_parses() {
    let version: Version = "2025-06-18".parse().unwrap();
    assert_eq!(version, Version::V2025_06_18);
    let error = "2025-06-19".parse::<Version>().unwrap_err().to_string();
    assert!(error.contains("2025-06-19") && error.contains("2025-06-18"), "{error}");
}

#[test]
fn image_block_from_bytes_is_base64() {
    let png = [0x89, b'P', b'N', b'G'];
    let json = serde_json::to_value(ContentBlock::image(png, "image/png")).unwrap();
    assert_eq!(json, json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"}));
    let encoded = ContentBlock::image_base64("iVBORw==", "image/png");
    assert_eq!(serde_json::to_value(encoded).unwrap(), json);
}

#[test]
fn result_texts_skip_other_content() {
    let blocks =
        [ContentBlock::text("a"), ContentBlock::image([1], "image/png"), ContentBlock::text("b")];
    assert_eq!(CallToolResult::new(blocks).texts().collect::<Vec<_>>(), ["a", "b"]);
}
