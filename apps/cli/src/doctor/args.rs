//! Arguments of `outlive doctor`.

use std::path::PathBuf;

/// Checks the environment of the program, and suggests remedies.
///
/// Checks the data folder, the store, the port, token and key files, token issuers, upstreams, the
/// clock, and the terminal. Starts and lists each upstream. Writes and deletes one test file in the data folder and one test value in the
/// store.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive doctor
  outlive doctor tools.toml --listen 0.0.0.0:8000 --token-file callers.txt
  outlive doctor --store postgres://outlive@db/outlive
  outlive doctor --json | jq -r '.findings[] | select(.level == \"failure\") | .remedy'

Exit codes: 0 no failures, 1 at least one failure.
With --json the output is one JSON object.")]
pub(crate) struct Args {
    /// File with the tools [default: ./outlive.toml if it exists]
    pub(super) file: Option<PathBuf>,
    /// Store of the tasks: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
    /// Address that the server will listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    /// Data folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// File with the tokens of callers
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// File with the keys that seal request states
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}
