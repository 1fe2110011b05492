//! Echo as a tool, as a resource and as a prompt, written with attributes.
//!
//! Run with `cargo run -p outlive-examples --bin echo`.

use outlive::{prompt, resource, server::Server, tool};

/// Returns a message.
#[tool(read_only)]
async fn echo(
    /// Message to return.
    message: String,
) -> String {
    format!("Tool echo: {message}")
}

/// A message as a resource.
#[resource("echo://{message}", mime_type = "text/plain")]
async fn echo_resource(message: String) -> String {
    format!("Resource echo: {message}")
}

/// Asks the model to process a message.
#[prompt]
async fn echo_prompt(
    /// The message to process.
    message: String,
) -> String {
    format!("Please process this message: {message}")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder("echo", "1.0.0")
        .tool(echo::tool())
        .resource_template(echo_resource::resource_template())
        .prompt(echo_prompt::prompt())
        .build()?;
    outlive_examples::serve(server).await
}
