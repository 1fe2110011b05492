//! `outlive store`: what operators do with a store.

use std::process::ExitCode;

use crate::trouble::Result;

/// Looks after a store of tasks.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
