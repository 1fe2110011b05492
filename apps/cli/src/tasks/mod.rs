//! `outlive tasks`: goes on with calls that are saved, and with tasks of servers.
//!
//! - `list`: what is saved, or what a server lists. `look`: asks servers how far saved calls are.
//! - `resume`: takes a call up again, to see it, answer it, or wait for its result. `cancel`: stops some.
//! - `operate`: the same for the tasks of all callers, over the store of a server.
//! - `taken`: which call that is, and how to get at it. `page`, `table`: calls for people.
//! - `watch`: a live table.

mod cancel;
mod list;
mod look;
mod operate;
mod page;
mod resume;
mod table;
mod target;
mod watch;

use std::process::ExitCode;

use crate::{
    call::{
        block_on,
        input::Prepared,
        saved_calls::{Handles, short},
        screen::Screen,
        server::Connection,
    },
    error::{CliError, Result},
};

/// Lists, watches, answers and cancels calls that go on.
#[derive(clap::Args)]
#[command(
    after_help = "A HANDLE is what `outlive call --detach` printed, or the beginning of it. \
With one call saved it can be left out.

Examples:
  outlive tasks list
  outlive tasks watch
  outlive tasks answer 3f2a91c0 --answer yes=true
  outlive tasks result 3f2a91c0 > report.txt
  outlive tasks list --server http://127.0.0.1:8000/mcp --token-env TOKEN
  outlive tasks list --all-callers                   as the operator of the server of this folder"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Args),
    Get(Get),
    Watch(watch::Args),
    Answer(Answer),
    Cancel(cancel::Args),
    Result(WithResult),
    Remove(Remove),
}

/// Which call is meant, and how to get to its server.
#[derive(clap::Args)]
struct Which {
    /// Which call: its handle, or the beginning of it
    handle: Option<String>,
    /// Means the task of this id at a server, in place of a saved call
    #[arg(long, value_name = "SERVER", requires = "handle")]
    server: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Shows how far a task is
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive tasks get 3f2a91c0 --json")]
struct Get {
    #[command(flatten)]
    which: Which,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Answers what a task asks: in a form, or with --answer
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  outlive tasks answer 3f2a91c0\n  \
                  outlive tasks answer 3f2a91c0 --answer yes=true\n  outlive tasks answer 3f2a91c0 --decline\n  \
                  outlive tasks answer 3f2a91c0 --all-callers --answer yes=true")]
struct Answer {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    prepared: Prepared,
    #[command(flatten)]
    stores: operate::Stores,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Waits for a task and prints its result, as `outlive call` would have
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks result 3f2a91c0\n  outlive tasks result 3f2a91c0 --json --keep-handle"
)]
struct WithResult {
    #[command(flatten)]
    which: Which,
    /// Prints the whole result as JSON
    #[arg(long)]
    json: bool,
    /// Keeps the handle, so that the result can be printed again
    #[arg(long)]
    keep_handle: bool,
    /// Leaves after this time: 30, 30s, 5m, 2h. The task goes on
    #[arg(long, value_name = "TIME", value_parser = crate::call::span)]
    timeout: Option<std::time::Duration>,
    #[command(flatten)]
    prepared: Prepared,
}

/// Deletes handles, and leaves their tasks alone
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks remove 3f2a91c0\n  outlive tasks remove 3f2a91c0 77ab01de\n  outlive tasks remove --all"
)]
struct Remove {
    /// Which calls
    handles: Vec<String>,
    /// All that are saved
    #[arg(long, conflicts_with = "handles")]
    all: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List(args) => block_on(Box::pin(list::run(args))),
        Command::Watch(args) => block_on(Box::pin(watch::run(args))),
        Command::Get(Get { which, json }) => block_on(Box::pin(resume::get(&which, json))),
        Command::Answer(Answer { which, prepared, stores, json }) => match stores.url()? {
            Some(url) => {
                let task = which.handle.ok_or_else(no_task_named)?;
                block_on(Box::pin(operate::answer(&url, &task, &prepared, json)))
            }
            None => block_on(Box::pin(resume::answer(&which, prepared, json))),
        },
        Command::Cancel(args) => block_on(Box::pin(cancel::run(args))),
        Command::Result(args) => block_on(Box::pin(resume::result(args))),
        Command::Remove(args) => remove(&args),
    }
}

/// Among the tasks of all callers one has to be named.
fn no_task_named() -> CliError {
    CliError::usage("no task is named").remedy("`outlive tasks list --all-callers` shows their ids")
}

fn remove(args: &Remove) -> Result<ExitCode> {
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    // All are found before one is deleted.
    let found = match (args.all, &args.handles[..]) {
        (true, _) => handles.all()?,
        (false, []) => vec![handles.find(None)?],
        (false, named) => {
            named.iter().map(|handle| handles.find(Some(handle))).collect::<Result<_>>()?
        }
    };
    for saved in &found {
        handles.forget(&saved.call.id);
        match args.json {
            true => {
                let forgotten = serde_json::json!({"handle": saved.call.id, "forgotten": true});
                screen.data(&forgotten.to_string());
            }
            false => screen.talk(&format!("forgotten: {}", short(&saved.call.id))),
        }
    }
    Ok(ExitCode::SUCCESS)
}
