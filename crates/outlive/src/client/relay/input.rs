//! Input requests of legacy servers as raw messages, for programs that relay them.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
};

use bytes::Bytes;
use outlive_protocol::{Incoming, era::client::CapabilityClass};
use outlive_wire::{InputRequest, Method, ProgressToken, RawJson, RequestId, code};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::sync::Notify;

use crate::client::error::{Error, Result};

/// Sends replies on the connection of an input request.
pub(crate) trait ReplyPath: Send + Sync {
    /// Writes a response in the format of the protocol version.
    fn write_response(&self, id: &RequestId, result: &RawValue, task: Option<&str>) -> Bytes;

    /// Sends a message.
    fn send(self: Arc<Self>, message: Bytes) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;
}

/// Open input requests of a connection.
pub(crate) trait InputRegistry: Send + Sync {
    /// Removes an input request that has its response.
    fn remove(&self, state: &Arc<InputState>);
}

/// An input request of a legacy server, which waits for its response.
///
/// Dropping it without a response rejects the input request, unless the server withdrew it.
pub struct RelayInput {
    pub(super) message: Incoming,
    pub(super) method: Method,
    pub(super) state: Arc<InputState>,
    pub(super) path: Weak<dyn ReplyPath>,
    pub(super) open: Weak<dyn InputRegistry>,
    pub(super) task: Option<String>,
}

impl fmt::Debug for RelayInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RelayInput");
        shown.field("id", &self.state.id).field("method", &self.method).finish_non_exhaustive()
    }
}

impl RelayInput {
    /// Returns the ID that the server chose. It is unique among the open input requests of the
    /// connection.
    pub fn id(&self) -> &RequestId {
        &self.state.id
    }

    /// Returns the method: elicitation, sampling or roots.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the JSON text of the parameters.
    pub fn params(&self) -> &str {
        self.message.params_text()
    }

    /// Returns the input request.
    ///
    /// # Errors
    ///
    /// If the parameters do not match the method.
    pub fn request(&self) -> Result<InputRequest> {
        typed(self.method, self.params())
    }

    /// Returns the ID of the task that the input request belongs to, if it names one.
    pub fn related_task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Returns whether the server wants progress while the input request is open.
    pub fn has_progress_token(&self) -> bool {
        self.progress_token().is_some()
    }

    fn progress_token(&self) -> Option<ProgressToken> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Option<Named>,
        }
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "progressToken")]
            token: Option<RawJson>,
        }
        let params: Params = serde_json::from_str(self.params()).ok()?;
        ProgressToken::from_raw(&params.meta?.token?)
    }

    /// Sends a progress notification, so that the server waits longer. Has no effect if the
    /// server wants no progress.
    ///
    /// # Errors
    ///
    /// If the notification cannot be sent.
    pub async fn report_progress(&self, progress: f64, message: Option<&str>) -> Result<()> {
        let (Some(token), Some(path)) = (self.progress_token(), self.path.upgrade()) else {
            return Ok(());
        };
        let mut params = json!({"progressToken": token.as_raw(), "progress": progress});
        if let Some(message) = message {
            params["message"] = message.into();
        }
        let method = Method::Progress.as_str();
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        path.send(Bytes::from(notification.to_string())).await
    }

    /// Completes when the input request needs no response anymore: the server withdrew it, or its
    /// connection ended. Cancel safe.
    pub async fn withdrawn(&self) {
        self.state.withdrawn().await;
    }

    /// Returns whether the input request needs no response anymore.
    pub fn is_withdrawn(&self) -> bool {
        self.state.get() == WITHDRAWN
    }

    /// Responds to the input request. The result is sent unchanged, unless the protocol version
    /// has another format.
    ///
    /// # Errors
    ///
    /// If the response cannot be sent.
    pub async fn respond(self, result: &RawValue) -> Result<()> {
        let Some(path) = self.settle() else { return Ok(()) };
        let response = path.write_response(self.id(), result, self.related_task());
        path.send(response).await
    }

    /// Rejects the input request with an error.
    ///
    /// # Errors
    ///
    /// If the response cannot be sent.
    pub async fn reject(self, code: i32, message: &str, data: Option<&RawValue>) -> Result<()> {
        let Some(path) = self.settle() else { return Ok(()) };
        path.send(error_response(self.id(), code, message, data)).await
    }

    /// Drops the input request without a response, because another process responds to it.
    pub fn detach(self) {
        drop(self.settle());
    }

    /// Marks the input request as settled. Returns `None` if it needs no response anymore.
    fn settle(&self) -> Option<Arc<dyn ReplyPath>> {
        if let Some(open) = self.open.upgrade() {
            open.remove(&self.state);
        }
        match self.state.finish(SETTLED) {
            true => self.path.upgrade(),
            false => None,
        }
    }
}

impl Drop for RelayInput {
    fn drop(&mut self) {
        let (Some(path), Ok(runtime)) = (self.settle(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let why = "the client does not respond to this input request";
        let response = error_response(&self.state.id, code::INTERNAL, why, None);
        runtime.spawn(async move {
            if let Err(error) = path.send(response).await {
                tracing::debug!(%error, "cannot reject an input request");
            }
        });
    }
}

/// Returns a response with an error.
pub(crate) fn error_response(
    id: &RequestId,
    code: i32,
    message: &str,
    data: Option<&RawValue>,
) -> Bytes {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = serde_json::from_str(data.get()).unwrap_or_default();
    }
    let id = id.as_raw().get();
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// Parses an input request of a round: an object with `method` and `params`.
///
/// # Errors
///
/// If it is not an input request.
pub fn read_input_request(request: &RawValue) -> Result<InputRequest> {
    serde_json::from_str(request.get())
        .map_err(|error| Error::broke(format!("invalid input request: {error}")))
}

/// Parses an input request from its method and parameters.
fn typed(method: Method, params: &str) -> Result<InputRequest> {
    let whole = format!(r#"{{"method":"{}","params":{params}}}"#, method.as_str());
    serde_json::from_str(&whole)
        .map_err(|error| Error::broke(format!("invalid input request: {error}")))
}

/// Returns what a client must declare for an input request. `None` for any other method.
pub(crate) fn required_class(method: Method, params: &str) -> Option<CapabilityClass> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Params<'a> {
        mode: Option<&'a str>,
        #[serde(borrow)]
        tools: Option<&'a RawValue>,
        #[serde(borrow)]
        tool_choice: Option<&'a RawValue>,
    }
    let params: Params<'_> = serde_json::from_str(params).unwrap_or_default();
    match method {
        Method::Elicit if params.mode == Some("url") => Some(CapabilityClass::URL),
        Method::Elicit => Some(CapabilityClass::FORM),
        Method::CreateMessage if params.tools.or(params.tool_choice).is_some() => {
            Some(CapabilityClass::SAMPLING_TOOLS)
        }
        Method::CreateMessage => Some(CapabilityClass::SAMPLING),
        Method::RootsList => Some(CapabilityClass::ROOTS),
        _ => None,
    }
}

const OPEN: u8 = 0;
const SETTLED: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Whether an input request still needs a response. Shared by the client and the owner.
#[derive(Debug)]
pub(crate) struct InputState {
    pub(super) id: RequestId,
    state: AtomicU8,
    changed: Notify,
    /// The exchange whose timeout stops while the input request is open.
    settled: Option<Arc<Notify>>,
}

impl InputState {
    pub(super) fn new(id: RequestId, settled: Option<Arc<Notify>>) -> Self {
        Self { id, state: AtomicU8::new(OPEN), changed: Notify::new(), settled }
    }

    fn get(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    pub(super) fn is_open(&self) -> bool {
        self.get() == OPEN
    }

    /// Ends the wait for a response. Returns whether it was open.
    fn finish(&self, state: u8) -> bool {
        let finished =
            self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if finished {
            self.changed.notify_waiters();
            if let Some(settled) = &self.settled {
                settled.notify_one();
            }
        }
        finished
    }

    /// Records that the response is not needed anymore. Returns whether it was.
    pub(super) fn withdraw(&self) -> bool {
        self.finish(WITHDRAWN)
    }

    /// Records that the input request has its response.
    pub(super) fn settle(&self) {
        self.finish(SETTLED);
    }

    /// Completes when the response is not needed anymore.
    pub(crate) async fn withdrawn(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            match self.get() {
                WITHDRAWN => return,
                SETTLED => std::future::pending::<()>().await,
                _ => changed.await,
            }
        }
    }
}
