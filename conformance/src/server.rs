//! The server for the suite.

use super::{interop, prompts, questions, resources, skills, tasks, tools};
use outlive::server::{BuildError, Server, tasks::TaskConfig};

/// Builds the server with this task configuration.
///
/// # Errors
///
/// Fails only if the fixed configuration is invalid.
pub fn everything(config: TaskConfig) -> Result<Server, BuildError> {
    let builder = Server::builder("outlive-everything", env!("CARGO_PKG_VERSION"))
        .title("Outlive everything server")
        .instructions("Every feature, for the conformance suite.")
        .logging(true);
    let builder = interop::add(tasks::add(builder.tasks(config)));
    let builder = questions::add(prompts::add(resources::add(tools::add(skills::add(builder)))));
    let server = builder.build()?;
    tools::own(&server)?;
    interop::own(&server)?;
    Ok(server)
}
