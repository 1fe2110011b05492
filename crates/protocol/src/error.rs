//! Protocol errors. The codec of each era adds code, data and HTTP status.

use std::{borrow::Cow, fmt, time::Duration};

use outlive_wire::{ErrorObject, RawJson};

use crate::Scopes;

/// A protocol error. Its text is sent to the client: it names the remedy and contains no internal
/// details.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The message is not valid JSON.
    Parse(String),
    /// The JSON is not a valid message.
    InvalidRequest(Cow<'static, str>),
    /// The method does not exist.
    MethodNotFound {
        /// The requested method.
        name: String,
    },
    /// The parameters are invalid for the method.
    InvalidParams(Cow<'static, str>),
    /// The tool does not exist, or the caller may not see it.
    UnknownTool {
        /// The requested name.
        name: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// The resource does not exist, or the caller may not see it.
    UnknownResource {
        /// The requested URI.
        uri: String,
    },
    /// The prompt does not exist, or the caller may not see it.
    UnknownPrompt {
        /// The requested name.
        name: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// The caller is authenticated, but its access token lacks a required scope.
    MissingScopes {
        /// All scopes that the operation requires, including those that the caller has.
        required: Scopes,
    },
    /// A mirrored header is missing, malformed or different from the body.
    HeaderMismatch(Cow<'static, str>),
    /// The client did not declare a capability that the request requires.
    MissingCapability {
        /// The capabilities to declare, as a `ClientCapabilities` object.
        required: RawJson,
    },
    /// The server does not support the protocol version of the request.
    UnsupportedProtocolVersion {
        /// The requested version.
        requested: String,
        /// Whether the server supports the version, but only after `initialize`.
        needs_handshake: bool,
    },
    /// Too many requests, or too many at once.
    RateLimited {
        /// Delay before a retry.
        retry_after: Duration,
    },
    /// A named limit is used up, by this caller or by all callers.
    OverLimit {
        /// Name of the limit, as in the configuration.
        limit: Cow<'static, str>,
        /// Delay before a retry.
        retry_after: Duration,
    },
    /// The store is unavailable. The request may or may not have taken effect.
    Unavailable {
        /// Delay before a retry.
        retry_after: Duration,
    },
    /// The request state is foreign, expired, or not valid for this call. One error for all cases,
    /// so that clients cannot distinguish them.
    InvalidRequestState,
    /// The session does not exist, or belongs to another principal.
    UnknownSession,
    /// An error of the application, sent with its own code.
    Custom(ErrorObject),
    /// The server failed. The cause is in the log, not in the response.
    Internal,
}

impl ProtocolError {
    /// Creates an error for invalid parameters.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidParams(message.into())
    }

    /// Creates an error for an invalid message.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidRequest(message.into())
    }

    /// Creates an error for a used-up limit. The client may retry after one second.
    pub const fn over_limit(limit: &'static str) -> Self {
        Self::OverLimit { limit: Cow::Borrowed(limit), retry_after: Duration::from_secs(1) }
    }

    /// Returns the delay before a retry, for errors that are temporary.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after }
            | Self::OverLimit { retry_after, .. }
            | Self::Unavailable { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Logs the cause. Returns an error that asks the client to retry after one second.
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        tracing::error!(error = %cause, "dependency unavailable");
        Self::Unavailable { retry_after: Duration::from_secs(1) }
    }

    /// Logs the cause. Returns an error that hides it from the client.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(error = %cause, "internal error");
        Self::Internal
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did_you_mean = |f: &mut fmt::Formatter<'_>, meant: &Option<String>| match meant {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        };
        match self {
            Self::Parse(why) => write!(f, "the message is not valid JSON: {why}"),
            Self::InvalidRequest(why) => write!(f, "invalid request: {why}"),
            Self::MethodNotFound { name } => write!(f, "unknown method `{}`", short(name)),
            Self::InvalidParams(why) | Self::HeaderMismatch(why) => f.write_str(why),
            Self::UnknownTool { name, suggestion: meant } => {
                write!(f, "unknown tool `{}`", short(name))?;
                did_you_mean(f, meant)
            }
            Self::UnknownResource { uri } => write!(f, "unknown resource `{}`", short(uri)),
            Self::UnknownPrompt { name, suggestion: meant } => {
                write!(f, "unknown prompt `{}`", short(name))?;
                did_you_mean(f, meant)
            }
            Self::MissingScopes { required: needed } => {
                write!(f, "the access token lacks a required scope; required scopes: {needed}")
            }
            Self::MissingCapability { required } => {
                write!(f, "the client must declare these capabilities: {}", required.get())
            }
            Self::UnsupportedProtocolVersion { requested, needs_handshake } => {
                write!(f, "protocol version `{}` ", short(requested))?;
                f.write_str(match needs_handshake {
                    true => "requires a handshake; send `initialize` first",
                    false => "is not supported",
                })
            }
            Self::RateLimited { retry_after } => {
                write!(f, "too many requests; try again in {} ms", retry_after.as_millis().max(1))
            }
            Self::OverLimit { limit, retry_after } => write!(
                f,
                "the limit `{}` is used up; try again in {} ms",
                short(limit),
                retry_after.as_millis().max(1)
            ),
            Self::Unavailable { retry_after } => write!(
                f,
                "the task store is unavailable; retry in {} ms",
                retry_after.as_millis().max(1)
            ),
            Self::InvalidRequestState => f.write_str(
                "`params.requestState` is not valid for this call; call again without it",
            ),
            Self::UnknownSession => f.write_str("unknown session; send `initialize` again"),
            Self::Custom(error) => f.write_str(&error.message),
            Self::Internal => f.write_str("internal error"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Truncates text of the client that a message quotes, so that the client cannot inflate it.
pub(crate) fn short(text: &str) -> &str {
    match text.char_indices().nth(80) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
