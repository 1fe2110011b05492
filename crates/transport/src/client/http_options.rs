//! Settings of the HTTP client.

use std::{path::PathBuf, time::Duration};

use crate::client::{network_policy::NetworkPolicy, token::Tokens};

/// Settings of the HTTP client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Maximum time to connect, including the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum bytes of one message, in a body or in an event.
    pub message_bytes: usize,
    /// Maximum number of idle connections per origin.
    pub idle_connections: usize,
    /// PEM file of the root certificates for `https:`. If it is `None`, the platform's verifier
    /// decides.
    pub ca_file: Option<PathBuf>,
    /// Addresses that the client may connect to.
    pub network_policy: NetworkPolicy,
    /// Source of access tokens. If it is `None`, requests have no token.
    pub tokens: Option<Tokens>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            message_bytes: 16 << 20,
            idle_connections: 32,
            ca_file: None,
            network_policy: NetworkPolicy::Anywhere,
            tokens: None,
        }
    }
}
