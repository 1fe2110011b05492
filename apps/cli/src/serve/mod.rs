//! `outlive serve`: serves commands as MCP tools that survive restarts.
//!
//! ```text
//! outlive.toml ─config─▶ ToolConfig ─tools─▶ outlive's Tool ─call─▶ command ─▶ job (a supervisor) ─▶ the command
//!                                                                   └ follow: lines, input requests, the end
//! ```
//!
//! - `config`: the configuration file. `reload`: reloads it when it changes.
//! - `command`: one tool. `input`: its input requests. `text`: its output as text.
//! - `source`: a file or a script. `workers`: tool workers.
//! - `upstreams`, `upstream_settings`: the gateway. `named_upstreams`: those of the command line.
//! - `upstream_requests`, `upstream_replies`: requests of `outlive upstreams`. `upstream_logins`: logins at
//!   upstreams, for commands beside the server.
//! - `command_pool`, `places`, `janitor`, `host_liveness`: state that all commands share.
//! - `notify`, `notify_command`: receivers of notifications. `console`: the pages for people.
//! - `callers`: authentication of callers by access tokens. `user_logins`: pages on which they log in at
//!   upstreams.
//! - `pages`: /healthz, /readyz, /metrics. `metrics`: a listener for /metrics. `banner`: messages
//!   at start and stop.

mod args;
mod background;
mod banner;
mod callers;
mod command;
mod command_pool;
pub(crate) mod config;
mod console;
mod files;
mod host_liveness;
mod input;
mod janitor;
mod location;
mod metrics;
mod named_upstreams;
mod notify;
mod notify_command;
mod pages;
mod places;
mod reload;
mod secrets;
mod source;
mod start;
mod text;
mod tools;
mod upstream_logins;
mod upstream_replies;
mod upstream_requests;
mod upstream_settings;
mod upstreams;
mod user_logins;
mod workers;

pub(crate) use self::places::Label;
pub(crate) use args::Args;
pub(crate) use location::{base_of, seal_key_file};
pub(crate) use source::Source;
pub(crate) use start::run;
pub(crate) use upstream_logins::ServerPlace;
pub(crate) use upstream_requests::{UpstreamReply, UpstreamRequest, send};
pub(crate) use upstream_settings::Sources;
pub(crate) use upstreams::STATUS_FILE;
pub(crate) use workers::{WorkerOptions, Workers};
