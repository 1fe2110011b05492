//! `outlive call`: call a tool of any MCP server.

use std::process::ExitCode;

use crate::trouble::Result;

/// Calls a tool of any MCP server.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
