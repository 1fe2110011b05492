//! `outlive upstreams import`: from the file of a host to `[upstreams.NAME]`.
//!
//! - `host_file`: finds the servers in a file. `json_with_comments`: its syntax.
//! - `entry`: one server. `command_line`: its command. `value`: its variables and headers.
//! - `host_text`: references such as `${TOKEN}`. `secret`: values that are stored in files.
//! - `names`: names of upstreams. `toml_text`: writes TOML.

mod command;
mod command_line;
mod entry;
mod host_file;
mod host_text;
mod json_with_comments;
mod names;
mod secret;
mod toml_text;
mod value;

pub(super) use command::{Args, run};
