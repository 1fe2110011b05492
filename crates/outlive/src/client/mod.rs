//! MCP client for servers of every protocol version.
//!
//! ```no_run
//! use outlive::client::{
//!     Client,
//!     input::{InputCallbacks, InputResponse},
//!     transport::ChildProcess,
//! };
//! use serde_json::json;
//!
//! # async fn run() -> outlive::client::Result<()> {
//! let client = Client::builder("my-app", "1.0.0")
//!     .input_handler(InputCallbacks::new().form(|request| async move {
//!         request.defaults().unwrap_or(InputResponse::Decline)
//!     }))
//!     .connect(ChildProcess::new("my-server").arg("--stdio"))
//!     .await?;
//! let report = client.call_tool("deploy", json!({"repo": "shop"})).await?;
//! # let _ = report;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! RequestBuilder ─▶ send::converse ─▶ send::send ─▶ attempt::once ─▶ Exchange ─▶ ClientCodec::write ─▶ transport
//!                   rounds            retries       one attempt      one id      one version
//! ```
//!
//! - [`Client`]: tools, resources, prompts, lists, subscriptions, and any method.
//! - [`request`]: requests with their options, lists page by page, streams of partial results.
//! - [`input`]: the handler that responds to the input requests of servers.
//! - [`tasks`]: handles on tasks; [`saved`]: calls on disk, which another process can resume.
//! - [`notifications`]: notifications outside of calls; [`transport`]: child processes, tokens,
//!   failures.
//! - [`relay`]: requests of programs that stand between clients and servers.
//! - `skills`: skills that a server offers; [`group`]: the tools of several servers.
//! - [`Error`]: one variant for each way in which a caller can react to a failure.

mod api;
mod attempt;
mod builder;
mod cache;
mod cached;
mod call_store;
mod core;
mod dispatch;
mod env;
mod error;
mod event_stream;
mod exchange;
pub mod group;
mod handshake;
mod hosted_tasks;
mod incoming;
pub mod input;
mod input_events;
mod limits;
mod link;
mod lists;
mod notice;
mod notices;
pub mod notifications;
mod random;
pub mod relay;
pub mod request;
mod request_builder;
mod result_text;
pub mod saved;
mod segment;
mod send;
mod server_info;
#[cfg(feature = "skills")]
pub mod skills;
mod stream;
mod subscription;
#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "`in_memory` uses the rest"))]
mod target;
pub mod tasks;
mod tool_arguments;
mod tool_cache;
mod tool_call;
mod tools;
mod tracker;
pub mod transport;
mod unexpected;
mod version_cache;

pub use builder::ClientBuilder;
pub use core::Client;
pub use error::{ClientError, Error, ProtocolViolation, Result, ServerError, ServerErrorKind};
pub use limits::ClientLimits;
/// The protocol versions, for [`ClientBuilder::protocol_version`].
pub use outlive_wire::Version;
pub use server_info::ServerInfo;
pub use target::Target;
