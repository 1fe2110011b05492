//! Something the peer did or asked that we refuse. The era gives it code, data and HTTP status.

use std::{borrow::Cow, fmt, time::Duration};

use outlive_wire::{ErrorObject, RawJson};

use crate::Scopes;

/// A refusal. Its text goes to the peer, so it says what to do and holds nothing private.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The bytes are not JSON.
    Parse(String),
    /// The JSON is not a message we take.
    InvalidRequest(Cow<'static, str>),
    /// No such method here.
    MethodNotFound {
        /// The method that was asked for.
        name: String,
    },
    /// The parameters do not fit the method.
    InvalidParams(Cow<'static, str>),
    /// No such tool, or not for this caller.
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// A name that is close to it.
        suggestion: Option<String>,
    },
    /// No such resource, or not for this caller.
    UnknownResource {
        /// The URI that was asked for.
        uri: String,
    },
    /// No such prompt, or not for this caller.
    UnknownPrompt {
        /// The name that was asked for.
        name: String,
        /// A name that is close to it.
        suggestion: Option<String>,
    },
    /// The caller is known, and its token does not give it leave to do this.
    MissingScopes {
        /// All that this operation needs, those that the caller has included.
        required: Scopes,
    },
    /// A mirrored header differs from the body, is missing or malformed.
    HeaderMismatch(Cow<'static, str>),
    /// The client did not declare something the request needs.
    MissingCapability {
        /// The capabilities to declare, as a `ClientCapabilities` object.
        required: RawJson,
    },
    /// The request names a revision that is not served.
    UnsupportedProtocolVersion {
        /// The revision that was asked for.
        requested: String,
        /// Whether it is one that is served, but only after `initialize`.
        needs_handshake: bool,
    },
    /// Too many requests, or too many at once.
    RateLimited {
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// A limit is used up that has a name, by this caller or by all of them.
    OverLimit {
        /// Its name, as operators and authors know it.
        limit: Cow<'static, str>,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// What the answer would have to come from cannot be used at the moment. That says nothing about
    /// what was asked for: it may be there, or have been done.
    Unavailable {
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The state of an earlier round is not ours, not for this call, or too old. One fault for all
    /// of these, so that nobody learns which.
    InvalidRequestState,
    /// No such session, or not for this caller.
    UnknownSession,
    /// A request of the application's own refusal; its code is sent as it is.
    Custom(ErrorObject),
    /// Something broke here. The cause is in the log, not in the answer.
    Internal,
}

impl ProtocolError {
    /// The parameters do not fit, in words.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidParams(message.into())
    }

    /// The message is none we take, in words.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidRequest(message.into())
    }

    /// A limit is used up. The peer may try again in a second.
    pub const fn over_limit(limit: &'static str) -> Self {
        Self::OverLimit { limit: Cow::Borrowed(limit), retry_after: Duration::from_secs(1) }
    }

    /// When it is worth trying again, if that is all that is wrong.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after }
            | Self::OverLimit { retry_after, .. }
            | Self::Unavailable { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Logs what cannot be used at the moment, and asks the peer to come back in a second.
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        tracing::error!(error = %cause, "something is needed that cannot be used");
        Self::Unavailable { retry_after: Duration::from_secs(1) }
    }

    /// Logs what broke and hides it from the peer.
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
            Self::InvalidRequest(why) => write!(f, "not a valid request: {why}"),
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
                write!(f, "the token does not have all the scopes that this needs: {needed}")
            }
            Self::MissingCapability { required } => {
                write!(f, "the client must declare these capabilities: {}", required.get())
            }
            Self::UnsupportedProtocolVersion { requested, needs_handshake } => {
                write!(f, "protocol version `{}` is not served ", short(requested))?;
                f.write_str(match needs_handshake {
                    true => "without a handshake; send `initialize`",
                    false => "here",
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
                "what is kept here cannot be read or written at the moment; try again in {} ms",
                retry_after.as_millis().max(1)
            ),
            Self::InvalidRequestState => f.write_str(
                "`params.requestState` cannot be used for this call; call again without it",
            ),
            Self::UnknownSession => f.write_str("unknown session; send `initialize` again"),
            Self::Custom(error) => f.write_str(&error.message),
            Self::Internal => f.write_str("internal error"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Names come from the peer and go back to it: enough to recognise, not enough to flood.
pub(crate) fn short(text: &str) -> &str {
    match text.char_indices().nth(80) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
