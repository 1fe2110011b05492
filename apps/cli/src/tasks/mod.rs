//! `outlive tasks`: goes on with calls that were written down.
//!
//! - `list`: what is written down, or what a server lists.
//! - `resume`: takes a call up again: to see it, answer it, cancel it, or wait for its result.
//! - `taken`: which call that is, and how to get at it.
//! - `watch`: a live table.

mod list;
mod resume;
mod table;
mod taken;
mod watch;

use std::process::ExitCode;

use crate::{
    call::{block_on, desk::Prepared, handles::Handles, server::Connection},
    trouble::Result,
};

/// Lists, watches, answers and cancels calls that go on.
#[derive(clap::Args)]
#[command(
    after_help = "A HANDLE is what `outlive call --detach` printed, or the beginning of it. \
With one call written down it can be left out.

Examples:
  outlive tasks list
  outlive tasks watch
  outlive tasks answer 3f2a91c0 --answer yes=true
  outlive tasks result 3f2a91c0 > report.txt
  outlive tasks list --server http://127.0.0.1:8000/mcp --token-env TOKEN"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Args),
    Get(One),
    Watch(watch::Args),
    Answer(Answer),
    /// Asks a task to stop, and waits until it has
    Cancel(One),
    Result(WithResult),
    Forget(Forget),
}

/// Which call is meant, and how to get to its server.
#[derive(clap::Args)]
struct Which {
    /// Which call: its handle, or the beginning of it
    handle: Option<String>,
    /// Means the task of this name at a server, in place of what is written down here
    #[arg(long, value_name = "SERVER", requires = "handle")]
    server: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Shows how far a task is
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Example:\n  outlive tasks get 3f2a91c0 --json"
)]
struct One {
    #[command(flatten)]
    which: Which,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Answers what a task asks: in a form, or with --answer
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  outlive tasks answer 3f2a91c0\n  \
                  outlive tasks answer 3f2a91c0 --answer yes=true\n  outlive tasks answer 3f2a91c0 --decline"
)]
struct Answer {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    prepared: Prepared,
}

/// Waits for a task and prints its result, as `outlive call` would have
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  outlive tasks result 3f2a91c0\n  outlive tasks result 3f2a91c0 --json --keep"
)]
struct WithResult {
    #[command(flatten)]
    which: Which,
    /// Prints the whole result as JSON
    #[arg(long)]
    json: bool,
    /// Keeps the handle, so that the result can be printed again
    #[arg(long)]
    keep: bool,
    /// Leaves after this time: 30, 30s, 5m, 2h. The task goes on
    #[arg(long, value_name = "TIME", value_parser = crate::call::span)]
    timeout: Option<std::time::Duration>,
    #[command(flatten)]
    prepared: Prepared,
}

/// Strikes a handle, and leaves the task alone
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive tasks forget 3f2a91c0")]
struct Forget {
    /// Which call
    handle: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List(args) => block_on(Box::pin(list::run(args))),
        Command::Watch(args) => block_on(Box::pin(watch::run(args))),
        Command::Get(One { which, json }) => block_on(Box::pin(resume::get(&which, json))),
        Command::Answer(Answer { which, prepared }) => {
            block_on(Box::pin(resume::answer(&which, prepared)))
        }
        Command::Cancel(One { which, json }) => block_on(Box::pin(resume::cancel(&which, json))),
        Command::Result(args) => block_on(Box::pin(resume::result(args))),
        Command::Forget(Forget { handle }) => {
            let handles = Handles::open()?;
            handles.forget(&handles.find(handle.as_deref())?.id);
            Ok(ExitCode::SUCCESS)
        }
    }
}
