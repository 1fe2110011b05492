//! Errors of the proxy's public functions.

/// Why a proxy cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthProxyBuildError {
    /// The URI of the server or of the issuer is none.
    #[error("`{uri}` cannot be the URI of a server or of a proxy: {why}")]
    Uri {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The provider cannot be used.
    #[error("the identity provider cannot be used: {0}")]
    Provider(String),
    /// The secret can be guessed.
    #[error("the secret is too short; 32 random bytes are enough")]
    ShortSecret,
    /// What is kept elsewhere could not be read after a restart, or by another replica.
    #[error("logins that are kept need a secret that is kept as well; set it with `.secret(…)`")]
    NoSecret,
    /// There were no random bytes for a key.
    #[error("the system gave no random bytes")]
    NoRandomness,
}

/// Why there is no token of the provider's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderTokenError {
    /// The caller has not logged in through this proxy, or that is over.
    #[error("this caller has to log in again")]
    LoginRequired,
    /// The provider, or the place where logins are kept, cannot be asked.
    #[error("the identity provider cannot be asked at the moment; try again later")]
    Unavailable,
}
