//! Middleware around calls: any tower layer. A layer wraps the future of a call, so it stays in
//! effect after a promotion.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use tower_layer::Layer;
use tower_service::Service;

/// Error of a layer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Layers of a server that is not built yet.
#[derive(Default)]
pub(crate) struct Layers(Vec<Wrap>);

type Wrap = Box<dyn FnOnce(BoxCallService) -> BoxCallService + Send>;

impl Layers {
    pub(crate) fn add<L>(&mut self, layer: L)
    where
        L: Layer<BoxCallService> + Send + 'static,
        L::Service: Service<Arc<Call>, Response = Outcome> + Clone + Send + 'static,
        <L::Service as Service<Arc<Call>>>::Error: Into<BoxError>,
        <L::Service as Service<Arc<Call>>>::Future: Send + 'static,
    {
        self.0.push(Box::new(move |inner| BoxCallService::new(layer.layer(inner))));
    }

    /// Returns the stack of all layers. The layer that was added last is the outermost.
    pub(crate) fn stack(self, inner: impl FnOnce() -> BoxCallService) -> Option<CallStack> {
        if self.0.is_empty() {
            return None;
        }
        let inner = inner();
        let outermost = self.0.into_iter().fold(inner, |inner, wrap| wrap(inner));
        Some(CallStack(Mutex::new(outermost)))
    }
}

/// All layers around the router.
// A mutex, because a service is cloned for each call and need not be `Sync`. It is held only for
// the clone.
pub(crate) struct CallStack(Mutex<BoxCallService>);

impl CallStack {
    pub(crate) fn start(&self, call: Arc<Call>) -> CallFuture {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            std::future::poll_fn(|cx| service.poll_ready(cx)).await.map_err(fault)?;
            service.call(call).await.map_err(fault)
        })
    }
}

/// The service that a layer wraps: the router or an inner layer.
pub struct BoxCallService(Box<dyn CloneCall>);

trait CloneCall: Send {
    fn ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;
    fn start(
        &mut self,
        call: Arc<Call>,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, BoxError>> + Send>>;
    fn clone_box(&self) -> Box<dyn CloneCall>;
}

impl<S> CloneCall for S
where
    S: Service<Arc<Call>, Response = Outcome> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.poll_ready(cx).map_err(Into::into)
    }

    fn start(
        &mut self,
        call: Arc<Call>,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, BoxError>> + Send>> {
        let future = self.call(call);
        Box::pin(async move { future.await.map_err(Into::into) })
    }

    fn clone_box(&self) -> Box<dyn CloneCall> {
        Box::new(self.clone())
    }
}

impl BoxCallService {
    pub(crate) fn new<S>(service: S) -> Self
    where
        S: Service<Arc<Call>, Response = Outcome> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        Self(Box::new(service))
    }
}

impl Clone for BoxCallService {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl Service<Arc<Call>> for BoxCallService {
    type Response = Outcome;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.ready(cx)
    }

    fn call(&mut self, call: Arc<Call>) -> Self::Future {
        self.0.start(call)
    }
}

/// Converts the error of a layer. A `ProtocolError` goes to the client; other errors become
/// internal errors.
fn fault(error: BoxError) -> ProtocolError {
    match error.downcast::<ProtocolError>() {
        Ok(fault) => *fault,
        Err(error) => ProtocolError::internal(error),
    }
}

impl std::fmt::Debug for BoxCallService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BoxCall")
    }
}
