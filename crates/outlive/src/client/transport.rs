//! The way to a server: child processes, tokens, servers in memory, and transport failures.

pub use super::{
    target::{InMemoryServer, OpenedTransport},
    version_cache::VersionCache,
};
pub use outlive_transport::client::{
    Challenge, SecretString, StaticToken, Token, TokenError, TokenRequest, TokenResponse,
    TokenSource, TransportError, TransportErrorKind,
    child::{ChildProcess, Stderr},
};
