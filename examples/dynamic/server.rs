//! A server whose tools add and remove other tools. Clients are notified of the changes.
//!
//! Run with `cargo run -p outlive-examples --bin dynamic`.

use outlive::server::{Args, Result, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Lesson {
    /// Name of the new tool.
    name: String,
    /// Text that the new tool returns.
    answer: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Name of the tool to remove.
    name: String,
}

async fn learn(server: Server, lesson: Lesson) -> Result<String> {
    let Lesson { name, answer } = lesson;
    let tool = Tool::new(name.as_str(), move || {
        let answer = answer.clone();
        async move { answer }
    });
    server.add_tool(tool.description("Added at run time"))?;
    Ok(format!("learned {name}"))
}

async fn forget(server: Server, name: String) -> &'static str {
    match server.remove_tool(&name) {
        true => "forgotten",
        false => "unknown tool",
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder("dynamic", "1.0.0").advertise_tools().build()?;
    let own = server.clone();
    server.add_tool(
        Tool::new("learn", move |Args(lesson): Args<Lesson>| learn(own.clone(), lesson))
            .description("Adds a tool"),
    )?;
    let own = server.clone();
    server.add_tool(
        Tool::new("forget", move |Args(Name { name }): Args<Name>| forget(own.clone(), name))
            .description("Removes a tool"),
    )?;
    outlive_examples::serve(server).await
}
