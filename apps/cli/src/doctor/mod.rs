//! `outlive doctor`: checks the environment of the program, and suggests remedies.
//!
//! - `folder`: the data folder and its sockets.
//! - `store`: the task store. `learned`: learned call timeouts. `port`: the listen address.
//! - `files`: outlive.toml, tokens, keys. `auth`: token issuers. `upstreams`: connects to them.
//! - `machine`: clock, locale, terminal.

mod args;
mod auth;
mod command;
mod files;
mod finding;
mod folder;
mod learned;
mod machine;
mod plan;
mod port;
mod store;
mod upstreams;

pub(crate) use args::Args;
pub(crate) use command::run;
pub(crate) use finding::Finding;
use plan::Plan;
