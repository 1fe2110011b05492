//! A server on stdio with a tool that needs an input response.

use anyhow::Result;
use outlive::{
    server::{Args, Durable, Server, Tool},
    wire::RequestedSchema,
};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct AskArgs {
    message: String,
}

async fn ask(cx: Durable, Args(args): Args<AskArgs>) -> outlive::server::Result<String> {
    let schema: RequestedSchema = serde_json::from_value(serde_json::json!({
        "type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]
    }))?;
    let chosen: serde_json::Value = cx.elicit_with("color", "Which color?", schema).await?;
    Ok(format!("{} is {}", args.message, chosen["color"]))
}

/// Serves until standard input ends.
pub(super) fn run() -> Result<()> {
    let server = Server::builder("bench", "1.0.0").tool(Tool::new("ask", ask)).build()?;
    Ok(super::runtime()?.block_on(server.serve_stdio())?)
}
