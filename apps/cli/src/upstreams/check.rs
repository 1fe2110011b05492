//! `outlive upstreams check`: connects to each upstream, and lists it. Needs no running server.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use outlive::server::Server;
use outlive_gateway::{
    Gateway,
    status::{State, UpstreamReport},
};
use serde_json::json;

use super::place::file_or_here;
use crate::{
    checks,
    error::{CliError, Kind, Result},
    print::{self, Paint, paint},
    serve::{
        ServerPlace, Sources,
        config::{self, Config, UpstreamConfig},
    },
    store::plain,
};

/// Connects to the upstreams, lists their tools, and reports problems.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive upstreams check
  outlive upstreams check files --json")]
pub(super) struct Args {
    /// Upstream [default: all]
    name: Option<String>,
    /// File of the server [default: ./outlive.toml]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: ServerPlace,
    /// Prints one JSON object per upstream
    #[arg(long)]
    json: bool,
}

/// Result of a check.
pub(crate) struct Checked {
    pub(crate) report: UpstreamReport,
}

impl Checked {
    /// Returns the problem and its remedy, if the upstream cannot be used.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let problem = self.report.problem.as_deref()?;
        let reason = self.report.status.reason.as_deref().unwrap_or(problem);
        let remedy = self.report.status.remedy.as_deref().unwrap_or("correct the file");
        // The reason of a misconfigured upstream has its own remedy.
        let parts = match self.report.status.state {
            State::Misconfigured => reason.split_once("; "),
            _ => None,
        };
        let (what, remedy) = parts.unwrap_or((reason, remedy));
        Some((what.to_owned(), remedy.to_owned()))
    }
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let file = file_or_here(args.file.as_deref()).ok_or_else(|| {
        CliError::usage("this folder has no outlive.toml").remedy("name the file with --file FILE")
    })?;
    let config = config::load(&file)?;
    config.warnings.iter().for_each(checks::warn);
    if config.upstreams.is_empty() {
        let what = format!("{} has no upstreams", file.display());
        return Err(CliError::usage(what).remedy(
            "add [upstreams.NAME]; `outlive upstreams import HOST_FILE` prints those of a host",
        ));
    }
    let checked = connect(&config, &file, args.name.as_deref(), &args.place).await?;
    for checked in &checked {
        say(checked, args.json)?;
    }
    let works = checked.iter().all(|checked| checked.report.problem.is_none());
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Connects to the upstreams of a configuration, or to the named one, and lists them.
///
/// # Errors
///
/// Returns an error if the file lacks an upstream of this name, or if the settings are invalid.
pub(crate) async fn connect(
    config: &Config,
    file: &Path,
    name: Option<&str>,
    place: &ServerPlace,
) -> Result<Vec<Checked>> {
    if let Some(name) =
        name.filter(|name| config.upstreams.iter().all(|known| known.name != **name))
    {
        let known: Vec<&str> = config.upstreams.iter().map(|known| known.name.as_str()).collect();
        let what = format!("the file has no upstream `{}`", plain(name));
        return Err(CliError::usage(what).remedy(format_args!("use one of: {}", known.join(", "))));
    }
    let mut builder = Gateway::builder().settings(config.gateway.clone());
    for upstream in Sources::new(Some(file)).upstreams(config) {
        builder = builder.upstream(upstream);
    }
    if config.upstreams.iter().any(UpstreamConfig::has_auth) {
        builder = builder.vault(place.logins(config, file).await?);
    }
    let gateway = builder.build().map_err(CliError::usage)?;
    // With a server, the report has the names that clients see.
    let server = gateway.attach(Server::builder("outlive", "1")).build();
    let server = server.map_err(CliError::usage)?;
    let reports = gateway.check(name).await;
    drop(server);
    gateway.shutdown().await;
    Ok(reports.into_iter().map(|report| Checked { report }).collect())
}

fn say(checked: &Checked, json: bool) -> Result<()> {
    let report = &checked.report;
    let text = match (json, checked.problem()) {
        (true, _) => json!(report).to_string(),
        (false, None) => {
            let tools = print::count(report.tools.len(), "tool");
            let versions = report.status.protocol_versions.join(", ");
            let names = plain(&report.tools.join(", "));
            let head = format!("{}  {}", paint(Paint::Green, "ok     "), plain(&report.name));
            let warnings = report.status.warnings.iter();
            let warnings =
                warnings.map(|warning| format!("\n         warning: {}", plain(warning)));
            format!("{head}  {tools} ({})\n         {names}", plain(&versions))
                + &warnings.collect::<String>()
        }
        (false, Some((what, remedy))) => {
            let head = format!("{}  {}", paint(Paint::Red, "FAILURE"), plain(&report.name));
            format!("{head}  {}\n         try: {}", plain(&what), plain(&remedy))
        }
    };
    let printed = if json { print::data(&text) } else { print::page(&text) };
    printed.map_err(|error| CliError::new(Kind::Failed, error))
}
