//! Checks that an added tool can be called and that subscribers are notified.

use anyhow::{Result, ensure};
use outlive::client::{
    notifications::{ListenFilter, ServerNotification},
    request::result_text,
};
use serde_json::json;

use crate::stage::{Stage, expect};

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (client, _server) = stage.connect().await?;
    let mut changes = client.listen(ListenFilter::new().tools()).await?;
    let lesson = json!({"name": "motto", "answer": "work outlives the request"});
    client.call_tool("learn", lesson).await?;
    let change = changes.next().await;
    ensure!(matches!(change, Some(ServerNotification::ToolsChanged)), "{change:?}");

    let motto = client.call_tool("motto", json!({})).await?;
    expect(result_text(&motto), "work outlives the request")?;

    client.call_tool("forget", json!({"name": "motto"})).await?;
    // The notification invalidates the cached list.
    changes.next().await;
    let tools = client.list_tools().collect().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    expect(json!(names), json!(["learn", "forget"]))
}
