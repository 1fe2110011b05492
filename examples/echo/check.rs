//! What goes in comes out, three ways.

use anyhow::Result;
use serde_json::json;

use crate::client::{Client, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let tools = client.call("tools/list", json!({}))?;
    expect(&tools["tools"][0]["description"], &json!("Says it again."))?;
    expect(
        &tools["tools"][0]["inputSchema"]["properties"]["message"]["description"],
        &json!("What to say."),
    )?;

    let tool =
        client.call("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}))?;
    expect(&tool["content"][0]["text"], &json!("Tool echo: hi"))?;

    let resource = client.call("resources/read", json!({"uri": "echo://hi"}))?;
    expect(&resource["contents"][0]["text"], &json!("Resource echo: hi"))?;

    let prompt = client
        .call("prompts/get", json!({"name": "echo_prompt", "arguments": {"message": "hi"}}))?;
    expect(&prompt["messages"][0]["content"]["text"], &json!("Please process this message: hi"))
}
