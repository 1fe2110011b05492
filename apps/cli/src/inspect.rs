//! `outlive inspect`: what a server has.

use std::process::ExitCode;

use crate::trouble::Result;

/// Shows what an MCP server has.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
