//! `outlive upstreams restart` and `accept`: requests to the running server.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use outlive_gateway::status::UpstreamStatus;
use serde_json::json;

use super::place::{DataFolder, Running, is_running, running};
use crate::{
    error::{CliError, Kind, Result},
    print::{self, tell},
    serve::{UpstreamReply, UpstreamRequest, send},
    store::plain,
};

/// Time for the server to reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// Restarts an upstream: its process ends after its calls, and the next call starts another one.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive upstreams restart files")]
pub(super) struct Restart {
    /// Upstream
    name: String,
    #[command(flatten)]
    server: Server,
}

/// Accepts the changed definitions of an upstream's tools.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive upstreams accept files            all changed tools
  outlive upstreams accept files read_file")]
pub(super) struct Accept {
    /// Upstream
    name: String,
    /// Tool, by the upstream's own name [default: all changed tools]
    tool: Option<String>,
    #[command(flatten)]
    server: Server,
}

/// Selection of a server.
#[derive(clap::Args)]
struct Server {
    /// File of the server [default: ./outlive.toml]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn restart(args: &Restart) -> Result<ExitCode> {
    let running = running(&args.server.data, args.server.file.as_deref())?;
    let upstream = running.find(&args.name)?.name.clone();
    let name = plain(&upstream);
    ask(&running, &UpstreamRequest::Restart { upstream }).await?;
    if args.server.json {
        let _ = print::data(&json!({"upstream": name}).to_string());
    }
    tell!("{name}: the process ends after its calls; the next call starts another one");
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn accept(args: &Accept) -> Result<ExitCode> {
    let running = running(&args.server.data, args.server.file.as_deref())?;
    let UpstreamStatus { name, changed_tools, .. } = running.find(&args.name)?;
    if let Some(tool) = args.tool.as_ref().filter(|tool| !changed_tools.contains(tool)) {
        let what = format!("the definition of `{}` did not change", plain(tool));
        let changed = plain(&changed_tools.join(", "));
        return Err(CliError::usage(what).remedy(match changed.is_empty() {
            true => format!("no tool of `{}` has a changed definition", plain(name)),
            false => format!("use one of: {changed}"),
        }));
    }
    let (upstream, tool) = (name.clone(), args.tool.clone());
    let reply = ask(&running, &UpstreamRequest::Accept { upstream, tool }).await?;
    if args.server.json {
        let _ = print::data(&json!({"upstream": name, "accepted": reply.tools}).to_string());
    }
    match reply.tools.is_empty() {
        true => tell!("{}: no tool has a changed definition", plain(name)),
        false => tell!("{}: accepted {}", plain(name), plain(&reply.tools.join(", "))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the running server on a data folder open new connections to an upstream, because its login
/// has changed. Without a reply, the server uses the changed login when its token expires.
pub(crate) async fn forget_connections(data: &Path, upstream: &str) {
    if is_running(data) {
        let restart = UpstreamRequest::Restart { upstream: upstream.to_owned() };
        let _ = send(data, &restart, PATIENCE).await;
    }
}

async fn ask(running: &Running, request: &UpstreamRequest) -> Result<UpstreamReply> {
    let reply = send(&running.data, request, PATIENCE).await;
    let reply = reply.map_err(|error| {
        let data = running.data.display();
        CliError::new(Kind::Failed, format_args!("cannot write to {data}: {error}"))
            .remedy("run this command as the user of the server")
    })?;
    reply.ok_or_else(|| {
        CliError::unreachable("the server did not reply").remedy("restart `outlive serve`")
    })
}
