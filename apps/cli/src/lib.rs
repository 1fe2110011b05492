//! The program `outlive`: serve, call, watch and answer MCP servers without writing Rust.
//!
//! Standard output is data, standard error is talk. Each command is a module: its arguments, and `run`.
//! It is a library so that tests can list the commands; nothing else should use it.

mod auth;
mod call;
mod checks;
mod connect;
mod doctor;
mod error;
mod init;
mod inspect;
mod jobs;
mod log;
mod paths;
mod print;
mod program;
mod serve;
mod store;
mod tasks;

pub use program::{commands, main};
