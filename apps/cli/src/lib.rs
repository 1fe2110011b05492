//! The program `outlive`: serves tools as an MCP server, and calls and operates MCP servers.
//!
//! Data is written to standard output, messages to standard error. Each command is a module with
//! its arguments and a function `run`. This crate is a library only so that tests can list the
//! commands.

mod auth;
mod call;
mod checks;
mod connect;
mod console;
mod doctor;
mod error;
mod inbox;
mod init;
mod inspect;
mod jobs;
mod log;
mod paths;
mod print;
mod program;
mod runtime;
mod serve;
mod store;
mod tasks;
mod test;
mod upstreams;

pub use program::{commands, main};
