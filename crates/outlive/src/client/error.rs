//! Errors of the client: one variant for each thing that its caller can do about a failed request.

use std::{error, fmt, time::Duration};

use outlive_transport::client::{TokenError, TransportError, TransportErrorKind};
use outlive_wire::{ErrorObject, RawJson, code};

/// A result of the client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a client: why a request has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server returned an error. Change the request, or ask for access.
    Server(ServerError),
    /// The server sent something that the protocol does not allow. Report it to its operator.
    ProtocolViolation(ProtocolViolation),
    /// The request or its response was lost on the way. Retry if that is safe:
    /// [`Error::may_have_executed`] says whether the server may have executed the request.
    Transport(TransportError),
    /// The client stopped: a limit, a deadline, or something that only its caller can decide.
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
    /// What the error means for the caller.
    pub kind: ServerErrorKind,
    /// HTTP status of the response.
    pub status: Option<u16>,
}

/// What a server's error means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// The request is not acceptable: see code and message.
    Request,
    /// The server has no such method, or not switched on.
    MethodNotFound,
    /// There is no such resource.
    NotFound,
    /// The server wants a capability that the client did not declare; `data` names it.
    MissingCapability,
    /// A token is missing or not accepted.
    Unauthorized,
    /// The token is accepted, and this is not for its owner.
    Forbidden,
    /// Too much at once; ask again after this time.
    RateLimited {
        /// How long to wait, if the server says so.
        retry_after: Option<Duration>,
    },
    /// The task was cancelled.
    TaskCancelled,
    /// The task failed with this error. It is the outcome of the task: asking again brings it again.
    TaskFailed,
    /// The task does not exist any more: it expired, was purged, or was never this caller's.
    TaskGone,
    /// Something broke at the server.
    Internal,
}

/// Breach of the protocol by a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProtocolViolation {
    /// What the server did.
    pub what: String,
}

/// Why the client stopped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// No answer within the time. The request was cancelled.
    TimedOut(Duration),
    /// The server asked in more rounds than `rounds` allows.
    TooManyRounds(u32),
    /// A list went on for more pages, or more entries, than the limits allow.
    TooManyPages(usize),
    /// The list names a place twice, so it would never end.
    CursorLoop,
    /// A question of the server was not answered: there is no answerer, or it would not.
    Unanswered(String),
    /// An answer of this program's answerer does not fit the question.
    InvalidInputResponse(String),
    /// The arguments cannot be written as a JSON object.
    BadArguments(String),
    /// Neither side speaks a revision that the other knows.
    NoCommonVersion(Vec<String>),
    /// The agreed revision has no words for it, or the server does not offer it.
    NotOffered(String),
    /// The call was sent, this program stopped before it knew what came of it, and the server cannot
    /// tell two calls apart. It may have been done; look before you do it again.
    MaybeExecuted(String),
    /// A stream of partial results ended before it was complete.
    Incomplete(String),
    /// What was saved cannot be read or written.
    CallStore(String),
    /// What was saved belongs to another server or another account.
    WrongAccount(String),
    /// The result does not fit the schema that the server gave for it.
    SchemaViolated(String),
    /// There is no token that the server would take, and the source of tokens cannot get one. Its
    /// error says what to do.
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

    /// Returns the error that the server sent, if the error is the server's.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(refused) => Some(refused),
            _ => None,
        }
    }

    /// Returns what the server's error means, if the error is the server's.
    pub fn kind(&self) -> Option<ServerErrorKind> {
        self.server_error().map(|refused| refused.kind)
    }

    /// Whether the server may have done what was asked, although nobody heard of it.
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

    /// Whether the same may well work a little later.
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
                // A server that is well again soon says so; a handler that failed fails again.
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

    /// The same as the outcome of a task: whatever it says, it does not change any more.
    pub(crate) fn of_task(mut self) -> Self {
        if matches!(self.kind, ServerErrorKind::Internal | ServerErrorKind::RateLimited { .. }) {
            self.kind = ServerErrorKind::TaskFailed;
        }
        self
    }

    /// When to ask again, if the server says so.
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

/// Whether it is the data of the error that stands for a task that was cancelled.
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
                    "the server broke the protocol: {}; report it to its operator",
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
        write!(f, "the server refused ({}): {}", self.code, self.message)?;
        match self.kind {
            ServerErrorKind::Unauthorized => f.write_str("; give the client a token"),
            ServerErrorKind::RateLimited { retry_after: Some(after) } => {
                write!(f, "; try again in {} ms", after.as_millis())
            }
            ServerErrorKind::MissingCapability => {
                f.write_str("; give the client an input handler that declares it")
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
                "no answer within {} ms, and the request was cancelled; raise its time-out if it may take longer",
                after.as_millis()
            ),
            Self::TooManyRounds(most) => {
                write!(
                    f,
                    "the server has asked in more than {most} rounds; raise `rounds` if it may"
                )
            }
            Self::TooManyPages(most) => {
                write!(
                    f,
                    "the list has more than {most} pages or entries; raise the limit if it may"
                )
            }
            Self::CursorLoop => f.write_str("the list leads back to where it was; report it"),
            Self::Unanswered(what) => write!(f, "{what}; give the client an answerer that can"),
            Self::InvalidInputResponse(why) => {
                write!(f, "the answerer's answer does not fit: {why}")
            }
            Self::BadArguments(why) => {
                write!(f, "the arguments are no JSON object: {why}; pass a struct or a map")
            }
            Self::NoCommonVersion(theirs) => write!(
                f,
                "the server speaks {} and this client none of it; upgrade one of them",
                theirs.join(", ")
            ),
            Self::NotOffered(what) => write!(f, "{what}"),
            Self::MaybeExecuted(tool) => write!(
                f,
                "the call of `{tool}` was sent and may have been done; look before you repeat it"
            ),
            Self::Incomplete(why) => write!(f, "the partial results are incomplete: {why}"),
            Self::CallStore(why) => write!(f, "what calls are doing cannot be written down: {why}"),
            Self::WrongAccount(why) => write!(f, "{why}; resume it where it was saved"),
            Self::SchemaViolated(why) => write!(f, "the result does not fit its schema: {why}"),
            Self::NoToken(why) => why.fmt(f),
            Self::Closed => f.write_str("the client is closed; connect another one"),
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
