//! Transports to a server: child processes, tokens, in-memory servers and transport errors.

pub use super::{
    target::{CustomTransport, InMemoryServer, OpenedTransport},
    version_cache::VersionCache,
};
pub use outlive_transport::client::{
    Challenge, SecretString, StaticToken, Token, TokenError, TokenRequest, TokenResponse,
    TokenSource, TransportError, TransportErrorKind,
    child::{ChildProcess, Stderr},
};
