//! Errors of a resource server's settings.

/// Error in the settings of a resource server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceServerBuildError {
    /// The resource URI is invalid.
    #[error("`{uri}` is not a valid resource URI: {why}")]
    Resource {
        /// Configured URI.
        uri: String,
        /// Error in the URI.
        why: &'static str,
    },
    /// No issuer is configured.
    #[error("no issuer is trusted; add one with `.issuer(Issuer::new(\"https://…\"))`")]
    NoIssuer,
    /// The configuration of an issuer is invalid.
    #[error("the issuer `{issuer}` is invalid: {why}")]
    Issuer {
        /// Issuer.
        issuer: String,
        /// Error in the configuration.
        why: String,
    },
    /// The system has no random bytes for a key.
    #[error("the system has no random bytes")]
    NoRandomness,
}
