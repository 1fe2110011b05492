//! Tests of handlers in memory: scripted input responses, crashes and cancellation.
//!
//! ```
//! use outlive::{Form, server::{Durable, Result, Server}, testing::TestServer, tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
//! struct Approval { yes: bool }
//!
//! #[tool]
//! async fn deploy(cx: Durable, repo: String) -> Result<String> {
//!     let image: String = cx.step("build", async || Ok(format!("{repo}:1"))).await?;
//!     let approval: Approval = cx.elicit("approve", "Deploy?").await?;
//!     Ok(format!("{image}: {}", approval.yes))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let server = TestServer::new(Server::builder("test", "1").tool(deploy::tool()))?;
//! let outcome = server
//!     .call_tool("deploy", json!({"repo": "shop"}))
//!     .accept("approve", json!({"yes": true}))
//!     .crash_after_each()
//!     .await?;
//! assert_eq!(outcome.text(), "shop:1: true");
//! assert_eq!(outcome.input_requests, ["approve"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time is simulated: if a handler waits only for timers, the server's clock jumps to the next
//! timer. A handler that sleeps for a day is tested immediately.
//!
//! For tests beyond one call, such as lists, subscriptions and tasks, use a
//! [`Client`](crate::client::Client): `Client::builder(…).connect(&server)`.

mod call;
mod outcome;
mod server;

pub use call::TestCall;
pub use outcome::{TestCancellation, TestFailure, TestOutcome, TestResult};
pub use server::TestServer;
