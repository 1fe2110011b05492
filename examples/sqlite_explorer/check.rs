//! Checks that the database can be read but not changed.

use anyhow::{Result, ensure};
use outlive::client::Client;
use serde_json::{Value, json};

use crate::stage::{Stage, expect, shown};

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (client, _server) = stage.connect().await?;
    let schema = shown(&client.read_resource("schema://main").await?)?;
    let text = schema["contents"][0]["text"].as_str().unwrap_or_default();
    ensure!(text.contains("CREATE TABLE planet"), "{schema}");

    let moons = "SELECT name, moons FROM planet WHERE moons > 0 ORDER BY moons";
    let rows = json!({"columns": ["name", "moons"], "rows": [["Earth", 1], ["Mars", 2]], "truncated": false});
    expect(query(&client, moons).await?, rows)?;

    for sql in ["DELETE FROM planet", "SELEKT 1"] {
        let failed = client.call_tool("query", json!({"sql": sql})).await?;
        expect(failed.is_error, true)?;
    }
    let count = query(&client, "SELECT count(*) FROM planet").await?;
    expect(count["rows"].clone(), json!([[3]]))
}

async fn query(client: &Client, sql: &str) -> Result<Value> {
    Ok(client.call_tool("query", json!({"sql": sql})).structured().await?)
}
