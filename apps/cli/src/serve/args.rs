//! Arguments of `outlive serve`.

use std::path::PathBuf;

/// Serves commands and functions as MCP tools that survive restarts.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive serve                          tools of ./outlive.toml, or a demo if there is none
  outlive serve tools.toml --stdio       for a host that starts its servers
  outlive serve tools.py --dev           tools of a Python script, reloaded on change
  outlive serve --upstream 'npx -y @modelcontextprotocol/server-everything'
  outlive serve --listen 0.0.0.0:8000 --token-file callers.txt
  outlive serve --store postgres://outlive@db/outlive
  outlive serve --print-demo > outlive.toml

The server reloads the tools when the file changes. docs/outlive-toml.md documents every key.")]
pub(crate) struct Args {
    /// File with the tools, or a script with tools: .py, .mjs, .js or .ts [default: ./outlive.toml if it exists, else a demo]
    pub(super) file: Option<PathBuf>,
    /// Serves MCP on standard input and output
    #[arg(long, conflicts_with = "listen")]
    pub(super) stdio: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    /// MCP server whose tools this server passes on: a command line or a URL; repeatable
    #[arg(long, value_name = "[NAME=]TARGET")]
    pub(super) upstream: Vec<String>,
    /// Task store: sqlite:FILE, or postgres://… for several replicas
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
    /// Folder for tasks and running commands
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// Accepts only callers with a token from this file, which has one `name token` or `name token decide` per line
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Reloads tool workers when their files change, and names the line of an error
    #[arg(long)]
    pub(super) dev: bool,
    /// Starts a function again with every input response, to test it
    #[arg(long, requires = "dev")]
    pub(super) replay_on_input: bool,
    /// Prints the demo file, as a start for your own
    #[arg(long)]
    pub(super) print_demo: bool,
    /// Prints the JSON Schema of the file, for editors
    #[arg(long)]
    pub(super) print_schema: bool,
    /// Prints the URL as JSON on standard output
    #[arg(long)]
    pub(super) json: bool,
}
