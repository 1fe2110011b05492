//! Errors of a resource server's settings.

/// Why a resource server cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceServerBuildError {
    /// The URI of the server is none.
    #[error("`{uri}` cannot be the URI of a protected server: {why}")]
    Resource {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody's tokens would be taken.
    #[error("no issuer is trusted; name one with `.issuer(Issuer::new(\"https://…\"))`")]
    NoIssuer,
    /// An issuer cannot be used.
    #[error("the issuer `{issuer}` cannot be used: {why}")]
    Issuer {
        /// Which one.
        issuer: String,
        /// What is wrong with it.
        why: String,
    },
    /// There were no random bytes for a key.
    #[error("the system gave no random bytes")]
    NoRandomness,
}
