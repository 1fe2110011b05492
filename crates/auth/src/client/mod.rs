//! OAuth client: acquires and refreshes access tokens.
//!
//! [`OAuth`] is a [`TokenSource`]. Requests have no token until the server rejects one. The challenge
//! leads to the authorization server, where a user logs in or the program authenticates. The client
//! stores the token, refreshes it before it expires, and requests more scopes when the server
//! requires them.
//!
//! ```no_run
//! use outlive_auth::client::{FileCredentialStore, LoopbackLogin, OAuth};
//!
//! let oauth = OAuth::builder("https://example.com/mcp")
//!     .login(LoopbackLogin::new())
//!     .store(FileCredentialStore::new("/home/ada/.config/my-app/credentials.json"))
//!     .build();
//! ```
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>

mod acquire;
mod assertion;
mod builder;
mod code;
mod current_token;
mod discovery;
mod dpop;
mod error;
mod exchange;
mod grant;
mod identity;
mod login;
mod metadata;
mod metadata_document;
mod oauth;
mod random;
mod redirect_login;
mod registration;
mod scopes;
mod settings;
mod store;
mod token;
mod token_endpoint;
mod token_exchange;
mod url;

pub use assertion::Assertion;
pub use builder::OAuthBuilder;
pub use discovery::discover_server;
pub use error::{OAuthError, OAuthErrorResponse, OAuthRequest};
pub use grant::EnterpriseAuthorization;
pub use login::{Login, LoopbackLogin, ManualLogin, PendingLogin, RedirectParams};
pub use metadata::ServerMetadata;
pub use metadata_document::ClientMetadataDocument;
pub use oauth::{LoginInfo, OAuth};
pub use outlive_transport::client::{
    SecretString, TokenError, TokenRequest, TokenResponse, TokenSource, Tokens,
};
pub use redirect_login::StartedLogin;
#[cfg(feature = "keyring")]
pub use store::{CredentialLocation, KeyringStore};
pub use store::{
    CredentialStore, CredentialStoreError, FileCredentialStore, MemoryCredentialStore,
};
pub use token_exchange::TokenExchange;
