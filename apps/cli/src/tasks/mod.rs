//! `outlive tasks`: tasks that were begun.

use std::process::ExitCode;

use crate::trouble::Result;

/// Lists, watches, answers and cancels tasks.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
