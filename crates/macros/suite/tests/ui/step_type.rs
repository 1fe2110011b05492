//! The type of a step determines how its journal entry is deserialized, so it must be known.

use outlive::server::{Durable, Result};

async fn settings(cx: Durable, text: &str) -> Result<()> {
    let value = cx.step("parse", async || Ok(serde_json::from_str(text)?)).await?;
    Ok(())
}

async fn started(cx: Durable) -> Result<()> {
    let now = cx.step("now", async || Ok(std::time::Instant::now())).await?;
    Ok(())
}

fn main() {}
