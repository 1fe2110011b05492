//! `outlive serve`: commands as MCP tools that survive.
//!
//! ```text
//! outlive.toml ─config─▶ ToolConfig ─tools─▶ outlive's Tool ─call─▶ command ─▶ job (a supervisor) ─▶ the command
//!                                                                   └ follow: lines, input requests, the end
//! ```
//!
//! - `config`: the file. `reload`: the file, when it changes.
//! - `command`: one tool. `input`: what it requests from its user. `text`: what it prints.
//! - `runner`, `places`, `janitor`, `host`: what commands share, what is left of them, and where they are.
//! - `pages`: /healthz, /readyz, /metrics. `metrics`: a listener for the last. `hello`: what is said at the start.

mod args;
mod background;
mod banner;
mod command;
mod command_pool;
pub(crate) mod config;
mod files;
mod host_liveness;
mod input;
mod janitor;
mod location;
mod metrics;
mod pages;
mod places;
mod reload;
mod secrets;
mod start;
mod text;
mod tools;

pub(crate) use self::places::Label;
pub(crate) use args::Args;
pub(crate) use location::base_of;
pub(crate) use start::run;
