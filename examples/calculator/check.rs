//! The calculator calculates, explains its errors, and greets.

use anyhow::Result;
use serde_json::json;

use crate::client::{Client, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let sum =
        client.call("tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 40.5}}))?;
    expect(&sum["structuredContent"], &json!({"value": 42.5}))?;
    expect(&sum["content"][0]["text"], &json!(r#"{"value":42.5}"#))?;

    let failed =
        client.call("tools/call", json!({"name": "divide", "arguments": {"a": 1, "b": 0}}))?;
    expect(&failed["isError"], &json!(true))?;
    expect(&failed["content"][0]["text"], &json!("b is 0; choose another divisor"))?;

    let wrong =
        client.call("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": "two"}}))?;
    expect(&wrong["isError"], &json!(true))?;
    assert!(
        wrong["content"][0]["text"].as_str().is_some_and(|text| text.contains("/b")),
        "{wrong}"
    );

    let greeting = client.call("resources/read", json!({"uri": "greeting://Ada%20L."}))?;
    expect(&greeting["contents"][0]["text"], &json!("Hello, Ada L.!"))
}
