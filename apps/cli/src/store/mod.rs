//! `outlive store`: what operators do with a store, also while servers use it.
//!
//! - `access`: which store, and whether it may be touched. `list`, `show`, `retry`, `purge`,
//!   `migrate`: the commands. `words`: tasks and times for people. `json`: tasks for programs.

mod access;
mod format;
mod json;
mod list;
mod migrate;
mod purge;
mod retry;
mod show;

use std::{future::Future, process::ExitCode, time::Duration};

use tokio::runtime::Builder;

pub(crate) use access::{Store, no_task, own_url, trouble, url_or_own, without_password};
pub(crate) use format::{end_of, plain, rough, stamp, wall_clock};
pub(crate) use list::of_all as list;

use crate::error::{CliError, Kind, Result};

/// Looks after a store of tasks: those of all callers.
///
/// A store is named by its URL: sqlite:FILE or postgres://…. Without one it is that of OUTLIVE_STORE,
/// else that of the server whose outlive.toml is in this folder, else the one in the data folder. Servers may
/// use it meanwhile. The beginning of a task's id is enough.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store list                                  the newest tasks, whoever they belong to
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
enum Command {
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

/// A span of time as people write it: `90s`, `15m`, `36h`, `30d`.
fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time; write 90s, 15m, 36h or 30d");
    let digits = text.find(|one: char| !one.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let seconds = match text[digits..].trim_start() {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::span;

    #[test]
    fn spans_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("36 h", 129_600), ("30d", 2_592_000)] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "5", "m", "-1d", "1.5h", "1y", "99999999999999999999d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
