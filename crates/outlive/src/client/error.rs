//! Errors of the client: one variant for each way in which a caller can react to a failure.

use std::{error, fmt, time::Duration};

use outlive_transport::client::{TokenError, TransportError, TransportErrorKind};
use outlive_wire::{ErrorObject, RawJson, code};

/// Result of a client operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a client: why a request has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server returned an error. Change the request or obtain access.
    Server(ServerError),
    /// The server violated the protocol. Report it to its operator.
    ProtocolViolation(ProtocolViolation),
    /// The request or its response was lost. Retry if that is safe: [`Error::may_have_executed`]
    /// returns whether the server may have executed the request.
    Transport(TransportError),
    /// The client stopped: a limit, a timeout, or a decision that only the caller can make.
    Client(ClientError),
}

/// Error that a server returned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerError {
    /// JSON-RPC error code; see [`outlive_wire::code`].
    pub code: i32,
    /// Message for people.
    pub message: String,
    /// Details for programs.
    pub data: Option<RawJson>,
    /// Category of the error.
    pub kind: ServerErrorKind,
    /// HTTP status of the response.
    pub status: Option<u16>,
}

/// Category of a server's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// The server rejects the request; see code and message.
    Request,
    /// The server does not have or does not enable the method.
    MethodNotFound,
    /// The resource does not exist.
    NotFound,
    /// The server requires a capability that the client does not declare; `data` names it.
    MissingCapability,
    /// The access token is missing or invalid.
    Unauthorized,
    /// The access token is valid, but its principal lacks access.
    Forbidden,
    /// A rate limit or concurrency limit was exceeded. Retry later.
    RateLimited {
        /// Delay before a retry, if the server names one.
        retry_after: Option<Duration>,
    },
    /// The task was cancelled.
    TaskCancelled,
    /// The task failed with this error. The outcome is terminal, so a retry returns the same error.
    TaskFailed,
    /// The task does not exist: it expired, was purged, or belongs to another principal.
    TaskGone,
    /// The server failed internally.
    Internal,
}

/// Category of an error: what a program shows as the state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCategory {
    /// No connection, or the connection was lost.
    Unreachable,
    /// The access token is missing or invalid.
    NeedsLogin,
    /// The principal of the access token lacks access.
    Refused,
    /// Client and server have no protocol version in common, or the server violated the protocol.
    Incompatible,
    /// The pipe to the server is closed, because its process exited, or its program could not be
    /// started. Over HTTP, the server closed the connection.
    Exited,
    /// A rate limit or concurrency limit was exceeded.
    RateLimited,
    /// The request timed out.
    TimedOut,
    /// Any other error that the server returned.
    Server,
    /// Any other decision of the client.
    Client,
}

/// Violation of the protocol by a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProtocolViolation {
    /// Description of the violation.
    pub what: String,
}

/// Reason why the client stopped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The request timed out and was cancelled.
    TimedOut(Duration),
    /// The server requested input in more rounds than [`ClientLimits`](super::ClientLimits) allows.
    TooManyRounds(u32),
    /// A list has more pages or entries than [`ClientLimits`](super::ClientLimits) allows.
    TooManyPages(usize),
    /// A list repeats a pagination cursor and would never end.
    CursorLoop,
    /// An input request has no response: the client has no input handler, or the handler rejected
    /// it.
    Unanswered(String),
    /// The response of the input handler does not match the input request.
    InvalidInputResponse(String),
    /// The arguments do not serialize to a JSON object.
    BadArguments(String),
    /// Client and server have no protocol version in common.
    NoCommonVersion(Vec<String>),
    /// The negotiated protocol version or the server does not support the request.
    NotOffered(String),
    /// The call was sent and may have executed. The process stopped before the response, and the
    /// server does not support idempotency keys. Check the effect before you repeat the call.
    MaybeExecuted(String),
    /// A stream of partial results ended before it was complete.
    Incomplete(String),
    /// A saved call cannot be read or written.
    CallStore(String),
    /// A saved call belongs to another server or account.
    WrongAccount(String),
    /// The result does not match the tool's output schema.
    SchemaViolated(String),
    /// The token source has no token that the server accepts. The error contains a remedy.
    NoToken(TokenError),
    /// The client was closed.
    Closed,
}

impl Error {
    pub(crate) fn broke(what: impl Into<String>) -> Self {
        Self::ProtocolViolation(ProtocolViolation { what: what.into() })
    }

    pub(crate) fn not_offered(what: impl Into<String>) -> Self {
        Self::Client(ClientError::NotOffered(what.into()))
    }

    /// Returns the server's error, if this is one.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(refused) => Some(refused),
            _ => None,
        }
    }

    /// Returns the category of the server's error, if this is one.
    pub fn kind(&self) -> Option<ServerErrorKind> {
        self.server_error().map(|refused| refused.kind)
    }

    /// Returns the category of the error, for programs that connect to many servers.
    pub fn category(&self) -> ErrorCategory {
        match self {
            Self::Server(refused) => match refused.kind {
                ServerErrorKind::Unauthorized => ErrorCategory::NeedsLogin,
                ServerErrorKind::Forbidden => ErrorCategory::Refused,
                ServerErrorKind::RateLimited { .. } => ErrorCategory::RateLimited,
                _ if refused.code == code::UNSUPPORTED_VERSION => ErrorCategory::Incompatible,
                _ => ErrorCategory::Server,
            },
            Self::ProtocolViolation(_) => ErrorCategory::Incompatible,
            Self::Transport(error) => match error.kind() {
                TransportErrorKind::Closed | TransportErrorKind::Start => ErrorCategory::Exited,
                TransportErrorKind::Token(_) => ErrorCategory::NeedsLogin,
                TransportErrorKind::Malformed(_) | TransportErrorKind::TooLarge(_) => {
                    ErrorCategory::Incompatible
                }
                _ => ErrorCategory::Unreachable,
            },
            Self::Client(why) => match why {
                ClientError::NoToken(_) => ErrorCategory::NeedsLogin,
                ClientError::NoCommonVersion(_) => ErrorCategory::Incompatible,
                ClientError::TimedOut(_) => ErrorCategory::TimedOut,
                _ => ErrorCategory::Client,
            },
        }
    }

    /// Returns whether the server may have executed the request although the response was lost.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Server(_) => false,
            Self::ProtocolViolation(_) => true,
            Self::Transport(error) => error.may_have_been_sent(),
            Self::Client(why) => {
                matches!(
                    why,
                    ClientError::TimedOut(_)
                        | ClientError::MaybeExecuted(_)
                        | ClientError::Incomplete(_)
                )
            }
        }
    }

    /// Returns whether a retry of the same request may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport(error) => !matches!(
                error.kind(),
                TransportErrorKind::Address(_)
                    | TransportErrorKind::BlockedAddress(_)
                    | TransportErrorKind::Tls
                    | TransportErrorKind::TooLarge(_)
                    | TransportErrorKind::Start
            ),
            Self::Server(refused) => match refused.kind {
                ServerErrorKind::RateLimited { .. } => true,
                // A server that recovers soon says when to retry; a handler that failed fails
                // again.
                ServerErrorKind::Internal => {
                    refused.retry_after().is_some() || matches!(refused.status, Some(502..=504))
                }
                _ => false,
            },
            Self::Client(ClientError::TimedOut(_)) => true,
            _ => false,
        }
    }
}

impl ServerError {
    pub(crate) fn of(error: ErrorObject, status: Option<u16>) -> Self {
        let retry_after = retry_after(error.data.as_ref());
        let is_cancelled = is_of_cancelled_task(error.data.as_ref());
        let kind = match (error.code, status) {
            (_, Some(401)) => ServerErrorKind::Unauthorized,
            (_, Some(403)) => ServerErrorKind::Forbidden,
            (429, _) | (_, Some(429)) => ServerErrorKind::RateLimited { retry_after },
            (code::METHOD_NOT_FOUND, _) => ServerErrorKind::MethodNotFound,
            (code::RESOURCE_NOT_FOUND, _) => ServerErrorKind::NotFound,
            (code::MISSING_CAPABILITY, _) => ServerErrorKind::MissingCapability,
            (code::INTERNAL, _) if is_cancelled => ServerErrorKind::TaskCancelled,
            (code::INTERNAL, _) => ServerErrorKind::Internal,
            _ => ServerErrorKind::Request,
        };
        Self { code: error.code, message: error.message, data: error.data, kind, status }
    }

    /// Marks the error as the outcome of a task, which is terminal and not worth a retry.
    pub(crate) fn of_task(mut self) -> Self {
        if matches!(self.kind, ServerErrorKind::Internal | ServerErrorKind::RateLimited { .. }) {
            self.kind = ServerErrorKind::TaskFailed;
        }
        self
    }

    /// Returns the delay before a retry, if the server names one.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ServerErrorKind::RateLimited { retry_after } => retry_after,
            ServerErrorKind::Internal => retry_after(self.data.as_ref()),
            _ => None,
        }
    }

    pub(crate) fn plain(kind: ServerErrorKind, code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, kind, status: None }
    }
}

/// Returns whether this is the error data of a cancelled task.
pub(crate) fn is_of_cancelled_task(data: Option<&RawJson>) -> bool {
    let data = data.and_then(|data| serde_json::from_str(data.get()).ok());
    let data: serde_json::Value = data.unwrap_or_default();
    data["status"] == "cancelled"
}

fn retry_after(data: Option<&RawJson>) -> Option<Duration> {
    let data: serde_json::Value = serde_json::from_str(data?.get()).ok()?;
    data.get("retryAfterMs").and_then(serde_json::Value::as_u64).map(Duration::from_millis)
}

impl From<ServerError> for Error {
    fn from(refused: ServerError) -> Self {
        Self::Server(refused)
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        match error.kind() {
            TransportErrorKind::Token(error) => ClientError::NoToken(error.clone()).into(),
            _ => Self::Transport(error),
        }
    }
}

impl From<ClientError> for Error {
    fn from(why: ClientError) -> Self {
        Self::Client(why)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(refused) => refused.fmt(f),
            Self::ProtocolViolation(broke) => {
                write!(
                    f,
                    "the server violated the protocol: {}; report it to its operator",
                    broke.what
                )
            }
            Self::Transport(error) => error.fmt(f),
            Self::Client(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server returned error {}: {}", self.code, self.message)?;
        match self.kind {
            ServerErrorKind::Unauthorized => f.write_str("; pass an access token"),
            ServerErrorKind::RateLimited { retry_after: Some(after) } => {
                write!(f, "; retry in {} ms", after.as_millis())
            }
            ServerErrorKind::MissingCapability => {
                f.write_str("; set an input handler that declares it")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(after) => write!(
                f,
                "no response within {} ms, so the request was cancelled; raise its timeout",
                after.as_millis()
            ),
            Self::TooManyRounds(most) => {
                write!(
                    f,
                    "the server requested input in more than {most} rounds; raise `max_rounds` if that is expected"
                )
            }
            Self::TooManyPages(most) => {
                write!(
                    f,
                    "the list has more than {most} pages or entries; raise `max_pages` or `max_entries`"
                )
            }
            Self::CursorLoop => f.write_str(
                "the list repeats a pagination cursor; report it to the operator of the server",
            ),
            Self::Unanswered(what) => write!(f, "{what}; set an input handler that responds to it"),
            Self::InvalidInputResponse(why) => {
                write!(f, "the response of the input handler is invalid: {why}")
            }
            Self::BadArguments(why) => {
                write!(f, "the arguments are not a JSON object: {why}; pass a struct or a map")
            }
            Self::NoCommonVersion(theirs) => write!(
                f,
                "the server supports protocol version {}, which this client does not; upgrade one of them",
                theirs.join(", ")
            ),
            Self::NotOffered(what) => write!(f, "{what}"),
            Self::MaybeExecuted(tool) => write!(
                f,
                "the call of `{tool}` was sent and may have executed; check its effect before you repeat it"
            ),
            Self::Incomplete(why) => write!(f, "the partial results are incomplete: {why}"),
            Self::CallStore(why) => write!(f, "the call store cannot be read or written: {why}"),
            Self::WrongAccount(why) => write!(f, "{why}; resume it with the client that saved it"),
            Self::SchemaViolated(why) => {
                write!(f, "the result does not match the output schema: {why}")
            }
            Self::NoToken(why) => why.fmt(f),
            Self::Closed => f.write_str("the client is closed; connect a new one"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Transport(error) => Some(error),
            _ => None,
        }
    }
}
