//! Middleware around calls: any tower layer. It wraps the work itself, so it goes along wherever
//! the call goes.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use tower_layer::Layer;
use tower_service::Service;

/// An error of any layer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Layers that wait for the server they go around.
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

    /// The whole stack; the layer added last is the outermost.
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
// A mutex, because services are cloned before use and need not be `Sync`; held for the clone only.
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

/// The service that a layer goes around: the router, or the layers before it.
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

/// What a layer refuses is a refusal; what breaks in it is an internal error.
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
