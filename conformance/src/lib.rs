//! The server that the official MCP conformance suite is run against: one of everything.
//!
//! What each tool, resource and prompt must do is said by the suite; names and texts are its own.

mod interop;
mod prompts;
mod questions;
mod resources;
mod skills;
mod tasks;
mod tools;

use outlive::server::{BuildError, Server, TaskConfig};

/// Puts the server together, with tasks as `config` says.
///
/// # Errors
///
/// When something in here contradicts itself, which the first run would show.
pub fn everything(config: TaskConfig) -> Result<Server, BuildError> {
    let builder = Server::builder("outlive-everything", env!("CARGO_PKG_VERSION"))
        .title("Outlive everything server")
        .instructions("One of everything, for the conformance suite.")
        .logging(true);
    let builder = interop::add(tasks::add(builder.tasks(config)));
    let builder = questions::add(prompts::add(resources::add(tools::add(skills::add(builder)))));
    let server = builder.build()?;
    tools::own(&server)?;
    Ok(server)
}
