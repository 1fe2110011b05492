//! `outlive doctor`: checks what the program needs.

use std::process::ExitCode;

use crate::trouble::Result;

/// Checks what this program needs, and says what to do.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
