//! The client: call any MCP server of any revision, and come back with the result.
//!
//! ```no_run
//! use outlive::client::{Answer, Answers, Client, Program};
//! use serde_json::json;
//!
//! # async fn run() -> outlive::client::Result<()> {
//! let client = Client::builder("my-app", "1.0.0")
//!     .answerer(Answers::new().form(|question| async move {
//!         question.defaults().unwrap_or(Answer::Decline)
//!     }))
//!     .connect(Program::new("my-server").arg("--stdio"))
//!     .await?;
//! let report = client.call_tool("deploy", json!({"repo": "shop"})).await?;
//! # let _ = report;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! Call ─▶ request::converse ─▶ request::send ─▶ Exchange ─▶ ClientEra::write ─▶ transport
//!            rounds               sessions        one id        one revision
//! ```
//!
//! - [`Client`]: tools, resources, prompts, lists, subscriptions, and any method.
//! - [`Answerer`]: answers what servers ask, on every wire.
//! - [`TaskHandle`]: a call that goes on by itself; saved, and taken up again.
//! - [`Error`]: who refused, who broke the protocol, what failed on the way, why we gave up.

mod answer;
mod api;
mod book;
mod builder;
mod cache;
mod call;
mod calling;
mod core;
mod detect;
mod dispatch;
mod error;
mod exchange;
mod hosted;
mod hub;
mod limits;
mod lists;
mod notebook;
mod notice;
mod notices;
mod request;
mod skills;
mod stream;
mod subscription;
mod target;
mod tasks;
mod tool_arguments;
mod tools;
mod tracker;

pub use answer::{Answer, Answerer, Answers, Ask, Can, Origin, Question};
pub use api::Client;
pub use builder::ClientBuilder;
pub use call::{Call, Complete, GetPrompt, Kind, Raw, ReadResource, StartTool, ToolCall};
pub use core::ServerView;
pub use detect::EraMemory;
pub use error::{Error, GaveUp, PeerBroke, Reason, Refused, Result};
pub use hub::{Hub, HubTools};
pub use limits::ClientLimits;
pub use lists::{Listed, Pages};
pub use notebook::{FileNotebook, Notebook, Round, SavedAnswer, SavedCall, SavedTask, Stage};
pub use notice::Notice;
pub use notices::Notices;
pub use outlive_protocol::{
    Progress as TaskProgress,
    era::client::{TaskSnapshot, TaskStatus},
};
pub use outlive_transport::client::{
    Challenge, Secret, StaticToken, Token, TokenAnswer, TokenError, TokenRequest, TokenSource,
    TransportError, TransportErrorKind,
    child::{Program, Stderr},
};
pub use request::Progress;
pub use skills::{SkillEntry, SkillFile};
pub use stream::{Segment, StreamTool, ToolStream};
pub use subscription::{Filter, Subscription};
pub use target::{Opened, Target};
pub use tasks::{TaskEvent, TaskEvents, TaskHandle, TaskList};
pub use tool_arguments::check_arguments;
pub use tools_text::texts;

mod tools_text {
    //! What a result says, for people.

    use outlive_wire::{CallToolResult, ContentBlock};

    /// All texts of a result, joined by line ends.
    pub fn texts(result: &CallToolResult) -> String {
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
