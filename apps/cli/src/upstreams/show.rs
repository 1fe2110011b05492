//! The status of the upstreams of a running server, as a table or as JSON.

use std::{path::PathBuf, process::ExitCode};

use outlive_gateway::status::{GatewayStatus, UpstreamStatus};

use super::place::{DataFolder, running};
use crate::{
    error::{CliError, Kind, Result},
    print::{self, tell},
    store::{plain, rough, shortened, stamp, table, wall_clock},
};

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Show {
    /// File of the server [default: ./outlive.toml]
    file: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
    /// Prints the status as JSON
    #[arg(long)]
    json: bool,
}

const HEAD: [&str; 8] =
    ["UPSTREAM", "STATE", "SINCE", "VERSION", "TOOLS", "PROCESSES", "CALLS", "FAILED"];

pub(super) fn run(args: &Show) -> Result<ExitCode> {
    let status = running(&args.data, args.file.as_deref())?.status;
    let failed = |error: std::io::Error| CliError::new(Kind::Failed, error);
    if args.json {
        let text = serde_json::to_string(&status).unwrap_or_default();
        print::data(&text).map_err(failed)?;
    } else {
        print::page(&page(&status, wall_clock())).map_err(failed)?;
        status.upstreams.iter().for_each(explain);
    }
    let works = status.upstreams.iter().all(|upstream| upstream.state.is_usable());
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn page(status: &GatewayStatus, now: u64) -> String {
    let row = |upstream: &UpstreamStatus| {
        let versions = match upstream.protocol_versions.as_slice() {
            [] => "-".to_owned(),
            versions => versions.join(", "),
        };
        let calls = match upstream.calls_in_flight {
            0 => upstream.calls.to_string(),
            running => format!("{} ({running} running)", upstream.calls),
        };
        [
            plain(&upstream.name),
            upstream.state.to_string(),
            rough(now.saturating_sub(upstream.since)),
            shortened(&plain(&versions), 30),
            upstream.tools.to_string(),
            upstream.processes.to_string(),
            calls,
            upstream.failed_calls.to_string(),
        ]
    };
    let rows: Vec<[String; 8]> = status.upstreams.iter().map(row).collect();
    table(HEAD, &rows).trim_end().to_owned()
}

/// Says on standard error why an upstream has its state, and what helps.
fn explain(upstream: &UpstreamStatus) {
    let name = plain(&upstream.name);
    if let Some(reason) = &upstream.reason {
        tell!("{name}: {}", plain(reason));
    }
    if let Some(at) = upstream.next_attempt.filter(|_| !upstream.state.is_usable()) {
        tell!("  next attempt: {}", stamp(at));
    }
    if let Some(remedy) = &upstream.remedy {
        let remedy = plain(remedy);
        tell!("  {}", if remedy.starts_with("run: ") { remedy } else { format!("try: {remedy}") });
    }
    if let (true, Some(error)) = (upstream.state.is_usable(), &upstream.last_error) {
        tell!("{name}: last failure: {}", plain(error));
    }
    if !upstream.changed_tools.is_empty() {
        tell!("{name}: definitions changed: {}", plain(&upstream.changed_tools.join(", ")));
        if upstream.remedy.is_none() {
            tell!("  try: outlive upstreams accept {name}");
        }
    }
    for warning in &upstream.warnings {
        tell!("{name}: warning: {}", plain(warning));
    }
}
