//! `outlive upstreams`: MCP servers behind `outlive serve`.
//!
//! - `command`: the arguments. `place`: the file and the data folder of a server.
//! - `show`: the status of a running server. `log`: what an upstream wrote to standard error.
//! - `request`: restarts an upstream, or accepts changed definitions, in a running server.
//! - `check`: connects and lists. `import`: reads the file of a host.

mod check;
mod command;
mod import;
mod log;
mod place;
mod request;
mod show;

pub(crate) use check::{Checked, connect};
pub(crate) use command::{Args, run};
pub(crate) use place::file_or_here;
pub(crate) use request::forget_connections;
