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
mod api;
mod audit_name;
mod build_error;
mod caller_key;
mod config;
mod conversation;
mod dispatch;
mod durable;
mod durable_error;
mod env;
mod error;
mod exec;
mod extract;
pub mod forms;
mod histogram;
mod meter;
mod metrics;
mod param_headers;
mod policy;
mod random;
mod register;
mod retry;
mod run;
mod seal_keys;
mod secret;
mod sessions;
mod skills;
mod tasks;
mod text_args;
mod throttle;
mod time;
pub mod uri_template;

pub use api::{builder::ServerBuilder, server::Server};
pub(crate) use audit_name::name_in_audit;
pub use build_error::BuildError;
pub use config::{ResponseMode, TaskConfig};
pub use dispatch::layer::{BoxCallService, BoxError};
pub use durable::{
    cleanup::{Cleanup, IntoCleanupResult},
    context::{Durable, YieldToReplica},
    elicit::{Elicit, ElicitUrl, Roots, Sample},
    emit::Task,
    external_event::{CreateExternalEvent, ExternalEvent},
    recordable::Recordable,
    rounds::Round,
};
pub use durable_error::DurableError;
pub(crate) use env::test_hooks::TestHooks;
pub use error::{Error, HandlerError, Result};
pub(crate) use extract::by_type;
pub use extract::{
    cx::Cx,
    extractor::{Args, Extract, HandlerRequirements, RawParams, Rejection, State},
    handler::Handler,
    response::{IntoRawResult, IntoToolResult, Json},
};
pub use histogram::Histogram;
pub use meter::ToolMetrics;
pub use metrics::Metrics;
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
pub use policy::{OnCrash, TaskPolicy};
pub use register::{
    completers::{CompletionInput, IntoCompletion},
    prompt::{IntoPromptResult, Prompt},
    resource::{IntoResourceContents, Resource, ResourceTemplate},
    tool::Tool,
};
pub use retry::{Attempt, Retry};
pub use run::{
    input::ElicitOutcome,
    input_request_set::{InputRequestSet, RoundOutcome},
    placement::CleanupReason,
    replay_policy::ResumePolicy,
};
pub use seal_keys::{SealKeys, SealKeysError};
pub use secret::Secret;
pub use skills::{Skill, SkillError, Skills};
pub use throttle::RateLimit;
