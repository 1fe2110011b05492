//! `outlive.toml`: what is served, and how.
//!
//! - `reader`: TOML with lines; it gathers mistakes. `problem`: a mistake, and all of them.
//! - `units`: spans of time and amounts of bytes.
//! - `auth`: whose tokens are taken.
//! - `limits`: what callers may use of the server.
//! - `proxy`: the identity provider behind our own authorization server.
//! - `grants`: which of its users get which scopes.
//! - `argument`: arguments of tools, and their schema.
//! - `template`: commands with placeholders.
//! - `tool`: a tool. `trial`: whether the server takes its schemas.

mod argument;
mod asked;
mod auth;
mod file;
mod grants;
mod limits;
mod problem;
mod proxy;
mod reader;
mod server;
mod tasks;
mod template;
#[cfg(test)]
mod tests;
mod tool;
mod trial;
mod units;

pub(crate) use auth::{AuthConfig, Check};
pub(crate) use file::{Config, DEMO, SCHEMA, demo, load};
pub(crate) use problem::{Mistake, Mistakes};
pub(crate) use server::{LISTEN, MAX_WAITING_JOBS, ServerConfig, is_address};
pub(crate) use tasks::TasksConfig;
pub(crate) use tool::{OnCrash, Output, Ready, TaskMode, ToolConfig};
pub(crate) use units::in_words;
