//! `outlive upstreams log`: the last lines that an upstream wrote to standard error.

use std::{path::PathBuf, process::ExitCode};

use serde_json::json;

use super::place::{DataFolder, running};
use crate::{
    error::{CliError, Kind, Result},
    print::{self, tell},
    store::plain,
};

/// Prints the last lines that an upstream wrote to standard error.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive upstreams log files")]
pub(super) struct Args {
    /// Upstream
    name: String,
    /// File of the server [default: ./outlive.toml]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
    /// Prints the lines as a JSON array
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let running = running(&args.data, args.file.as_deref())?;
    let upstream = running.find(&args.name)?;
    let lines = &upstream.last_lines;
    let text = match args.json {
        true => json!(lines).to_string(),
        // On a terminal, no line of an upstream may imitate the program.
        false if print::is_shown() => print::quoted(&lines.join("\n")),
        false => lines.join("\n"),
    };
    if lines.is_empty() && !args.json {
        tell!("{} wrote nothing to standard error", plain(&args.name));
        return Ok(ExitCode::SUCCESS);
    }
    print::data(&text).map_err(|error| CliError::new(Kind::Failed, error))?;
    Ok(ExitCode::SUCCESS)
}
