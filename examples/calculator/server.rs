//! A calculator with a greeting: two tools and a resource template.
//!
//! Run with `cargo run -p outlive-examples`, or `--bin calculator -- --stdio`.

use outlive::server::{Args, Error, Json, ResourceTemplate, Result, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Operands {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Value {
    value: f64,
}

async fn add(Args(Operands { a, b }): Args<Operands>) -> Json<Value> {
    Json(Value { value: a + b })
}

async fn divide(Args(Operands { a, b }): Args<Operands>) -> Result<Json<Value>> {
    if b == 0.0 {
        return Err(Error::new("b is 0; choose another divisor"));
    }
    Ok(Json(Value { value: a / b }))
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    name: String,
}

async fn greeting(Args(Greeting { name }): Args<Greeting>) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder("calculator", "1.0.0")
        .instructions("Use the tools for arithmetic; do not calculate yourself.")
        .tool(Tool::new("add", add).description("Adds two numbers").read_only())
        .tool(Tool::new("divide", divide).description("Divides a by b").read_only())
        .resource_template(
            ResourceTemplate::new("greeting://{name}", "greeting", greeting)
                .description("A greeting for a person")
                .mime_type("text/plain"),
        )
        .build()?;
    outlive_examples::serve(server).await
}
