//! Authorization server in front of an identity provider that does not support MCP.
//!
//! Clients register with the proxy and get its tokens. Users log in at the provider.
//!
//! - [`AuthProxy`]: the authorization server. [`Provider`]: the provider, and the one client
//!   registered there.
//! - [`LoginStore`]: the store of logins; [`MemoryLoginStore`] for one process.
//! - [`Identity`]: the user who has logged in, for rules about logins and scopes.
//! - [`Connections`]: other servers at which each user logs in.
//!
//! A login starts at `authorize`, continues with `consent`, and goes to the provider. The provider
//! returns it to `callback`, which creates a `grant`. `token` exchanges a code or a refresh token
//! for tokens, and `revoke` ends the grant. `client` represents clients, `scopes` the scopes of a
//! user, and `provider` the requests to the identity provider. `connect` is the page on which a user
//! logs in at another server.
//!
//! The proxy stores no state before a login: the ID of a client is its sealed registration, and a
//! login in progress is a sealed cookie. Stored entries are sealed too, including the tokens of the
//! provider.
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
mod connect;
mod connections;
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
pub use connections::{ConnectedServer, Connections};
pub use error::{AuthProxyBuildError, ProviderTokenError};
pub use identity::Identity;
pub use login_store::{LoginStore, LoginStoreError, LoginStoreFuture, MemoryLoginStore};
pub use provider::Provider;
pub use proxy::AuthProxy;
