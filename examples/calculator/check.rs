//! Checks the results, the tool errors and the greeting of the calculator.

use anyhow::{Result, ensure};
use outlive::client::request::result_text;
use serde_json::{Value, json};

use crate::stage::{Stage, expect, shown};

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (client, _server) = stage.connect().await?;
    let sum = client.call_tool("add", json!({"a": 2, "b": 40.5})).await?;
    expect(result_text(&sum), r#"{"value":42.5}"#)?;
    // `structured` validates the content against the output schema.
    let sum: Value = client.call_tool("add", json!({"a": 2, "b": 40.5})).structured().await?;
    expect(sum, json!({"value": 42.5}))?;

    let failed = client.call_tool("divide", json!({"a": 1, "b": 0})).await?;
    expect(failed.is_error, true)?;
    expect(result_text(&failed), "b is 0; choose another divisor")?;

    let wrong = client.call_tool("add", json!({"a": 1, "b": "two"})).await?;
    expect(wrong.is_error, true)?;
    ensure!(result_text(&wrong).contains("/b"), "{wrong:?}");

    let greeting = client.read_resource("greeting://Ada%20L.").await?;
    expect(shown(&greeting)?["contents"][0]["text"].clone(), "Hello, Ada L.!")
}
