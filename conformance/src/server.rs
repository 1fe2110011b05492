//! The server that the suite is run against.

use super::{interop, prompts, questions, resources, skills, tasks, tools};
use outlive::server::{BuildError, Server, tasks::TaskConfig};

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
