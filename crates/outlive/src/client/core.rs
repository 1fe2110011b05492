//! A client and the connection it has at the moment.
//!
//! The connection may be made anew at any time: a session that the server has forgotten, a process
//! that died. What outlives it stands here.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_protocol::{
    Incoming, OnDisconnect, VersionRules,
    era::client::{self, Declared, Outgoing, client_codec},
};
use outlive_transport::client::{
    TokenRequest, child::Process, http::HttpLink, http::HttpOptions, pipe::PipeLink,
};
use outlive_wire::{Implementation, Method, RequestId, ServerCapabilities};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::{task::AbortHandle, time::Instant};

use crate::hex::hex;

use super::{
    call_store::CallStore,
    dispatch::Dispatch,
    error::{ClientError, Error, Result},
    handshake::{self, VersionCache},
    limits::ClientLimits,
    target::Target,
};

/// The header that names a legacy session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// How many headers a call has beside those of the settings.
const USUAL_HEADERS: usize = 10;

/// Everything that was decided before connecting.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: ClientLimits,
    pub(crate) pinned: Option<&'static VersionRules>,
    pub(crate) eras: VersionCache,
    pub(crate) older_first: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) http: HttpOptions,
    pub(crate) with_http_sse: bool,
    pub(crate) knows_keys: Option<bool>,
    pub(crate) account: Option<String>,
    pub(crate) notebook: Option<Arc<dyn CallStore>>,
}

pub(crate) struct Core {
    pub(crate) target: Target,
    pub(crate) settings: Settings,
    pub(crate) declared: Declared,
    pub(crate) dispatch: Arc<Dispatch>,
    ids: AtomicU64,
    now: RwLock<Option<Arc<Established>>>,
    connecting: tokio::sync::Mutex<()>,
    closed: AtomicBool,
    /// Whether the program at the other end of the pipe turned out to want a handshake.
    older: AtomicBool,
    /// Whether the server is taken for one that wants a handshake before that is known.
    older_first: AtomicBool,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(
        target: Target,
        settings: Settings,
        declared: Declared,
        dispatch: Arc<Dispatch>,
    ) -> Self {
        let older_first = settings.older_first.into();
        Self {
            target,
            settings,
            declared,
            dispatch,
            ids: AtomicU64::new(1),
            now: RwLock::new(None),
            connecting: tokio::sync::Mutex::new(()),
            closed: false.into(),
            older: false.into(),
            older_first,
        }
    }

    /// An id that no request of this client has had.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> &ClientLimits {
        &self.settings.limits
    }

    /// The connection; made if there is none.
    pub(crate) async fn established(self: &Arc<Self>) -> Result<Arc<Established>> {
        match self.current().filter(|now| now.is_open()) {
            Some(now) => Ok(now),
            None => self.renew(self.current().as_ref()).await,
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Established>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects again, unless somebody else has done so since.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        stale: Option<&Arc<Established>>,
    ) -> Result<Arc<Established>> {
        let _alone = self.connecting.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(ClientError::Closed.into());
        }
        if let Some(now) = self.current().filter(|now| now.is_open())
            && !stale.is_some_and(|stale| Arc::ptr_eq(stale, &now))
        {
            return Ok(now);
        }
        // In a box, so that calls on a connection that is there have no room for making one.
        let made = Box::pin(handshake::connect(self)).await?;
        self.dispatch.reconnected(stale.is_some());
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        Ok(made)
    }

    pub(crate) fn was_older(&self) -> bool {
        self.older.load(Ordering::Acquire)
    }

    pub(crate) fn note_older(&self) {
        self.older.store(true, Ordering::Release);
    }

    /// Whether the server is to be taken for an older one until it turns out otherwise.
    pub(crate) fn tries_older_first(&self) -> bool {
        self.older_first.load(Ordering::Acquire)
    }

    /// It has turned out otherwise.
    pub(crate) fn note_not_older(&self) {
        self.older_first.store(false, Ordering::Release);
    }

    /// Speaks by other rules over the same connection: the server said which.
    pub(crate) fn adopt(&self, made: Arc<Established>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }

    /// Ends the connection. Nothing can be asked afterwards.
    pub(crate) async fn close(&self) {
        let _alone = self.connecting.lock().await;
        self.closed.store(true, Ordering::Release);
        let last = self.now.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            last.end(self).await;
        }
    }

    /// As whom requests are made now: a digest of their token.
    pub(crate) async fn caller(&self) -> Result<Option<String>> {
        let (Some(tokens), Target::Url(url)) = (&self.settings.http.tokens, &self.target) else {
            return Ok(None);
        };
        let token = tokens.token(&TokenRequest::new(&http::Method::POST, url)).await;
        let token = token.map_err(ClientError::NoToken)?;
        Ok(token.map(|token| hex(&Sha256::digest(token.value().expose()))))
    }

    /// Until when a request that may take so long has time after all: somebody may be logging in, and
    /// that is not the server's time.
    pub(crate) fn more_time(&self, span: Duration) -> Option<Instant> {
        self.settings.http.tokens.as_ref()?.more_time(span)
    }

    /// The headers that every HTTP request has, whatever it says.
    pub(crate) fn base_headers(&self) -> HeaderMap {
        let mut headers = self.settings.headers.clone();
        // For those that a call has, so that they are put into one piece of memory.
        headers.reserve(USUAL_HEADERS);
        headers
    }
}

/// A connection: who is there, by which rules, and the way.
pub(crate) struct Established {
    pub(crate) rules: &'static VersionRules,
    pub(crate) server: ServerInfo,
    pub(crate) link: Link,
    /// What runs for as long as the connection does.
    pub(crate) background: Mutex<Vec<AbortHandle>>,
}

/// What a server said of itself. Nothing is decided by who it says it is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Who it is, if it says so.
    pub info: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it, for the model.
    pub instructions: Option<String>,
    /// Whether it has said so at all: a server may be spoken to without asking it first.
    pub known: bool,
}

pub(crate) enum Link {
    Http { link: HttpLink, session: Option<HeaderValue> },
    Pipe { pipe: Arc<PipeLink>, process: tokio::sync::Mutex<Option<Process>> },
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Drop for Established {
    fn drop(&mut self) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.drain(..).for_each(|task| task.abort());
    }
}

impl Established {
    /// A connection of which nothing is known yet.
    pub(crate) fn bare(rules: &'static VersionRules, link: Link) -> Self {
        Self { rules, server: ServerInfo::default(), link, background: Mutex::default() }
    }

    /// The same way, by the rules of another revision.
    pub(crate) fn by_rules_of(&self, rules: &'static VersionRules) -> Option<Arc<Self>> {
        self.agreed(rules, self.server.clone(), None)
    }

    /// The same way, to a server of which more is known; in a session if one was opened. `None` if
    /// somebody else is ending it.
    pub(crate) fn agreed(
        &self,
        rules: &'static VersionRules,
        server: ServerInfo,
        opened: Option<HeaderValue>,
    ) -> Option<Arc<Self>> {
        let link = match &self.link {
            Link::Http { link, session } => {
                Link::Http { link: link.clone(), session: opened.or_else(|| session.clone()) }
            }
            Link::Pipe { pipe, process } => Link::Pipe {
                pipe: Arc::clone(pipe),
                process: tokio::sync::Mutex::new(process.try_lock().ok()?.take()),
            },
        };
        let background =
            std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        Some(Arc::new(Self { rules, server, link, background: Mutex::new(background) }))
    }

    pub(crate) fn is_open(&self) -> bool {
        match &self.link {
            Link::Http { .. } => true,
            Link::Pipe { pipe, .. } => !pipe.is_closed(),
        }
    }

    /// Keeps a task for as long as the connection.
    pub(crate) fn keep(&self, task: AbortHandle) {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// The headers of an HTTP request in this connection.
    pub(crate) fn headers(&self, core: &Core) -> HeaderMap {
        let mut headers = core.base_headers();
        if let Link::Http { session: Some(session), .. } = &self.link {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    /// Sends a message that wants no answer.
    pub(crate) async fn tell(&self, core: &Core, message: Bytes) -> Result<()> {
        match &self.link {
            Link::Pipe { pipe, .. } => Ok(pipe.send(message).await?),
            Link::Http { link, .. } => {
                let mut headers = self.headers(core);
                client::version_header(self.rules, &mut headers);
                let mut reply = link.post(headers, message).await?;
                let _ = reply.bytes().await;
                Ok(())
            }
        }
    }

    /// Writes and sends a notification.
    pub(crate) async fn notify(&self, core: &Core, method: Method, params: &str) -> Result<()> {
        self.tell(core, notification(method, params)).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(
        &self,
        core: &Core,
        id: &RequestId,
        answer: std::result::Result<&RawValue, (i32, &str)>,
        task: Option<&str>,
    ) -> Result<()> {
        let mut out = Vec::new();
        match answer {
            Ok(result) => {
                client_codec(self.rules.era).write_response(self.rules, id, result, task, &mut out)
            }
            Err((code, message)) => {
                let error = serde_json::json!({"code": code, "message": message});
                out = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_raw().get())
                    .into_bytes();
            }
        }
        // A revision in which servers do not ask has no words for an answer.
        if out.is_empty() {
            return Ok(());
        }
        self.tell(core, Bytes::from(out)).await
    }

    /// Says that nobody waits for a request any more. From a place that cannot wait.
    pub(crate) fn withdraw(self: &Arc<Self>, core: &Arc<Core>, id: u64, reason: &str) {
        let reason = serde_json::Value::from(reason);
        let message =
            notification(Method::Cancelled, &format!(r#"{{"requestId":{id},"reason":{reason}}}"#));
        match &self.link {
            Link::Pipe { pipe, .. } => {
                pipe.send_now(message);
            }
            // Closing the stream has said it already.
            Link::Http { .. } if self.rules.on_disconnect == OnDisconnect::Cancel => {}
            Link::Http { .. } => {
                let (here, core) = (Arc::clone(self), Arc::clone(core));
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        let _ = here.tell(&core, message).await;
                    });
                }
            }
        }
    }

    /// Ends it properly: a legacy session is deleted, a process is given time.
    async fn end(&self, core: &Core) {
        self.background
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .for_each(|task| task.abort());
        match &self.link {
            Link::Http { link, session: Some(_) } => {
                let mut headers = self.headers(core);
                client::version_header(self.rules, &mut headers);
                let deleting =
                    tokio::time::timeout(core.limits().connect_timeout, link.delete(headers));
                let _ = deleting.await;
            }
            Link::Http { .. } => {}
            Link::Pipe { pipe, process } => {
                pipe.close();
                if let Some(process) = process.lock().await.take() {
                    process.end().await;
                }
            }
        }
    }

    /// Writes a request: its bytes, and its headers where it has some.
    pub(crate) fn write(&self, core: &Core, request: &Outgoing<'_>) -> Bytes {
        let mut out = Vec::with_capacity(256 + request.params.len());
        client_codec(self.rules.era).write(self.rules, request, &core.declared, &mut out);
        Bytes::from(out)
    }
}

fn notification(method: Method, params: &str) -> Bytes {
    let method = method.as_str();
    let params = if params.is_empty() { String::new() } else { format!(r#","params":{params}"#) };
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#))
}

/// A message that was no answer where one was due.
pub(crate) fn unexpected(message: &Incoming) -> Error {
    Error::broke(format!("it sent something else than an answer: {:?}", message.kind()))
}
