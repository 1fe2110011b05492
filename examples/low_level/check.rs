//! Checks that methods with raw parameters and results conform to the protocol.

use anyhow::Result;
use outlive::client::request::result_text;
use serde_json::{Value, json};

use crate::stage::{Stage, expect, refusal};

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (client, _server) = stage.connect().await?;
    let turned = client.call_tool("reverse", json!({"text": "spine"})).await?;
    expect(result_text(&turned), "enips")?;

    let (code, _) = refusal(client.call_tool("revers", json!({})).await)?;
    expect(code, -32602)?;

    let own = client.request("com.example/uptime", json!({})).await?;
    let own: Value = serde_json::from_str(own.get())?;
    expect(own["answeredBy"].clone(), "low-level")
}
