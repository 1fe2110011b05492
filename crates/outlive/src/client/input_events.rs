//! Input requests as events of a call: the reader of the events responds to them.

use std::{
    collections::BTreeMap,
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{mpsc, oneshot};

use super::input::{DynAnswerer, InputCapabilities, InputResponse, PendingInput};

/// An input request and the channel for its response.
struct Asked {
    request: PendingInput,
    reply: oneshot::Sender<InputResponse>,
}

/// Input handler that forwards input requests to the reader of a call's events.
pub(crate) struct EventHandler {
    capabilities: InputCapabilities,
    queue: mpsc::Sender<Asked>,
}

impl DynAnswerer for EventHandler {
    fn can(&self) -> InputCapabilities {
        self.capabilities
    }

    fn answer(
        &self,
        request: PendingInput,
    ) -> Pin<Box<dyn Future<Output = InputResponse> + Send + '_>> {
        Box::pin(async move {
            let (reply, response) = oneshot::channel();
            let unread = || InputResponse::Error("the events of the call are not read".to_owned());
            match self.queue.send(Asked { request, reply }).await {
                Ok(()) => response.await.unwrap_or_else(|_| unread()),
                Err(_) => unread(),
            }
        })
    }
}

/// Receiving side of the input requests of one call.
pub(crate) struct InputEvents {
    handler: Arc<EventHandler>,
    queue: mpsc::Receiver<Asked>,
    /// Input requests without a response, by event number.
    open: BTreeMap<u64, oneshot::Sender<InputResponse>>,
    asked: u64,
}

impl InputEvents {
    pub(crate) fn new(capabilities: InputCapabilities, max_open: usize) -> Self {
        let (sender, queue) = mpsc::channel(max_open.max(1));
        let handler = Arc::new(EventHandler { capabilities, queue: sender });
        Self { handler, queue, open: BTreeMap::new(), asked: 0 }
    }

    pub(crate) fn handler(&self) -> &Arc<EventHandler> {
        &self.handler
    }

    /// Returns the next input request. Cancel safe.
    pub(crate) async fn next(&mut self) -> PendingInput {
        let Some(Asked { mut request, reply }) = self.queue.recv().await else {
            return pending().await;
        };
        self.asked += 1;
        request.event = Some(self.asked);
        self.open.insert(self.asked, reply);
        request
    }

    /// Responds to an input request. A response that is no longer needed is dropped.
    pub(crate) fn respond(&mut self, event: u64, response: InputResponse) {
        if let Some(reply) = self.open.remove(&event) {
            let _ = reply.send(response);
        }
    }
}

/// Input handler of a client without one. An input request that names no call goes to the first
/// call whose events are read.
pub(crate) struct EventRouter {
    capabilities: InputCapabilities,
    calls: Mutex<Vec<Weak<EventHandler>>>,
}

impl EventRouter {
    pub(crate) fn new(capabilities: InputCapabilities) -> Self {
        Self { capabilities, calls: Mutex::default() }
    }

    pub(crate) fn add(&self, handler: &Arc<EventHandler>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| call.strong_count() > 0);
        calls.push(Arc::downgrade(handler));
    }

    fn first(&self) -> Option<Arc<EventHandler>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter_map(Weak::upgrade).find(|handler| !handler.queue.is_closed())
    }
}

impl DynAnswerer for EventRouter {
    fn can(&self) -> InputCapabilities {
        self.capabilities
    }

    fn answer(
        &self,
        request: PendingInput,
    ) -> Pin<Box<dyn Future<Output = InputResponse> + Send + '_>> {
        Box::pin(async move {
            match self.first() {
                Some(handler) => handler.answer(request).await,
                None => InputResponse::Error(
                    "the client has no input handler, and no call with `input_as_events`"
                        .to_owned(),
                ),
            }
        })
    }
}
