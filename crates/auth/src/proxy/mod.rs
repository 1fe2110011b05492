//! The proxy: an authorization server of our own, in front of an identity provider that knows nothing
//! of MCP. Clients register with it and get its tokens; people log in with the provider.
//!
//! - [`Proxy`]: the authorization server. [`Upstream`]: the provider, and the one client that it knows.
//! - [`Notes`]: where logins are kept; [`MemoryNotes`] for one process.
//! - [`Identity`]: who has logged in, for those who decide whether that one may.
//!
//! A login goes from `authorize` (who asks, and for what) over `consent` (what the person says to
//! that) to the provider, and comes back at `callback`, which makes a `grant` of it. `token` swaps a
//! code for tokens, and a refresh token for the next; `revoke` ends it. `client` says who a client is
//! and where its answers may go; `scopes` which scopes a user gets; `provider` is all that is said to
//! the identity provider.
//!
//! Nothing is remembered for those who have not logged in. A registration is the client's id, and a
//! login that is under way is a cookie: both are sealed. What is kept of those who have logged in is
//! sealed too, the provider's tokens with it.
//!
//! Spec: <https://modelcontextprotocol.io/docs/tutorials/security/security_best_practices>

mod authorize;
mod browser;
mod builder;
mod callback;
mod client;
mod client_document;
mod client_document_gate;
mod consent;
mod grant;
mod identity;
mod keys;
mod metadata;
mod notes;
mod page;
mod params;
mod provider;
#[expect(clippy::module_inception, reason = "it is the proxy")]
mod proxy;
mod redirect_uri;
mod register;
mod reply;
mod revoke;
mod scopes;
mod token;
mod upstream;
mod upstream_token;
mod words;

pub use builder::{ConfigError, ProxyBuilder};
pub use identity::Identity;
pub use notes::{MemoryNotes, Notes, NotesError, Noting};
pub use proxy::Proxy;
pub use upstream::Upstream;
pub use upstream_token::NoUpstreamToken;
