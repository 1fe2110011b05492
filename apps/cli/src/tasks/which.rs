//! Arguments that name a task.

use crate::{
    call::{input::Prepared, server::Connection},
    error::CliError,
};

/// Which call is meant, and how to get to its server.
#[derive(clap::Args)]
pub(super) struct Which {
    /// Which call: its handle, or the beginning of it
    pub(super) handle: Option<String>,
    /// Means the task of this id at a server, in place of a saved call
    #[arg(long, value_name = "SERVER", requires = "handle")]
    pub(super) server: Option<String>,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// Shows how far a task is
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive tasks get 3f2a91c0 --json")]
pub(super) struct Get {
    #[command(flatten)]
    pub(super) which: Which,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Answers what a task asks: in a form, or with --answer
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  outlive tasks answer 3f2a91c0\n  \
                  outlive tasks answer 3f2a91c0 --answer yes=true\n  outlive tasks answer 3f2a91c0 --decline\n  \
                  outlive tasks answer 3f2a91c0 --all-callers --answer yes=true")]
pub(super) struct Answer {
    #[command(flatten)]
    pub(super) which: Which,
    #[command(flatten)]
    pub(super) prepared: Prepared,
    #[command(flatten)]
    pub(super) stores: super::stores::Stores,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Waits for a task and prints its result, as `outlive call` would have
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks result 3f2a91c0\n  outlive tasks result 3f2a91c0 --json --keep-handle"
)]
pub(super) struct WithResult {
    #[command(flatten)]
    pub(super) which: Which,
    /// Prints the whole result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Keeps the handle, so that the result can be printed again
    #[arg(long)]
    pub(super) keep_handle: bool,
    /// Leaves after this time: 30, 30s, 5m, 2h. The task goes on
    #[arg(long, value_name = "TIME", value_parser = crate::call::span)]
    pub(super) timeout: Option<std::time::Duration>,
    #[command(flatten)]
    pub(super) prepared: Prepared,
}

/// Among the tasks of all callers one has to be named.
pub(super) fn no_task_named() -> CliError {
    CliError::usage("no task is named").remedy("`outlive tasks list --all-callers` shows their ids")
}
