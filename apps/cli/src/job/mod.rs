//! Commands that outlive the server: each runs under a supervisor of its own.

use std::{path::PathBuf, process::ExitCode};

use crate::trouble::Result;

/// The name of the hidden command that supervises.
pub(crate) const SUPERVISE: &str = "__supervise";

/// Which command to watch over.
#[derive(clap::Args)]
pub(crate) struct SuperviseArgs {
    /// The folder of the job.
    job: PathBuf,
}

pub(crate) fn supervise(SuperviseArgs { job: _ }: SuperviseArgs) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
