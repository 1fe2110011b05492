//! A tool that was taught can be called, and whoever listens hears of it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::{Client, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    client.listen(&json!({"toolsListChanged": true}))?;
    let lesson = json!({"name": "learn", "arguments": {"name": "motto", "answer": "work outlives the request"}});
    client.call("tools/call", lesson)?;
    client.wait_for("notifications/tools/list_changed")?;

    let motto = client.call("tools/call", json!({"name": "motto"}))?;
    expect(&motto["content"][0]["text"], &json!("work outlives the request"))?;

    client.call("tools/call", json!({"name": "forget", "arguments": {"name": "motto"}}))?;
    let tools = client.call("tools/list", json!({}))?;
    let names: Vec<&Value> =
        tools["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    expect(&json!(names), &json!(["learn", "forget"]))
}
