//! Hello world over HTTP, as a minimal server. `cargo xtask build-time` compares it with rmcp's.
//!
//! Run with `cargo run -p outlive --example hello`.

use outlive::{
    server::{Server, http::HttpConfig},
    tool,
};

/// Greets a person.
#[tool(read_only)]
async fn greet(
    /// Name of the person to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("hello", "1.0.0").tool(greet::tool()).build()?;
    let serving = server.serve_http("127.0.0.1:8000", HttpConfig::new()).await?;
    eprintln!("listening on {}", serving.url());
    Ok(serving.wait().await?)
}
