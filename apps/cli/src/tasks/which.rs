//! Arguments that name a task.

use crate::{
    call::{input::Prepared, server::Connection},
    error::CliError,
};

/// Names a call, and the connection to its server.
#[derive(clap::Args)]
pub(super) struct Which {
    /// Handle of the call, or a unique prefix of it
    pub(super) handle: Option<String>,
    /// Uses the task with this ID on a server, instead of a saved call
    #[arg(long, value_name = "SERVER", requires = "handle")]
    pub(super) server: Option<String>,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// Shows the status of a task
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive tasks get 3f2a91c0 --json")]
pub(super) struct Get {
    #[command(flatten)]
    pub(super) which: Which,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Answers the input requests of a task: in a form, or with --answer
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

/// Waits for a task and prints its result, like `outlive call`
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks result 3f2a91c0\n  outlive tasks result 3f2a91c0 --json --keep-handle"
)]
pub(super) struct WithResult {
    #[command(flatten)]
    pub(super) which: Which,
    /// Prints the complete result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Keeps the handle, so that the result can be printed again
    #[arg(long)]
    pub(super) keep_handle: bool,
    /// Exits after this time: 30, 30s, 5m, 2h. The task keeps running
    #[arg(long, value_name = "TIME", value_parser = crate::call::span)]
    pub(super) timeout: Option<std::time::Duration>,
    #[command(flatten)]
    pub(super) prepared: Prepared,
}

/// Returns the error for a missing task ID, which `--all-callers` requires.
pub(super) fn no_task_named() -> CliError {
    CliError::usage("missing argument: the task ID")
        .remedy("run `outlive tasks list --all-callers` to see the IDs")
}
