//! A connection: the link to the server and the version rules in use.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_protocol::{
    Incoming, OnDisconnect, VersionRules,
    era::client::{self, Outgoing, client_codec},
};
use outlive_transport::client::{child::Process, http::HttpLink, pipe::PipeLink};
use outlive_wire::{Method, RequestId};
use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use super::{
    env::ClientEnv,
    error::{Error, Result},
    relay::{OpenInputs, ReplyPath},
    server_info::ServerInfo,
};

/// The header that names a legacy session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A connection: server, version rules and link.
pub(crate) struct Connection {
    pub(crate) env: Arc<ClientEnv>,
    pub(crate) rules: &'static VersionRules,
    pub(crate) server: ServerInfo,
    pub(crate) link: Link,
    /// Input requests of the server that are open.
    pub(crate) inputs: Arc<OpenInputs>,
    /// Background tasks that end with the connection.
    pub(crate) background: Mutex<Vec<AbortHandle>>,
}

pub(crate) enum Link {
    Http { link: HttpLink, session: Option<HeaderValue> },
    Pipe { pipe: Arc<PipeLink>, process: tokio::sync::Mutex<Option<Process>> },
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.drain(..).for_each(|task| task.abort());
        // A connection whose rules changed shares its input requests with its successor.
        if Arc::strong_count(&self.inputs) == 1 {
            self.inputs.close();
        }
    }
}

impl ReplyPath for Connection {
    fn write_response(&self, id: &RequestId, result: &RawValue, task: Option<&str>) -> Bytes {
        let mut out = Vec::new();
        client_codec(self.rules.era).write_response(self.rules, id, result, task, &mut out);
        Bytes::from(out)
    }

    fn send(self: Arc<Self>, message: Bytes) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
        Box::pin(async move { self.tell(message).await })
    }
}

impl Connection {
    /// Creates a connection whose server is not known yet.
    pub(crate) fn bare(env: &Arc<ClientEnv>, rules: &'static VersionRules, link: Link) -> Self {
        Self {
            env: Arc::clone(env),
            rules,
            server: ServerInfo::default(),
            link,
            inputs: Arc::default(),
            background: Mutex::default(),
        }
    }

    /// Returns a connection over the same link with the rules of another protocol version.
    pub(crate) fn by_rules_of(&self, rules: &'static VersionRules) -> Option<Arc<Self>> {
        self.agreed(rules, self.server.clone(), None)
    }

    /// Returns a connection over the same link with the current server information and session.
    /// Returns `None` if another task is closing the link.
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
        let (env, inputs) = (Arc::clone(&self.env), Arc::clone(&self.inputs));
        let background = Mutex::new(background);
        Some(Arc::new(Self { env, rules, server, link, inputs, background }))
    }

    pub(crate) fn is_open(&self) -> bool {
        match &self.link {
            Link::Http { .. } => true,
            Link::Pipe { pipe, .. } => !pipe.is_closed(),
        }
    }

    /// Ties a background task to the connection.
    pub(crate) fn keep(&self, task: AbortHandle) {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Returns the headers of an HTTP request on this connection.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = self.env.base_headers();
        if let Link::Http { session: Some(session), .. } = &self.link {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    /// Sends a message that has no response.
    pub(crate) async fn tell(&self, message: Bytes) -> Result<()> {
        match &self.link {
            Link::Pipe { pipe, .. } => Ok(pipe.send(message).await?),
            Link::Http { link, .. } => {
                let mut headers = self.headers();
                client::version_header(self.rules, &mut headers);
                let mut reply = link.post(headers, message).await?;
                let _ = reply.bytes().await;
                Ok(())
            }
        }
    }

    /// Writes and sends a notification.
    pub(crate) async fn notify(&self, method: Method, params: &str) -> Result<()> {
        self.tell(notification(method, params)).await
    }

    /// Responds to a request from the server.
    pub(crate) async fn reply(
        &self,
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
        // Modern protocol versions have no requests from servers, so the codec writes nothing.
        if out.is_empty() {
            return Ok(());
        }
        self.tell(Bytes::from(out)).await
    }

    /// Cancels a request at the server without waiting for the notification to be sent.
    pub(crate) fn withdraw(self: &Arc<Self>, id: u64, reason: &str) {
        let reason = serde_json::Value::from(reason);
        let message =
            notification(Method::Cancelled, &format!(r#"{{"requestId":{id},"reason":{reason}}}"#));
        match &self.link {
            Link::Pipe { pipe, .. } => {
                pipe.send_now(message);
            }
            // Closing the stream has already cancelled the request.
            Link::Http { .. } if self.rules.on_disconnect == OnDisconnect::Cancel => {}
            Link::Http { .. } => {
                let here = Arc::clone(self);
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        let _ = here.tell(message).await;
                    });
                }
            }
        }
    }

    /// Closes the connection: deletes a legacy session if `ends_session`, or waits for the process to
    /// exit.
    pub(super) async fn end(&self, ends_session: bool) {
        self.inputs.close();
        self.background
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .for_each(|task| task.abort());
        match &self.link {
            Link::Http { link, session: Some(_) } if ends_session => {
                let mut headers = self.headers();
                client::version_header(self.rules, &mut headers);
                let deleting =
                    tokio::time::timeout(self.env.limits().connect_timeout, link.delete(headers));
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

    /// Encodes a request.
    pub(crate) fn write(&self, request: &Outgoing<'_>) -> Bytes {
        let mut out = Vec::with_capacity(256 + request.params.len());
        client_codec(self.rules.era).write(self.rules, request, &self.env.declared, &mut out);
        Bytes::from(out)
    }
}

fn notification(method: Method, params: &str) -> Bytes {
    let method = method.as_str();
    let params = if params.is_empty() { String::new() } else { format!(r#","params":{params}"#) };
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#))
}

/// Error for a message that is not a response.
pub(crate) fn unexpected(message: &Incoming) -> Error {
    Error::broke(format!("expected a response, got {:?}", message.kind()))
}
