//! Negotiation over pipes: child processes, in-memory servers, open streams and HTTP+SSE.

use std::sync::Arc;

use outlive_protocol::{Era, Incoming, VersionRules};
use outlive_transport::client::{
    TransportError, TransportErrorKind,
    child::Process,
    http::{HttpLink, HttpSse},
    pipe::{PipeLimits, PipeLink},
};
use tokio::sync::mpsc;

use super::meet::{Tried, pinned_modern, shake_hands, try_modern};
use crate::client::{
    env::ClientEnv,
    error::{ClientError, Result},
    incoming,
    link::{Connection, Link},
    server_info::Handshake,
    target::{Boxed, Ends, OpenedTransport, Target},
};

type Piped = (Link, mpsc::Receiver<Incoming>);

async fn open_pipe(env: &ClientEnv) -> Result<Piped> {
    let limits = env.limits();
    let bounds = PipeLimits {
        message_bytes: limits.max_message_bytes,
        queued: limits.max_queued_notifications,
        invalid: limits.max_invalid_lines,
    };
    let (others, taken) = mpsc::channel(limits.max_queued_notifications.max(1));
    let piped = |pipe: PipeLink, process: Option<Process>| Link::Pipe {
        pipe: Arc::new(pipe),
        process: tokio::sync::Mutex::new(process),
    };
    let link = match &env.target {
        Target::Program(program) => {
            let (pipe, process) = program.start(bounds, others)?;
            piped(pipe, Some(process))
        }
        Target::Server(server) => {
            let (input, output) = tokio::io::split(server.connect().stream);
            piped(PipeLink::lines(input, output, bounds, others), None)
        }
        Target::Open(opened) => piped(join(opened, bounds, others)?, None),
        Target::Custom(custom) => {
            let opened = custom.open().await.map_err(|error| {
                TransportError::unsent(TransportErrorKind::Start).because(error)
            })?;
            piped(join(&opened, bounds, others)?, None)
        }
        Target::Url(_) => return Err(ClientError::Closed.into()),
    };
    Ok((link, taken))
}

/// Returns the link over an open transport, unless it is in use.
fn join(
    opened: &OpenedTransport,
    bounds: PipeLimits,
    others: mpsc::Sender<Incoming>,
) -> Result<PipeLink> {
    match opened.take() {
        Some(Ends::Lines(input, output)) => Ok(PipeLink::lines(input, output, bounds, others)),
        Some(Ends::Messages(source, sink)) => {
            Ok(PipeLink::messages(Boxed(source), Boxed(sink), bounds, others))
        }
        None => Err(ClientError::Closed.into()),
    }
}

/// Continues after a handshake that another process performed.
fn restored(env: &Arc<ClientEnv>, link: Link, handshake: &Handshake) -> Result<Arc<Connection>> {
    let no_rules = || ClientError::NoCommonVersion(vec![handshake.protocol_version.clone()]);
    let rules = VersionRules::find(&handshake.protocol_version).ok_or_else(no_rules)?;
    let made = Connection::bare(env, rules, link);
    Ok(made.agreed(rules, handshake.server.clone(), None).ok_or(ClientError::Closed)?)
}

pub(super) async fn over_pipe(env: &Arc<ClientEnv>) -> Result<Arc<Connection>> {
    let (link, others) = open_pipe(env).await?;
    if let Some(handshake) = env.take_handshake() {
        return Ok(reading(env, restored(env, link, handshake)?, others));
    }
    let is_older = env.was_older();
    let made = match env.settings.pinned {
        Some(pinned) if pinned.sessions => shake_hands(env, link, pinned).await?,
        Some(pinned) => pinned_modern(env, link, pinned).await?,
        None if is_older => shake_hands(env, link, VersionRules::newest(Era::Legacy)).await?,
        None if env.tries_older_first() => match older_first(env, link).await? {
            Some(made) => made,
            None => {
                drop(others);
                return Box::pin(over_pipe(env)).await;
            }
        },
        None => {
            let pipe = match &link {
                Link::Pipe { pipe, .. } => Arc::clone(pipe),
                Link::Http { .. } => return Err(ClientError::Closed.into()),
            };
            let kept = Kept::of(&link).await;
            match try_modern(env, link, VersionRules::newest(Era::Modern)).await? {
                Tried::Modern(made) => {
                    kept.give(&made).await;
                    made
                }
                Tried::Not if pipe.is_closed() => {
                    // A legacy server exited because it does not know `server/discover`.
                    drop((pipe, kept, others));
                    env.note_older();
                    return Box::pin(over_pipe(env)).await;
                }
                Tried::Not => {
                    let link = Link::Pipe { pipe, process: tokio::sync::Mutex::new(None) };
                    let made = shake_hands(env, link, VersionRules::newest(Era::Legacy)).await?;
                    kept.give(&made).await;
                    made
                }
            }
        }
    };
    Ok(reading(env, made, others))
}

/// Starts to read the messages that are not responses.
fn reading(
    env: &ClientEnv,
    made: Arc<Connection>,
    others: mpsc::Receiver<Incoming>,
) -> Arc<Connection> {
    if made.rules.sessions {
        env.note_older();
    }
    let task = tokio::spawn(incoming::run_pipe(Arc::downgrade(&made), others));
    made.keep(task.abort_handle());
    made
}

/// Tries the handshake first with a server that was legacy before. Returns `None` if the server
/// exited during the handshake and must be restarted.
async fn older_first(env: &Arc<ClientEnv>, link: Link) -> Result<Option<Arc<Connection>>> {
    let Link::Pipe { pipe, .. } = &link else { return Err(ClientError::Closed.into()) };
    let (pipe, kept) = (Arc::clone(pipe), Kept::of(&link).await);
    let failed = match shake_hands(env, link, VersionRules::newest(Era::Legacy)).await {
        Ok(made) => {
            kept.give(&made).await;
            return Ok(Some(made));
        }
        Err(failed) => failed,
    };
    env.note_not_older();
    if pipe.is_closed() {
        return Ok(None);
    }
    let link = Link::Pipe { pipe, process: tokio::sync::Mutex::new(None) };
    match try_modern(env, link, VersionRules::newest(Era::Modern)).await? {
        Tried::Modern(made) => {
            kept.give(&made).await;
            Ok(Some(made))
        }
        Tried::Not => Err(failed.into()),
    }
}

/// The process of a pipe, held until the era is known.
struct Kept(Option<Process>);

impl Kept {
    async fn of(link: &Link) -> Self {
        match link {
            Link::Pipe { process, .. } => Self(process.lock().await.take()),
            Link::Http { .. } => Self(None),
        }
    }

    async fn give(self, made: &Connection) {
        if let Link::Pipe { process, .. } = &made.link {
            *process.lock().await = self.0;
        }
    }
}

pub(super) async fn over_http_sse(
    env: &Arc<ClientEnv>,
    link: &HttpLink,
    rules: &'static VersionRules,
) -> Result<Arc<Connection>> {
    let headers = env.base_headers();
    let limits = env.limits();
    let opening = tokio::time::timeout(limits.connect_timeout, HttpSse::open(link, headers));
    let opened = opening.await.map_err(|_| ClientError::TimedOut(limits.connect_timeout))??;
    let (source, sink) = opened.split();
    let bounds = PipeLimits {
        message_bytes: limits.max_message_bytes,
        queued: limits.max_queued_notifications,
        invalid: limits.max_invalid_lines,
    };
    let (others, taken) = mpsc::channel(limits.max_queued_notifications.max(1));
    let pipe = Arc::new(PipeLink::messages(source, sink, bounds, others));
    let link = Link::Pipe { pipe, process: tokio::sync::Mutex::new(None) };
    let made = shake_hands(env, link, rules).await?;
    let task = tokio::spawn(incoming::run_pipe(Arc::downgrade(&made), taken));
    made.keep(task.abort_handle());
    Ok(made)
}
