//! What is handled by hand still speaks the protocol.

use anyhow::Result;
use serde_json::json;

use crate::client::{Client, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let turned =
        client.call("tools/call", json!({"name": "reverse", "arguments": {"text": "spine"}}))?;
    expect(&turned["content"][0]["text"], &json!("enips"))?;

    let unknown = client.refused("tools/call", json!({"name": "revers", "arguments": {}}))?;
    expect(&unknown["code"], &json!(-32602))?;

    let own = client.call("com.example/uptime", json!({}))?;
    expect(&own["answeredBy"], &json!("low-level"))
}
