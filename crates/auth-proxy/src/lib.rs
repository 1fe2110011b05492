//! Authorization server in front of an identity provider that does not know MCP.
//!
//! Clients register with the proxy and get its tokens. Users log in with the provider.
//!
//! - [`AuthProxy`]: the authorization server. [`Provider`]: the provider, and the one client that it knows.
//! - [`LoginStore`]: where logins are stored; [`MemoryLoginStore`] for one process.
//! - [`Identity`]: the user who has logged in, for the rules that decide what the user may do.
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
mod browser_reply;
mod builder;
mod callback;
mod client;
mod client_document;
mod client_document_gate;
mod consent;
mod entries;
mod error;
mod grant;
mod identity;
mod keys;
mod login;
mod login_store;
mod metadata;
mod page;
mod params;
mod provider;
mod provider_client;
mod provider_token;
mod proxy;
mod redirect_uri;
mod register;
mod reply;
mod revoke;
mod scope_list;
mod scopes;
mod state;
mod time;
mod token;
mod token_request;

pub use builder::AuthProxyBuilder;
pub use error::{AuthProxyBuildError, ProviderTokenError};
pub use identity::Identity;
pub use login_store::{LoginStore, LoginStoreError, LoginStoreFuture, MemoryLoginStore};
pub use provider::Provider;
pub use proxy::AuthProxy;
