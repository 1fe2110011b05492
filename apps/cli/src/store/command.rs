//! The command `outlive store`.

use super::{list, migrate, purge, retry, show};
use crate::{error::Result, runtime::block_on};
use std::process::ExitCode;

/// Inspects and repairs a task store, for all callers.
///
/// A store is named by its URL: sqlite:FILE or postgres://…. The default is OUTLIVE_STORE, else the
/// store of ./outlive.toml, else the store in the data folder. Servers may use the store at the
/// same time. A unique prefix of a task ID is enough.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store list                                  newest tasks of all callers
  outlive store list postgres://outlive@db/outlive --phase quarantined
  outlive tasks answer TASK --all-callers             answer on behalf of its caller; also: cancel
  outlive store show TASK                             journal, input requests and events
  outlive store retry TASK                            retry a quarantined task
  outlive store purge --ended-before 30d
  outlive store migrate sqlite:/srv/outlive/tasks.db

Exit codes: 0 success, 1 no such task, or not allowed in its phase, 2 usage error, 3 store unreachable.")]
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
        Command::List(args) => block_on(Box::pin(list::run(args))),
        Command::Show(args) => block_on(Box::pin(show::run(args))),
        Command::Retry(args) => block_on(Box::pin(retry::run(args))),
        Command::Purge(args) => block_on(Box::pin(purge::run(args))),
        Command::Migrate(args) => block_on(Box::pin(migrate::run(args))),
    }
}
