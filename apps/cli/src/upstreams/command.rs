//! The command `outlive upstreams`.

use std::process::ExitCode;

use super::{check, import, log, request, show};
use crate::{error::Result, runtime::block_on};

/// Shows the MCP servers behind `outlive serve`, and checks them.
///
/// Without a subcommand, it shows the upstreams of the running server: state, protocol version,
/// tools, processes, calls, and what helps.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  outlive upstreams                          state of each upstream of ./outlive.toml
  outlive upstreams --json | jq '.upstreams[] | select(.state != \"ready\")'
  outlive upstreams check                    connect to each of them, and list its tools
  outlive upstreams log files                last lines that an upstream wrote to standard error
  outlive upstreams accept files             accept changed definitions of tools
  outlive upstreams import ~/.claude.json >> outlive.toml

Exit codes: 0 success, 1 an upstream has a problem, 2 usage error, 3 no server runs.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    show: show::Show,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(check::Args),
    Log(log::Args),
    Restart(request::Restart),
    Accept(request::Accept),
    Import(import::Args),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        None => show::run(&args.show),
        Some(Command::Check(args)) => block_on(Box::pin(check::run(args))),
        Some(Command::Log(args)) => log::run(args),
        Some(Command::Restart(args)) => block_on(Box::pin(request::restart(args))),
        Some(Command::Accept(args)) => block_on(Box::pin(request::accept(args))),
        Some(Command::Import(args)) => import::run(args),
    }
}
