//! A client and the connection it has at the moment.
//!
//! The connection may be made anew at any time: a session that the server has forgotten, a process
//! that died. What outlives it stands here.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    env::ClientEnv,
    error::{ClientError, Result},
    handshake,
    link::Connection,
};

/// A client of one server. Clones are the same client; it can be used from everywhere at once.
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

/// The connection that a client has now, and how it is made anew.
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

/// What outlives the connections.
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

    /// The connection; made if there is none.
    pub(crate) async fn established(self: &Arc<Self>) -> Result<Arc<Connection>> {
        match self.current().filter(|now| now.is_open()) {
            Some(now) => Ok(now),
            None => self.renew(self.current().as_ref()).await,
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects again, unless somebody else has done so since.
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
        // In a box, so that calls on a connection that is there have no room for making one.
        let made = Box::pin(handshake::connect(&self.env)).await?;
        self.dispatch.reconnected(stale.is_some());
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Speaks by other rules over the same connection: the server said which.
    pub(crate) fn adopt(&self, made: Arc<Connection>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }

    /// Ends the connection. Nothing can be asked afterwards.
    pub(crate) async fn close(&self) {
        let _alone = self.connecting.lock().await;
        self.closed.store(true, Ordering::Release);
        let last = self.now.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            last.end().await;
        }
    }
}
