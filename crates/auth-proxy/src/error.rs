//! Public errors of the proxy.

/// Error in the settings of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthProxyBuildError {
    /// The URI of the server or of the issuer is invalid.
    #[error("`{uri}` is not a valid resource or issuer URI: {why}")]
    Uri {
        /// Configured URI.
        uri: String,
        /// Error in the URI.
        why: &'static str,
    },
    /// The settings of the provider are invalid.
    #[error("the settings of the identity provider are invalid: {0}")]
    Provider(String),
    /// The secret is too short.
    #[error("the secret is too short; use at least 32 random bytes")]
    ShortSecret,
    /// A login store is configured without a secret. After a restart, its entries could not be
    /// opened.
    #[error("a login store requires a permanent secret; set it with `.secret(…)`")]
    NoSecret,
    /// The system has no random bytes for a key.
    #[error("the system has no random bytes")]
    NoRandomness,
}

/// Reason why no token of the provider is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderTokenError {
    /// The principal has not logged in through this proxy, or the login has ended.
    #[error("the user must log in again")]
    LoginRequired,
    /// The provider or the login store is unavailable.
    #[error("the identity provider or the login store is unavailable; retry later")]
    Unavailable,
}
