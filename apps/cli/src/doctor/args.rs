//! Arguments of `outlive doctor`.

use std::path::PathBuf;

/// Checks what this program needs, and says what to do.
///
/// Looks at the data folder, the store, the port, files with tokens and keys, issuers of tokens, the clock, and the
/// terminal. It writes and forgets a note in the store and a file in the data folder; nothing else is changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive doctor
  outlive doctor tools.toml --listen 0.0.0.0:8000 --token-file callers.txt
  outlive doctor --store postgres://outlive@db/outlive
  outlive doctor --json | jq -r '.findings[] | select(.level == \"failure\") | .remedy'

Exit codes: 0 nothing keeps the program from working, 1 something does.
With --json it is one JSON object.")]
pub(crate) struct Args {
    /// The file with the tools; ./outlive.toml if it is there
    pub(super) file: Option<PathBuf>,
    /// Where tasks are kept: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
    /// Where a server is to listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    /// The data folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// The file with the tokens of callers
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// The file with the keys that seal what clients carry
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
