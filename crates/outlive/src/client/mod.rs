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
mod builder;
mod cache;
mod call;
mod call_store;
mod core;
mod dispatch;
mod error;
mod exchange;
mod group;
mod handshake;
mod hosted_tasks;
mod input;
mod limits;
mod lists;
mod notice;
mod notices;
mod request;
#[cfg(feature = "skills")]
mod skills;
mod stream;
mod subscription;
#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "`in_memory` uses the rest"))]
mod target;
mod tasks;
mod tool_arguments;
mod tool_cache;
mod tool_call;
mod tools;
mod tracker;

pub use api::Client;
pub use builder::ClientBuilder;
pub use call::{
    Complete, GetPrompt, RawRequest, ReadResource, RequestBuilder, RequestKind, StartTool, ToolCall,
};
pub use call_store::{
    CallStage, CallStore, FileCallStore, SavedCall, SavedInputResponse, SavedRound, SavedTask,
};
pub use core::ServerInfo;
pub use error::{ClientError, Error, ProtocolViolation, Refused, Result, ServerErrorKind};
pub use group::{ClientGroup, GroupTools};
pub use handshake::VersionCache;
pub use input::{
    InputCallbacks, InputCapabilities, InputHandler, InputKind, InputOrigin, InputResponse,
    PendingInput,
};
pub use limits::ClientLimits;
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
pub use request::Progress;
#[cfg(feature = "skills")]
pub use skills::{SkillEntry, SkillFile};
pub use stream::{Segment, StreamTool, ToolStream};
pub use subscription::{ListenFilter, Subscription};
pub use target::{InMemoryServer, OpenedTransport, Target};
pub use tasks::{TaskEvent, TaskEvents, TaskHandle, TaskList};
pub use tool_arguments::check_arguments;
pub use tools_text::result_text;

mod tools_text {
    //! What a result says, for people.

    use outlive_wire::{CallToolResult, ContentBlock};

    /// All texts of a result, joined by line ends.
    pub fn result_text(result: &CallToolResult) -> String {
        let texts: Vec<&str> = result
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}
