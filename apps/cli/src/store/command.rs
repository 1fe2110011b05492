//! The command `outlive store`.

use super::{list, migrate, purge, retry, show};
use crate::error::{CliError, Kind, Result};
use std::{future::Future, process::ExitCode};
use tokio::runtime::Builder;

/// Looks after a store of tasks: those of all callers.
///
/// A store is named by its URL: sqlite:FILE or postgres://…. Without one it is that of OUTLIVE_STORE,
/// else that of the server whose outlive.toml is in this folder, else the one in the data folder. Servers may
/// use it meanwhile. The beginning of a task's id is enough.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store list                                  the newest tasks of all callers
  outlive store list postgres://outlive@db/outlive --phase quarantined
  outlive tasks answer TASK --all-callers             answer for its caller; likewise: cancel
  outlive store show TASK                             its journal, its questions, what has happened
  outlive store retry TASK                            retry a quarantined task
  outlive store purge --ended-before 30d
  outlive store migrate sqlite:/srv/outlive/tasks.db

Exit codes: 0 done, 1 not done (there is no such task, or it must not be), 2 wrong use, 3 no way to the store.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
pub(super) enum Command {
    List(list::Args),
    Show(show::Args),
    Retry(retry::Args),
    Purge(purge::Args),
    Migrate(migrate::Args),
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List(args) => block_on(list::run(args)),
        Command::Show(args) => block_on(show::run(args)),
        Command::Retry(args) => block_on(retry::run(args)),
        Command::Purge(args) => block_on(purge::run(args)),
        Command::Migrate(args) => block_on(migrate::run(args)),
    }
}

/// Runs a command that waits for a store. One thread is enough for that.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(Kind::Failed, error))?;
    runtime.block_on(work)
}
