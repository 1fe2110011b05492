//! The client: call any MCP server of any revision, and come back with the result.
//!
//! ```no_run
//! use outlive::client::{ChildProcess, Client, InputCallbacks, InputResponse};
//! use serde_json::json;
//!
//! # async fn run() -> outlive::client::Result<()> {
//! let client = Client::builder("my-app", "1.0.0")
//!     .input_handler(InputCallbacks::new().form(|question| async move {
//!         question.defaults().unwrap_or(InputResponse::Decline)
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
//! RequestBuilder ─▶ request::converse ─▶ request::send ─▶ Exchange ─▶ ClientCodec::write ─▶ transport
//!            rounds               sessions        one id        one revision
//! ```
//!
//! - [`Client`]: tools, resources, prompts, lists, subscriptions, and any method.
//! - [`InputHandler`]: answers what servers ask, on every wire.
//! - [`TaskHandle`]: a call that goes on by itself; saved, and taken up again.
//! - [`Error`]: who refused, who broke the protocol, what failed on the way, why we gave up.

mod api;
mod attempt;
mod builder;
mod cache;
mod cached;
mod call;
mod call_store;
mod core;
mod dispatch;
mod env;
mod error;
mod exchange;
mod group;
mod handshake;
mod hosted_tasks;
mod incoming;
mod input;
mod limits;
mod link;
mod lists;
mod notice;
mod notices;
mod random;
mod request;
mod result_text;
mod saved;
mod segment;
mod skills;
mod stream;
mod subscription;
mod target;
mod tasks;
mod tool_arguments;
mod tool_cache;
mod tool_call;
mod tools;
mod tracker;
mod version_cache;

pub use attempt::Progress;
pub use builder::ClientBuilder;
pub use call::{Complete, GetPrompt, RawRequest, ReadResource, RequestBuilder, RequestKind};
pub use call_store::{
    CallStage, CallStore, FileCallStore, SavedCall, SavedInputResponse, SavedRound, SavedTask,
};
pub use core::Client;
pub use error::{ClientError, Error, ProtocolViolation, Refused, Result, ServerErrorKind};
pub use group::{ClientGroup, GroupTools};
pub use input::{
    InputCallbacks, InputCapabilities, InputHandler, InputKind, InputOrigin, InputResponse,
    PendingInput,
};
pub use limits::ClientLimits;
pub use link::ServerInfo;
pub use lists::{ListItem, Paginated};
pub use notice::ServerNotification;
pub use notices::Notifications;
pub use outlive_protocol::{
    Progress as TaskProgress,
    era::client::{TaskSnapshot, TaskStatus},
};
pub use outlive_transport::client::{
    Challenge, SecretString, StaticToken, Token, TokenError, TokenRequest, TokenResponse,
    TokenSource, TransportError, TransportErrorKind,
    child::{ChildProcess, Stderr},
};
pub use result_text::result_text;
pub use segment::Segment;
pub use skills::{SkillEntry, SkillFile};
pub use stream::{StreamTool, ToolStream};
pub use subscription::{ListenFilter, Subscription};
pub use target::{InMemoryServer, OpenedTransport, Target};
pub use tasks::{TaskEvent, TaskEvents, TaskHandle, TaskList};
pub use tool_arguments::check_arguments;
pub use tools::{StartTool, ToolCall};
pub use version_cache::VersionCache;
