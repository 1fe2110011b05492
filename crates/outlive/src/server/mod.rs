//! Builds and runs MCP servers.
//!
//! Start with [`Server::builder`]. Tools, resources and prompts are async functions. Extractors
//! such as [`Args`], [`State`], [`Cx`] and [`Durable`] produce their arguments. The traits in
//! [`response`] convert their return values.
//!
//! - [`Tool`], [`Resource`], [`ResourceTemplate`], [`Prompt`]: the items that a server registers.
//!   The feature `skills` adds skills.
//! - [`Server`]: serves stdio, HTTP and byte streams. Items can be added and removed while it runs.
//! - [`catalog`]: items that depend on the call, such as the tools of other servers.
//! - [`approve`]: calls that wait for the approval of people.
//! - [`durable`]: steps, input requests, external events, cleanup; [`tasks`]: which calls become
//!   tasks.
//! - [`extract`]: custom extractors; [`layer`]: middleware around all calls; [`forms`]: input
//!   forms.
//! - [`Error`]: the error of a handler; [`ProtocolError`]: the error of a request.

mod access;
mod api;
pub mod approve;
mod audit_name;
mod build_error;
mod caller_key;
pub mod catalog;
mod config;
mod conversation;
mod dispatch;
pub mod durable;
mod durable_error;
mod env;
mod error;
mod exec;
pub mod extract;
pub mod forms;
mod histogram;
pub mod hosts;
pub mod layer;
mod meter;
pub mod metrics;
mod param_headers;
mod policy;
mod random;
mod register;
pub mod response;
mod results;
mod retry;
mod run;
mod seal_keys;
mod secret;
mod sessions;
#[cfg(feature = "skills")]
pub mod skills;
pub mod tasks;
mod text_args;
mod throttle;
mod time;
pub mod uri_template;
mod view;

pub(crate) use api::shown_tool::ShownTool;
pub use api::{builder::ServerBuilder, server::Server};
pub(crate) use api::{notifications::Notifications, server::WeakServer};
pub(crate) use audit_name::name_in_audit;
pub use build_error::BuildError;
pub use durable::{context::Durable, emit::Task};
pub(crate) use env::environment::Env;
#[cfg(feature = "testing")]
pub(crate) use env::test_hooks::TestHooks;
pub use error::{Error, HandlerError, Result};
pub(crate) use extract::by_type;
pub use extract::{
    cx::Cx,
    extractor::{Args, State},
    response::Json,
};
pub use outlive_protocol::{Clock, Limits, Principal, ProtocolError, Scopes, VersionSet};
/// Streamable HTTP and HTTP+SSE.
#[cfg(feature = "http")]
pub use outlive_transport::http;
pub use outlive_wire::{CallToolResult, ContentBlock, LoggingLevel, Meta};
pub(crate) use random::random_id;
pub use register::{
    prompt::Prompt,
    resource::{Resource, ResourceTemplate},
    tool::Tool,
};
pub(crate) use run::answer_token::{AnswerToken, is_answerable};
pub use seal_keys::{SealKeys, SealKeysError};
pub use throttle::RateLimit;
pub(crate) use time::{millis, wall_millis};
