//! The server for the official MCP conformance suite, with every feature.
//!
//! The suite defines the behavior, names and texts of each tool, resource and prompt.

mod interop;
mod prompts;
mod questions;
mod resources;
mod server;
mod skills;
mod tasks;
mod tools;

pub use server::everything;
