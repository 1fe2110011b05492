//! MCP servers whose work outlives the request.
//!
//! A server in a dozen lines:
//!
//! ```no_run
//! use outlive::server::{Args, Server, Tool, http::HttpConfig};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Who to greet.
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
//! Every MCP client from 2024-11-05 to 2026-07-28 can use it, from the one address.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `server` (default) | server API, stdio, streams, the store in memory |
//! | `http` (default) | Streamable HTTP and HTTP+SSE, for each side that is on |
//! | `macros` (default) | `#[tool]`, `#[resource]`, `#[prompt]`, `#[derive(Form)]` |
//! | `client` | client API, child processes, saved calls; with `http` also URLs |
//! | `testing` | `outlive::testing`, and the contract that every store fulfills |
//! | `anyhow` | `?` on errors of handlers in functions that return `anyhow::Result` |
//! | `json-schema` | every keyword and dialect of JSON Schema in hand-written schemas and `#[schemars(regex(…))]` |
//! | `skills` | folders of instructions for agents, which have YAML |
//! | `sqlite` | a store in one SQLite file; compiles C |
//! | `postgres` | a store in PostgreSQL, which several replicas share |
//! | `tls` | `https:` for clients, with the trust store of the platform |
//! | `auth` | OAuth for both sides |
//! | `auth-proxy` | an authorization server in front of an identity provider that does not know MCP |
//! | `keyring` | tokens of clients in the keyring of macOS and Windows |
//! | `secret-service` | tokens of clients in the Secret Service of a Linux desktop too |
//!
//! Without `json-schema` a server checks the keywords that schemars writes. A tool whose schema uses
//! another one fails in `build()`, which names the keyword and its place; nothing is accepted unchecked.

#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod hex;
#[cfg(all(feature = "client", feature = "server"))]
mod in_memory;
#[cfg(feature = "server")]
pub mod operator;
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

/// OAuth, for both ends.
#[cfg(feature = "auth")]
pub use outlive_auth as auth;

/// Authorization server in front of an identity provider that does not know MCP.
#[cfg(feature = "auth-proxy")]
pub mod auth_proxy {
    pub use crate::task_login_store::TaskLoginStore;
    pub use outlive_auth_proxy::{
        AuthProxy, AuthProxyBuildError, AuthProxyBuilder, Identity, LoginStore, LoginStoreError,
        LoginStoreFuture, MemoryLoginStore, Provider, ProviderTokenError,
    };
}

/// A transport of your own, message by message.
pub use outlive_transport::messages as transport;

/// The protocol's own types.
pub use outlive_wire as wire;

/// Text of a peer, made safe to show to people.
pub use outlive_protocol::text;

#[cfg(feature = "macros")]
pub use outlive_macros::{Form, prompt, resource, tool};

/// What the macros write paths to. Not for use by hand: it may change in any release.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "server")]
    pub use crate::server::by_type::{
        Choice, Choose, ExtractorProbe, NoArgument, NotExtractor, Nothing, without_extractors,
    };
    pub use schemars;
    pub use serde;
}

/// The README's code is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// So is that of the page about questions.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/input.md")]
mod questions {}

/// And that of the page about errors.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/errors.md")]
mod errors_page {}

/// And that of the page about tasks.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tasks.md")]
mod task_page {}

/// And that of the page about what tasks emit.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/streaming.md")]
mod streaming_page {}

/// And that of the page about skills.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/skills.md")]
mod skills_page {}

/// And that of the page about operating.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/operations.md")]
mod operating_page {}

/// And that of the page about deployment.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/deployment.md")]
mod deployment_page {}

/// And that of the page about the client.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
mod client_page {}

/// And that of the page about authorization.
#[cfg(all(doctest, feature = "auth-proxy"))]
#[doc = include_str!("../../../docs/authorization.md")]
mod authorization_page {}

/// And the documentation of `#[tool]`.
#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/tool.md")]
mod tool_macro {}

/// And the documentation of `#[resource]`.
#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/resource.md")]
mod resource_macro {}

/// And the documentation of `#[prompt]`.
#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/prompt.md")]
mod prompt_macro {}

/// And the documentation of `#[derive(Form)]`.
#[cfg(doctest)]
#[doc = include_str!("../../macros/docs/form.md")]
mod form_macro {}
