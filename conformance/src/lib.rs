//! The server that the official MCP conformance suite is run against: one of everything.
//!
//! What each tool, resource and prompt must do is said by the suite; names and texts are its own.

mod interop;
mod prompts;
mod questions;
mod resources;
mod server;
mod skills;
mod tasks;
mod tools;

pub use server::everything;
