//! A server that learns: one tool teaches it new ones, and clients are told.
//!
//! Run with `cargo run -p outlive-examples --bin dynamic`.

use outlive::server::{Args, Result, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Lesson {
    /// The name of the new tool.
    name: String,
    /// What it will say.
    answer: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// The tool to forget.
    name: String,
}

async fn learn(server: Server, lesson: Lesson) -> Result<String> {
    let Lesson { name, answer } = lesson;
    let tool = Tool::new(name.as_str(), move || {
        let answer = answer.clone();
        async move { answer }
    });
    server.add_tool(tool.description("Was taught"))?;
    Ok(format!("learned {name}"))
}

async fn forget(server: Server, name: String) -> &'static str {
    match server.remove_tool(&name) {
        true => "forgotten",
        false => "never knew it",
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
