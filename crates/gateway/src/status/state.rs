//! The state of an upstream, with its reason and its remedy.

use std::{borrow::Cow, fmt, time::Duration};

use outlive::client::{ClientError, Error, ServerErrorKind, transport::TransportErrorKind};
use serde::{Deserialize, Serialize};

use crate::excerpt::excerpt;

/// State of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum State {
    /// No upstream connection is open, and the last one ended without a problem.
    #[default]
    Idle,
    /// The first upstream connection is being opened.
    Starting,
    /// An upstream connection is open.
    Ready,
    /// The upstream requires a login or a token.
    NeedsLogin,
    /// The upstream refuses the credential.
    Refused,
    /// The upstream cannot be reached.
    Unreachable,
    /// The process of the upstream exits, or sends invalid messages.
    Failing,
    /// The upstream has no protocol version in common with the gateway.
    Incompatible,
    /// Definitions of tools changed, and the changes are not accepted.
    Changed,
    /// All processes of the upstream are in use.
    Full,
    /// The settings of the upstream cannot be used.
    Misconfigured,
}

impl State {
    /// Returns whether the upstream works or was not needed yet.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Idle | Self::Starting | Self::Ready | Self::Changed | Self::Full)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NeedsLogin => "needs login",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Failing => "failing",
            Self::Incompatible => "incompatible",
            Self::Changed => "changed",
            Self::Full => "full",
            Self::Misconfigured => "misconfigured",
        })
    }
}

/// Reason why an upstream cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) state: State,
    /// One sentence without the name of the upstream.
    pub(crate) reason: String,
    pub(crate) remedy: Cow<'static, str>,
    /// Whether it concerns only the principal of the call, such as a missing login of a user.
    pub(crate) is_of_principal: bool,
}

impl Problem {
    pub(crate) fn new(
        state: State,
        reason: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { state, reason: reason.into(), remedy: remedy.into(), is_of_principal: false }
    }

    /// Restricts the problem to the principal of the call. Other principals do not see it.
    pub(crate) fn for_principal(self) -> Self {
        Self { is_of_principal: true, ..self }
    }

    /// Describes a handshake or a list that took longer than `timeout`.
    pub(crate) fn slow(timeout: Duration) -> Self {
        let reason = format!("it did not complete its handshake within {} s", timeout.as_secs());
        Self::new(State::Failing, reason, "raise `start_timeout`, or check its log")
    }

    /// Describes why no upstream connection could be opened, or why one was lost.
    pub(crate) fn of_error(error: &Error) -> Self {
        match error {
            Error::Server(server) => Self::of_server_error(server.kind, &server.message),
            Error::ProtocolViolation(violation) => Self::new(
                State::Failing,
                format!("it violates the protocol: {}", excerpt(&violation.what)),
                "report it to its operator",
            ),
            Error::Transport(error) => Self::of_transport(error.kind(), &error.to_string()),
            Error::Client(error) => Self::of_client_error(error),
            other => Self::new(State::Unreachable, excerpt(&other.to_string()), CHECK),
        }
    }

    fn of_server_error(kind: ServerErrorKind, message: &str) -> Self {
        let message = excerpt(message);
        match kind {
            ServerErrorKind::Unauthorized => Self::new(
                State::NeedsLogin,
                "it requires a valid access token",
                "set `token_env` or `token_file` to a valid token",
            ),
            ServerErrorKind::Forbidden => Self::new(
                State::Refused,
                format!("it refuses the credential: {message}"),
                "use a credential with access",
            ),
            ServerErrorKind::RateLimited { .. } => {
                Self::new(State::Full, "it limits the rate of requests", "retry later")
            }
            _ => Self::new(State::Failing, format!("it returned an error: {message}"), CHECK),
        }
    }

    fn of_transport(kind: &TransportErrorKind, text: &str) -> Self {
        let text = excerpt(text);
        match kind {
            TransportErrorKind::Start => {
                Self::new(State::Misconfigured, text, "install the program or correct `command`")
            }
            TransportErrorKind::Address(_) | TransportErrorKind::BlockedAddress(_) => {
                Self::new(State::Misconfigured, text, "correct `url`")
            }
            TransportErrorKind::Status(404 | 405) => Self::new(
                State::Incompatible,
                "its address is not that of an MCP endpoint",
                "correct the path of `url`",
            ),
            TransportErrorKind::TooLarge(_) => {
                Self::new(State::Failing, text, "raise `max_result`, or report it to its operator")
            }
            TransportErrorKind::Malformed(_) => {
                Self::new(State::Failing, text, "report it to its operator")
            }
            _ => Self::new(State::Unreachable, text, CHECK),
        }
    }

    fn of_client_error(error: &ClientError) -> Self {
        match error {
            ClientError::NoCommonVersion(versions) => Self::new(
                State::Incompatible,
                format!("it supports only protocol version {}", excerpt(&versions.join(", "))),
                "upgrade it, or this program",
            ),
            ClientError::TimedOut(after) => Self::new(
                State::Unreachable,
                format!("it did not respond within {} s", after.as_secs()),
                CHECK,
            ),
            ClientError::NoToken(error) => Self::new(
                State::NeedsLogin,
                excerpt(&error.to_string()),
                "set `token_env` or `token_file` to a valid token",
            ),
            other => Self::new(State::Failing, excerpt(&other.to_string()), CHECK),
        }
    }
}

const CHECK: &str = "check that it runs, with `outlive upstreams check`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_a_client_error_names_state_and_remedy() {
        let versions = ClientError::NoCommonVersion(vec!["2031-01-01".to_owned()]);
        let problem = Problem::of_error(&versions.into());
        assert_eq!(problem.state, State::Incompatible);
        assert!(problem.reason.contains("2031-01-01"));
        let slow = Problem::of_error(&ClientError::TimedOut(Duration::from_secs(3)).into());
        assert_eq!((slow.state, &*slow.remedy), (State::Unreachable, CHECK));
    }

    #[test]
    fn state_is_written_in_kebab_case_and_shown_with_spaces() {
        assert_eq!(serde_json::to_string(&State::NeedsLogin).unwrap(), r#""needs-login""#);
        assert_eq!(State::NeedsLogin.to_string(), "needs login");
        assert!(State::Idle.is_usable() && !State::Failing.is_usable());
    }
}
