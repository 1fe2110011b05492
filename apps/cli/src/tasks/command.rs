//! The command `outlive tasks`.

use super::remove::{Remove, remove};
use super::which::{Answer, Get, WithResult, no_task_named};
use super::{cancel, list, operate, resume, watch};
use crate::{error::Result, runtime::block_on};
use std::process::ExitCode;

/// Lists, watches, answers and cancels calls and tasks.
#[derive(clap::Args)]
#[command(
    after_help = "A HANDLE is the ID that `outlive call --detach` prints, or a unique prefix of it. \
It is optional if only one call is saved.

Examples:
  outlive tasks list
  outlive tasks watch
  outlive tasks answer 3f2a91c0 --answer yes=true
  outlive tasks result 3f2a91c0 > report.txt
  outlive tasks list --server http://127.0.0.1:8000/mcp --token-env TOKEN
  outlive tasks list --all-callers                   as operator of the server in this folder"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
pub(super) enum Command {
    List(list::Args),
    Get(Get),
    Watch(watch::Args),
    Answer(Answer),
    Cancel(cancel::Args),
    Result(WithResult),
    Remove(Remove),
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
