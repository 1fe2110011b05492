//! `outlive tasks cancel`: cancels tasks, and waits until they end.

use std::process::ExitCode;

use outlive::client::saved::CallStage;
use serde_json::json;

use super::end::{End, exit_code};
use super::{operate, resume::Resumed, target::Taken};
use crate::{
    call::{
        input::Prepared,
        run_call::Left,
        saved_calls::Handles,
        screen::{Screen, shown},
        server::Connection,
    },
    error::{CliError, Kind, Result},
};

/// Cancels tasks, and waits until they end
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks cancel 3f2a91c0\n  outlive tasks cancel 3f2a91c0 77ab01de\n  \
                  outlive tasks cancel TASK --server http://127.0.0.1:8000/mcp\n  \
                  outlive tasks cancel TASK --all-callers\n\n\
Exit codes: 4 cancelled, 0 already completed, 1 already failed. With --json each task is one \
JSON object on a line."
)]
pub(crate) struct Args {
    /// Handles of the calls, or unique prefixes
    handles: Vec<String>,
    /// All saved calls
    #[arg(long, conflicts_with_all = ["handles", "server", "all_callers", "store"])]
    all: bool,
    /// Uses the tasks with these IDs on a server, instead of saved calls
    #[arg(long, value_name = "SERVER", requires = "handles")]
    server: Option<String>,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    stores: super::stores::Stores,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    if let Some(url) = args.stores.url()? {
        return operate::cancel(&url, &args.handles, args.json).await;
    }
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    let taken: Vec<Taken> = match (&args.server, &args.handles[..]) {
        (Some(server), ids) => ids.iter().map(|id| Taken::task(server, id)).collect(),
        (None, []) if args.all => handles.all()?.into_iter().map(Taken::from).collect(),
        (None, []) => vec![Taken::saved(&handles, None)?],
        (None, named) => named
            .iter()
            .map(|handle| Taken::saved(&handles, Some(handle)))
            .collect::<Result<_>>()?,
    };
    let is_one = taken.len() == 1;
    let (mut ends, mut failed) = (Vec::new(), None);
    for taken in taken {
        let (name, result) = (taken.name().to_owned(), taken.command("result"));
        let end = match one(taken, &args.connection).await {
            Ok(end) => end,
            Err(trouble) if is_one || trouble.kind() == Kind::Interrupted => return Err(trouble),
            // The other tasks are still cancelled.
            Err(trouble) => {
                screen.talk(&format!("{}: {}", shown(&name), shown(&trouble.to_string())));
                failed = Some(CliError::new(trouble.kind(), "some tasks were not cancelled"));
                continue;
            }
        };
        ends.push(end);
        let whose = if is_one { String::new() } else { format!("{}: ", shown(&name)) };
        match (args.json, end) {
            (true, _) => {
                screen.data(&json!({"handle": name, "state": end.as_str()}).to_string());
            }
            (false, End::Cancelled) => screen.talk(&format!("{whose}cancelled")),
            (false, end) => {
                screen.talk(&format!("{whose}already {}; see its result: {result}", end.as_str()))
            }
        }
    }
    failed.map_or_else(|| Ok(exit_code(&ends)), Err)
}

/// Cancels one call, and returns its final state.
async fn one(taken: Taken, connection: &Connection) -> Result<End> {
    let mut resumed = Resumed::connect(taken, connection, Prepared::default()).await?;
    let mut handle = resumed.handle().await?;
    let left = resumed.attendant.cancel(&mut handle).await;
    let stage = handle.to_saved().await.stage;
    resumed.client.close().await;
    match (left, stage) {
        (Ok(Left::Cancelled), _) => {
            resumed.forget();
            Ok(End::Cancelled)
        }
        (Ok(Left::Interrupted), _) => Err(CliError::new(Kind::Interrupted, "interrupted")),
        (Ok(Left::Done(result, _)), _) if result.is_error == Some(true) => Ok(End::Failed),
        (Ok(Left::Done(..)), _) => Ok(End::Completed),
        (Ok(_), _) => {
            Err(CliError::unreachable("the task keeps running although it was asked to stop"))
        }
        // The task had already failed, without a result.
        (Err(_), CallStage::Failed(_)) => Ok(End::Failed),
        (Err(trouble), _) => Err(trouble),
    }
}
