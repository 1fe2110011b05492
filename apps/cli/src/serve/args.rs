//! Arguments of `outlive serve`.

use std::path::PathBuf;

/// Serves commands as MCP tools that survive.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive serve                          the tools of ./outlive.toml, or a demo if there is none
  outlive serve tools.toml --stdio       for a host that starts its servers itself
  outlive serve --listen 0.0.0.0:8000 --token-file callers.txt
  outlive serve --store postgres://outlive@db/outlive
  outlive serve --print-demo > outlive.toml

The file is read again when it changes. Every key of it is in docs/outlive-toml.md.")]
pub(crate) struct Args {
    /// The file with the tools; ./outlive.toml if it is there, else a demo
    pub(super) file: Option<PathBuf>,
    /// Serve the program that starts this one, on standard input and output
    #[arg(long, conflicts_with = "listen")]
    pub(super) stdio: bool,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    /// Where tasks are kept: sqlite:FILE, or postgres://… for replicas
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
    /// The folder for tasks and running commands
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// Let in only callers with a token of this file, which has a `name token` per line
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Print the file of the demo, to begin one of your own with
    #[arg(long)]
    pub(super) print_demo: bool,
    /// Print the JSON Schema of the file, for editors
    #[arg(long)]
    pub(super) print_schema: bool,
    /// Say where it listens as JSON on standard output
    #[arg(long)]
    pub(super) json: bool,
}
