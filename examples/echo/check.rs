//! Checks the echo as a tool, as a resource and as a prompt.

use anyhow::Result;
use outlive::client::request::result_text;
use serde_json::json;

use crate::stage::{Stage, expect, shown};

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (client, _server) = stage.connect().await?;
    let tools = shown(&client.list_tools().collect().await?)?;
    expect(tools[0]["description"].clone(), "Returns a message.")?;
    let message = &tools[0]["inputSchema"]["properties"]["message"];
    expect(message["description"].clone(), "Message to return.")?;

    let tool = client.call_tool("echo", json!({"message": "hi"})).await?;
    expect(result_text(&tool), "Tool echo: hi")?;

    let resource = client.read_resource("echo://hi").await?;
    expect(shown(&resource)?["contents"][0]["text"].clone(), "Resource echo: hi")?;

    let prompt = client.get_prompt("echo_prompt").arg("message", "hi").await?;
    let said = &shown(&prompt)?["messages"][0]["content"]["text"];
    expect(said.clone(), "Please process this message: hi")
}
