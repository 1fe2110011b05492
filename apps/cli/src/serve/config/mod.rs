//! `outlive.toml`: the configuration file.
//!
//! - `file`: the file as a whole. `server`, `tasks`, `hosts`, `auth`, `console`: its sections.
//! - `reader`: reads TOML with line numbers, and collects mistakes. `problem`: mistakes.
//! - `notify`: receivers of notifications. `public_url`: the address for links to the server.
//! - `units`: durations and byte sizes. `limits`: limits of callers.
//! - `proxy`: the identity provider behind the authorization proxy. `grants`: scopes of its users.
//! - `upstream`, `upstream_target`, `upstream_auth`, `upstream_tool`: MCP servers behind this one. `gateway`:
//!   settings of all of them. `reference`: values in variables and files.
//! - `worker`: a tool worker. `tool`: a tool. `policy`, `policy_keys`: the keys that every kind of tool has. `argument`: its arguments. `template`: its command with placeholders.
//! - `approve`: who decides about which calls. `tags`: tags of tasks. `scopes`: scopes of tokens.
//! - `trial`: validation of schemas by the server. `asked`: all known keys.

mod approve;
mod argument;
mod asked;
mod auth;
mod console;
mod file;
mod gateway;
mod grants;
mod hosts;
mod limits;
mod notify;
mod policy;
mod policy_keys;
mod problem;
mod proxy;
mod public_url;
mod reader;
mod reference;
mod scopes;
mod server;
mod tags;
mod tasks;
mod template;
#[cfg(test)]
mod tests;
mod tool;
mod trial;
mod units;
mod upstream;
mod upstream_auth;
mod upstream_target;
mod upstream_tool;
mod worker;

pub(crate) use approve::ApproveConfig;
pub(crate) use argument::is_argument_name;
pub(crate) use auth::{AuthConfig, Check};
pub(crate) use console::ConsoleConfig;
pub(crate) use file::{Config, DEMO, SCHEMA, demo, load, without_tools};
pub(crate) use notify::{NotifyConfig, Receiver};
pub(crate) use policy_keys::{OnCrash, PolicyKeys, TaskMode};
pub(crate) use problem::{Mistake, Mistakes};
pub(crate) use reference::Reference;
pub(crate) use server::{LISTEN, MAX_WAITING_JOBS, ServerConfig, is_address, is_loopback};
pub(crate) use tasks::TasksConfig;
pub(crate) use tool::{Output, Ready, ToolConfig};
pub(crate) use units::in_words;
pub(crate) use upstream::{UpstreamConfig, is_upstream_name};
pub(crate) use upstream_auth::{AuthKind, ExchangeConfig, UpstreamAuthConfig};
pub(crate) use upstream_target::{CommandTarget, UpstreamTarget, UrlTarget};
pub(crate) use upstream_tool::UpstreamToolConfig;
pub(crate) use worker::WorkerConfig;
