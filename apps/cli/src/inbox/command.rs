//! The command `outlive inbox`.

use std::process::ExitCode;

use super::{decide, desk::At, link, page, requests};
use crate::{error::Result, runtime::block_on};

/// Lists, approves, denies and answers open input requests.
///
/// The requests are those of a person: addressed to the person, or made by its own tasks. Deciding
/// needs a deciding credential: a line `name token decide` of the token file, or a token of the
/// console's OAuth client. On the machine of a server without tokens, the program signs in with the
/// keys in the data folder of the server.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "REQUEST is the ID of a task, or a unique prefix of it; or TASK/KEY if the task has several requests.

Examples:
  outlive inbox
  outlive inbox --server https://ops.example.com/mcp --token-env TOKEN
  outlive inbox show 4f2a
  outlive inbox approve 4f2a
  outlive inbox deny 4f2a --reason \"not before the freeze is over\"
  outlive inbox answer 4f2a --answer quarter=3
  outlive inbox link 4f2a --to ada"
)]
pub(crate) struct Args {
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Approve(decide::Approve),
    Deny(decide::Deny),
    Answer(decide::Answer),
    Link(link::Args),
}

/// Lists the open input requests, oldest first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive inbox list --server https://ops.example.com/mcp --token-env TOKEN
  outlive inbox list --json | jq -r .task

With --json each request is one JSON object on a line.")]
struct List {
    #[command(flatten)]
    at: At,
}

/// Shows one input request with everything that a decision covers.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive inbox show 4f2a")]
struct Show {
    /// Task ID or its unique prefix; TASK/KEY if the task has several requests
    #[arg(value_name = "REQUEST")]
    request: String,
    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => block_on(Box::pin(list(args))),
        Command::Show(args) => block_on(Box::pin(show(args))),
        Command::Approve(args) => block_on(Box::pin(decide::approve(args))),
        Command::Deny(args) => block_on(Box::pin(decide::deny(args))),
        Command::Answer(args) => block_on(Box::pin(decide::answer(args))),
        Command::Link(args) => block_on(Box::pin(link::run(args))),
    }
}

async fn list(List { at }: List) -> Result<ExitCode> {
    let desk = at.open().await?;
    let listed = requests::all(&desk.console).await;
    desk.screen.end();
    if let Ok(listed) = &listed {
        match at.json {
            true => listed.iter().for_each(|request| desk.screen.data(request.raw.get())),
            false if listed.is_empty() => desk.screen.talk("no input request is open for you"),
            false => desk.screen.data(&page::list(listed)),
        }
    }
    desk.console.close().await;
    listed.map(|_| ExitCode::SUCCESS)
}

async fn show(Show { request, at }: Show) -> Result<ExitCode> {
    let desk = at.open().await?;
    let found = desk.find(&request).await;
    if let Ok(found) = &found {
        desk.screen.data(&if at.json { found.raw.clone() } else { page::request(found) });
    }
    desk.console.close().await;
    found.map(|_| ExitCode::SUCCESS)
}
