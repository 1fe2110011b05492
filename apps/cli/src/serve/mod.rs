//! `outlive serve`: commands as MCP tools that survive.

mod config;

use std::process::ExitCode;

use crate::trouble::Result;

/// Serves commands as MCP tools that survive.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
