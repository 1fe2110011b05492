//! Building and running MCP servers.
//!
//! Begin with [`Server::builder`]. Tools, resources and prompts are async functions; their
//! arguments are made from the call by type ([`Args`], [`State`], [`Cx`]), their results turn into
//! what the protocol wants ([`IntoToolResult`], [`IntoResourceContents`], [`IntoPromptResult`]).
//!
//! - [`Tool`], [`Resource`], [`ResourceTemplate`], [`Prompt`], [`Skills`]: what can be registered.
//! - [`Server`]: serves stdio, HTTP and streams, and can be changed while it runs.
//! - [`Error`]: what handlers fail with; [`ProtocolError`] for refusals.

mod access;
mod build_error;
mod builder;
mod completion;
mod conversation;
mod core;
mod custom;
mod cx;
mod durable;
mod error;
mod extract;
pub mod forms;
mod handler;
mod layer;
mod list;
mod meter;
mod metrics;
mod output;
mod param_headers;
mod prompt;
mod registry;
mod resource;
mod router;
mod running;
mod seal_keys;
mod sessions;
mod skills;
mod subscription;
mod tasks;
mod text_args;
mod throttle;
mod tool;
pub mod uri_template;

pub use build_error::BuildError;
pub use builder::ServerBuilder;
pub use completion::{CompletionInput, IntoCompletion};
pub use cx::Cx;
pub(crate) use durable::Rehearsed;
pub use durable::{
    CreateExternalEvent, Durable, DurableError, Elicit, ElicitOutcome, ElicitUrl, ExternalEvent,
    InputRequestSet, ResumePolicy, Retry, Roots, Round, RoundOutcome, Sample, Secret, Task,
    YieldToReplica,
};
pub use error::{Error, Result};
pub use extract::{Args, Extract, HandlerRequirements, RawParams, Rejection, State};
pub use handler::Handler;
pub use layer::{BoxCallService, BoxError};
pub use meter::ToolMetrics;
pub use metrics::{Histogram, Metrics};
pub use outlive_protocol::CompletionOutcome;
pub use outlive_protocol::{
    Call, ClientNotification, Clock, Limits, Outcome, Principal, ProtocolError, Scopes, Session,
    VersionSet,
};
pub use outlive_tasks::{
    IntoKey, JournalError, Key,
    engine::{Capacity, Permit},
};
pub use outlive_wire::{
    Annotations, CacheHints, CacheScope, CallToolResult, ContentBlock, GetPromptResult, Icon,
    LoggingLevel, Meta, PromptArgument, PromptMessage, ResourceContents, Role, ToolAnnotations,
};
pub use output::{IntoRawResult, IntoToolResult, Json};
pub use prompt::{IntoPromptResult, Prompt};
pub use resource::{IntoResourceContents, Resource, ResourceTemplate};
pub use running::Server;
pub use seal_keys::{SealKeys, SealKeysError};
pub use skills::{Skill, SkillError, Skills};
pub(crate) use tasks::name_in_audit;
pub use tasks::{
    Cleanup, CleanupReason, IntoCleanupResult, OnCrash, ResponseMode, TaskConfig, TaskPolicy,
};
pub use throttle::RateLimit;
pub use tool::Tool;
