//! MCP servers whose work outlives the request.
//!
//! A server in a dozen lines:
//!
//! ```no_run
//! use outlive::server::{Args, Server, Tool, http::HttpConfig};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Name of the person to greet.
//!     name: String,
//! }
//!
//! async fn greet(Args(greet): Args<Greet>) -> String {
//!     format!("Hello, {}!", greet.name)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::builder("greeter", "1.0.0").tool(Tool::new("greet", greet)).build()?;
//!     let serving = server.serve_http("127.0.0.1:8000", HttpConfig::new()).await?;
//!     eprintln!("listening on {}", serving.url());
//!     Ok(serving.wait().await?)
//! }
//! ```
//!
//! All MCP clients from 2024-11-05 to 2026-07-28 can use this server at one address.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `server` (default) | server API, stdio, streams, the in-memory store |
//! | `http` (default) | Streamable HTTP and HTTP+SSE, for the enabled sides |
//! | `macros` (default) | `#[tool]`, `#[resource]`, `#[prompt]`, `#[derive(Form)]` |
//! | `client` | client API, child processes, saved calls; with `http` also URLs |
//! | `testing` | `outlive::testing`, and the contract tests for stores |
//! | `anyhow` | `?` on handler errors in functions that return `anyhow::Result` |
//! | `json-schema` | all keywords and dialects of JSON Schema in hand-written schemas and `#[schemars(regex(…))]` |
//! | `skills` | skills: folders with instructions for agents; adds a YAML parser |
//! | `sqlite` | a store in one SQLite file; compiles C |
//! | `postgres` | a store in PostgreSQL, which several replicas share |
//! | `tls` | `https:` for clients, with the trust store of the platform |
//! | `webhooks` | webhooks that servers notify of events of tasks |
//! | `auth` | OAuth for servers and clients |
//! | `auth-proxy` | an authorization server in front of an identity provider without MCP support |
//! | `keyring` | client tokens in the keyring of macOS and Windows |
//! | `secret-service` | client tokens in the Secret Service of Linux desktops |
//!
//! Without `json-schema` a server supports the keywords that schemars generates. If a tool's schema
//! uses another keyword, `build()` fails and names the keyword and its location.

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod deliveries;
#[cfg(any(doc, doctest))]
pub mod docs;
#[cfg(any(feature = "client", feature = "server"))]
mod hex;
#[cfg(all(feature = "client", feature = "server"))]
mod in_memory;
#[cfg(feature = "server")]
pub mod operator;
#[cfg(feature = "server")]
pub mod people;
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(all(feature = "skills", any(feature = "client", feature = "server")))]
mod skill_format;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "auth-proxy")]
mod task_login_store;
#[cfg(feature = "testing")]
pub mod testing;

/// OAuth for servers and clients.
#[cfg(feature = "auth")]
pub use outlive_auth as auth;

/// Authorization server in front of an identity provider without MCP support.
#[cfg(feature = "auth-proxy")]
pub mod auth_proxy {
    pub use crate::task_login_store::TaskLoginStore;
    pub use outlive_auth_proxy::{
        AuthProxy, AuthProxyBuildError, AuthProxyBuilder, ConnectedServer, Connections, Identity,
        LoginStore, LoginStoreError, LoginStoreFuture, MemoryLoginStore, Provider,
        ProviderTokenError,
    };
}

/// Traits for a custom message transport.
pub use outlive_transport::messages as transport;

/// Types of the protocol.
pub use outlive_wire as wire;

/// Sanitization of a peer's text for display.
pub use outlive_protocol::text;

#[cfg(feature = "macros")]
pub use outlive_macros::{Form, prompt, resource, tool};

/// Items that the macros refer to. Not public API; may change in any release.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "server")]
    pub use crate::server::by_type::{
        Choice, Choose, ExtractorProbe, NoArgument, NotExtractor, Nothing, without_extractors,
    };
    pub use schemars;
    pub use serde;
}

// The examples of the README and of the macro docs are compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/tool.md")]
mod tool_macro {}

#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/resource.md")]
mod resource_macro {}

#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/prompt.md")]
mod prompt_macro {}

#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/form.md")]
mod form_macro {}
