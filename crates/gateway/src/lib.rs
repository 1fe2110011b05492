//! Existing MCP servers of every protocol version behind one server.
//!
//! A [`Gateway`] adds the tools, prompts and resources of its upstreams to a server: commands that
//! speak stdio, and servers over Streamable HTTP or HTTP+SSE. Clients of every protocol version use
//! all upstreams.
//!
//! ```no_run
//! use outlive::server::{Server, http::HttpConfig};
//! use outlive_gateway::{Gateway, Upstream};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder()
//!     .upstream(Upstream::command("files", ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"]))
//!     .upstream(Upstream::url("tracker", "https://tracker.example/mcp"))
//!     .build()?;
//! let server = gateway.attach(Server::builder("gateway", "1.0.0")).build()?;
//! gateway.start(&server);
//! let serving = server.serve_http("127.0.0.1:8000", HttpConfig::new()).await?;
//! serving.wait().await?;
//! gateway.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `gateway`: the public API; `settings`: the settings as types; [`status`]: states and reasons.
//! - `served`: the catalog of the server; `view`, `assemble`: joined lists; `entries`: the server's
//!   entries for definitions of upstreams; `own_tools`, `search`: the gateway's own tools;
//!   `instructions`: texts for the model.
//! - `catalog`: the lists of one upstream; `refresh`: reads them; `names`: names and URIs.
//! - `relay`: the path of a call; `subscriptions`: changes of resources.
//! - `member`: one upstream; `upstream`: its connections, processes, limits and state; `metrics`: its
//!   counters.
//! - `credentials`: tokens at upstreams; `logins`, `user_logins`: logins of operators and of principals.

mod assemble;
mod backoff;
mod catalog;
mod credentials;
mod digest;
mod entries;
mod excerpt;
mod gateway;
mod instructions;
mod logins;
mod member;
mod metrics;
mod names;
mod own_tools;
mod refresh;
mod relay;
mod search;
mod served;
mod settings;
mod shared;
pub mod status;
mod subscriptions;
mod upstream;
mod user_logins;
mod view;

pub use gateway::{Gateway, GatewayBuilder};
pub use metrics::GatewayMetrics;
pub use settings::{
    CallAudit, Discovery, ExchangeSubject, GatewayError, GatewaySettings, InputForwarding,
    Isolation, LogLevel, Pin, Policy, Start, Supervision, ToolSettings, Upstream, UpstreamAuth,
};
pub use user_logins::UserLoginTarget;
