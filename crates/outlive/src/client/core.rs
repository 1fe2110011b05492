//! The client and its current connection.
//!
//! The connection is replaced if the server forgets the session or its process exits. [`ClientEnv`]
//! holds the state that outlives a connection.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use outlive_transport::client::{TransportError, TransportErrorKind};

use super::{
    env::ClientEnv,
    error::{ClientError, Result},
    handshake,
    link::{Connection, Link},
};

/// Client of one server. Cheap to clone; clones share the connection and can be used concurrently.
///
/// ```no_run
/// use outlive::client::Client;
///
/// # async fn run() -> outlive::client::Result<()> {
/// let client = Client::connect("http://127.0.0.1:8000/mcp").await?;
/// let result = client.call_tool("greet", serde_json::json!({"name": "Ada"})).await?;
/// # let _ = result;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) core: Arc<Core>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.core.target).finish()
    }
}

impl Client {
    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }
}

/// The current connection of a client, and the means to reconnect.
pub(crate) struct Core {
    env: Arc<ClientEnv>,
    now: RwLock<Option<Arc<Connection>>>,
    connecting: tokio::sync::Mutex<()>,
    closed: AtomicBool,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("target", &self.target).finish_non_exhaustive()
    }
}

/// State that outlives the connections.
impl Deref for Core {
    type Target = ClientEnv;

    fn deref(&self) -> &ClientEnv {
        &self.env
    }
}

impl Core {
    pub(crate) fn new(env: ClientEnv) -> Self {
        Self {
            env: Arc::new(env),
            now: RwLock::new(None),
            connecting: tokio::sync::Mutex::new(()),
            closed: false.into(),
        }
    }

    /// Returns the open connection, or connects.
    pub(crate) async fn established(self: &Arc<Self>) -> Result<Arc<Connection>> {
        match self.current().filter(|now| now.is_open()) {
            Some(now) => Ok(now),
            None => self.renew(self.current().as_ref()).await,
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reconnects, unless another task has replaced `stale` in the meantime.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        stale: Option<&Arc<Connection>>,
    ) -> Result<Arc<Connection>> {
        let _alone = self.connecting.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(ClientError::Closed.into());
        }
        if let Some(now) = self.current().filter(|now| now.is_open())
            && !stale.is_some_and(|stale| Arc::ptr_eq(stale, &now))
        {
            return Ok(now);
        }
        let is_pipe = |now: Arc<Connection>| matches!(now.link, Link::Pipe { .. });
        if !self.settings.reconnects && self.current().is_some_and(is_pipe) {
            return Err(TransportError::unsent(TransportErrorKind::Closed).into());
        }
        // Boxed, to keep the futures of calls on an open connection small.
        let made = Box::pin(handshake::connect(&self.env)).await?;
        self.dispatch.reconnected(stale.is_some());
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Switches to a connection over the same link that uses the version rules requested by the
    /// server.
    pub(crate) fn adopt(&self, made: Arc<Connection>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }

    /// Closes the connection, and a legacy session if `ends_session`. Later requests fail with
    /// [`ClientError::Closed`].
    pub(crate) async fn close(&self, ends_session: bool) {
        let _alone = self.connecting.lock().await;
        self.closed.store(true, Ordering::Release);
        let last = self.now.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            last.end(ends_session).await;
        }
    }
}
