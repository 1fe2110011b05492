//! Negotiation with a server of one era: `server/discover` or `initialize`.

use std::sync::Arc;

use outlive_protocol::{
    Incoming, IncomingKind, VersionRules,
    era::client::{self, ResultContext, client_codec},
};
use outlive_transport::client::TransportErrorKind;
use outlive_wire::{
    DiscoverResult, ErrorObject, Implementation, InitializeRequestParams, InitializeResult, Meta,
    Method, code,
};

use crate::client::{
    attempt::{Waiting, Wanted, once, read, supported},
    env::ClientEnv,
    error::{ClientError, Error, Result},
    exchange::{Exchange, Failed},
    incoming,
    link::{Connection, Link},
    server_info::ServerInfo,
};

/// Outcome of `server/discover`.
pub(super) enum Tried {
    /// The server is modern.
    Modern(Arc<Connection>),
    /// The server is legacy, or its era is unknown.
    Not,
}

/// Returns whether a failure does not reveal the era, so that trying the other era is pointless.
pub(super) fn says_nothing(failed: &Failed) -> bool {
    match failed {
        Failed::Status { status, .. } => !matches!(status, 400 | 404 | 405 | 406 | 415),
        Failed::SessionGone => false,
        Failed::Error(error) => matches!(error, Error::Transport(_) | Error::Client(_)),
    }
}

/// Sends `server/discover`, as in 2026-07-28.
pub(super) async fn try_modern(
    env: &Arc<ClientEnv>,
    link: Link,
    rules: &'static VersionRules,
) -> Result<Tried> {
    let is_pipe = matches!(link, Link::Pipe { .. });
    let mut here = Arc::new(Connection::bare(env, rules, link));
    let limits = env.limits();
    let patience = if is_pipe { limits.probe_timeout } else { limits.request_timeout };
    let mut wanted = Wanted::new(env, Method::Discover, "{}");
    wanted.waiting = Waiting::within(env, patience);
    for _ in 0..3 {
        let error = match once(&here, &wanted).await {
            Ok(answered) => match answered.message.kind() {
                IncomingKind::Error { error, .. } => error.clone(),
                _ => match discovered(rules, &answered.message) {
                    Some(found) => return agreed(env, &here, &found),
                    None => return Ok(Tried::Not),
                },
            },
            Err(Failed::Status { error: Some(error), .. })
                if client::is_modern_error(error.code) =>
            {
                error
            }
            Err(failed) if says_nothing(&failed) && !is_pipe => return Err(failed.into()),
            // With a pinned version, the client has no other era to try after a missing response.
            Err(Failed::Error(error))
                if is_pipe && (env.settings.pinned.is_some() || !is_silence(&error)) =>
            {
                return Err(error);
            }
            Err(_) => return Ok(Tried::Not),
        };
        match error.code {
            code::UNSUPPORTED_VERSION => match next_version(env, &error)? {
                // The server lists only legacy versions, so it expects a handshake.
                None => return Ok(Tried::Not),
                Some(rules) => here = here.by_rules_of(rules).ok_or(ClientError::Closed)?,
            },
            // The error code is modern, so the server is modern and rejects only `server/discover`.
            refused if client::is_modern_error(refused) => {
                return Ok(Tried::Modern(here));
            }
            _ => return Ok(Tried::Not),
        }
    }
    Err(Error::broke("it rejects the protocol versions that it lists as supported"))
}

/// Returns whether the server timed out or closed the pipe, as legacy servers do on unknown
/// requests.
fn is_silence(error: &Error) -> bool {
    match error {
        Error::Client(ClientError::TimedOut(_)) | Error::ProtocolViolation(_) => true,
        Error::Transport(error) => {
            matches!(error.kind(), TransportErrorKind::Closed | TransportErrorKind::ConnectionLost)
        }
        _ => false,
    }
}

fn next_version(env: &ClientEnv, error: &ErrorObject) -> Result<Option<&'static VersionRules>> {
    let theirs = supported(error);
    let named = theirs.iter().map(String::as_str);
    match VersionRules::newest_of(named) {
        Some(rules) if !rules.sessions => Ok(Some(rules)),
        Some(_) if env.settings.pinned.is_none() => Ok(None),
        _ => Err(ClientError::NoCommonVersion(theirs).into()),
    }
}

fn discovered(rules: &VersionRules, message: &Incoming) -> Option<DiscoverResult> {
    let asked = ResultContext { method: Some(Method::Discover), holds_tasks: false };
    let result = message.result()?;
    client_codec(rules.era).read(&asked, result).ok()?;
    serde_json::from_str(result).ok()
}

/// Selects the protocol version and reads the server information of a `server/discover` result.
fn agreed(env: &ClientEnv, here: &Connection, found: &DiscoverResult) -> Result<Tried> {
    let rules = VersionRules::newest_of(found.supported_versions.iter().map(String::as_str));
    let info: Option<Implementation> = found
        .meta
        .as_ref()
        .and_then(|meta| meta.get(Meta::SERVER_INFO))
        .and_then(|info| serde_json::from_value(info.clone()).ok());
    let server = ServerInfo {
        info,
        capabilities: found.capabilities.clone(),
        instructions: found.instructions.clone(),
        known: true,
    };
    let spoken = match rules {
        // The server responded, so it supports the version of the request, whatever it lists.
        Some(rules) if rules.sessions => here.rules,
        Some(rules) => rules,
        None if found.supported_versions.is_empty() => here.rules,
        None => return Err(ClientError::NoCommonVersion(found.supported_versions.clone()).into()),
    };
    if env.settings.pinned.is_some_and(|pinned| pinned.version != spoken.version) {
        return Err(ClientError::NoCommonVersion(found.supported_versions.clone()).into());
    }
    let made = here.agreed(spoken, server, None).ok_or(ClientError::Closed)?;
    Ok(Tried::Modern(made))
}

/// Connects with a pinned modern version. The server may lack `server/discover`, which is optional.
pub(super) async fn pinned_modern(
    env: &Arc<ClientEnv>,
    link: Link,
    rules: &'static VersionRules,
) -> Result<Arc<Connection>> {
    let again = match &link {
        Link::Http { link, .. } => Some(Link::Http { link: link.clone(), session: None }),
        Link::Pipe { .. } => None,
    };
    match (try_modern(env, link, rules).await?, again) {
        (Tried::Modern(made), _) => Ok(made),
        (Tried::Not, Some(link)) => Ok(Arc::new(Connection::bare(env, rules, link))),
        (Tried::Not, None) => {
            Err(ClientError::NoCommonVersion(vec!["a legacy version".to_owned()]).into())
        }
    }
}

/// Performs the handshake of a legacy server.
pub(super) async fn shake_hands(
    env: &Arc<ClientEnv>,
    link: Link,
    offered: &'static VersionRules,
) -> Result<Arc<Connection>, Failed> {
    let mut offered = offered;
    let mut here = Arc::new(Connection::bare(env, offered, link));
    for _ in 0..2 {
        let params = InitializeRequestParams {
            protocol_version: offered.version.to_string(),
            capabilities: client_codec(offered.era).capabilities(offered, &env.declared),
            client_info: env.declared.info.clone(),
            meta: None,
        };
        let params =
            serde_json::to_string(&params).map_err(|error| Error::broke(error.to_string()))?;
        let wanted = Wanted::new(env, Method::Initialize, params);
        let (message, session) = initialize(env, &here, &wanted).await?;
        if let IncomingKind::Error { error, .. } = message.kind() {
            // Some servers reject an unknown version and list the versions that they support.
            let named = supported(error);
            let next = VersionRules::newest_of(named.iter().map(String::as_str));
            match next.filter(|rules| rules.sessions && env.settings.pinned.is_none()) {
                Some(rules) if rules.version != offered.version => {
                    offered = rules;
                    here = here.by_rules_of(rules).ok_or(Error::from(ClientError::Closed))?;
                    continue;
                }
                _ => {
                    let (status, error) = (400, Some(error.clone()));
                    return Err(Failed::Status { status, error, retry_after: None });
                }
            }
        }
        let result: InitializeResult = read(message.result().unwrap_or_default())?;
        let rules = VersionRules::find(&result.protocol_version).filter(|rules| rules.sessions);
        let rules = rules.filter(|rules| {
            env.settings.pinned.is_none_or(|pinned| pinned.version == rules.version)
        });
        let Some(rules) = rules else {
            return Err(
                Error::from(ClientError::NoCommonVersion(vec![result.protocol_version])).into()
            );
        };
        let server = ServerInfo {
            info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            known: true,
        };
        let made = here.agreed(rules, server, session).ok_or(Error::from(ClientError::Closed))?;
        made.notify(Method::Initialized, "").await?;
        open_stream(env, &made).await;
        return Ok(made);
    }
    Err(Error::broke("it rejects the protocol versions that it lists as supported").into())
}

/// Sends `initialize`. Returns the response and the session ID.
async fn initialize(
    env: &Arc<ClientEnv>,
    here: &Arc<Connection>,
    wanted: &Wanted,
) -> Result<(Incoming, Option<http::HeaderValue>), Failed> {
    let request = outlive_protocol::era::client::Outgoing {
        id: Some(env.next_id()),
        method: &wanted.method,
        params: &wanted.params,
        ..outlive_protocol::era::client::Outgoing::default()
    };
    let patience = env.limits().request_timeout;
    let talking = async {
        let mut exchange = Exchange::open(here, &request).await?;
        while let Some(message) = exchange.next().await? {
            if exchange.is_answer(&message) {
                exchange.settle();
                return Ok((message, exchange.session.take()));
            }
        }
        Err(Failed::from(Error::broke("it did not respond to `initialize`")))
    };
    match tokio::time::timeout(patience, talking).await {
        Ok(answered) => answered,
        Err(_) => Err(Error::from(ClientError::TimedOut(patience)).into()),
    }
}

/// Opens the standalone stream of a legacy server if the server may send notifications. Waits until
/// the stream is open, so that no notification of the first call is lost.
async fn open_stream(env: &Arc<ClientEnv>, made: &Arc<Connection>) {
    let Link::Http { link, .. } = &made.link else { return };
    let offered = &made.server.capabilities;
    let may_tell = offered.tools.as_ref().is_some_and(|it| it.list_changed == Some(true))
        || offered.prompts.as_ref().is_some_and(|it| it.list_changed == Some(true))
        || offered
            .resources
            .as_ref()
            .is_some_and(|it| it.list_changed == Some(true) || it.subscribe == Some(true))
        || offered.tasks.is_some();
    let takes_input = env.dispatch.answerer().is_some() || env.settings.input_events.is_some();
    if !may_tell && !takes_input {
        return;
    }
    let mut headers = made.headers();
    client::version_header(made.rules, &mut headers);
    let opened = tokio::time::timeout(env.limits().connect_timeout, link.get(headers)).await;
    // Most servers do not offer the stream and respond with 405.
    if let Ok(Ok(stream)) = opened
        && stream.status.is_success()
        && stream.is_events()
    {
        let weak = Arc::downgrade(made);
        let task = tokio::spawn(incoming::run_stream(weak, link.clone(), stream));
        made.keep(task.abort_handle());
    }
}
