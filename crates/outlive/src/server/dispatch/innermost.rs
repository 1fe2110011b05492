//! The router as a tower service.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use tower_service::Service;

use crate::server::dispatch::{
    core::ServerCore,
    layer::{BoxCallService, CallStack, Layers},
    router,
};

/// Returns the layers around the router.
pub(crate) fn stack(layers: Layers, core: &Weak<ServerCore>) -> Option<CallStack> {
    layers.stack(|| BoxCallService::new(CallService { core: core.clone() }))
}

/// The innermost service of the layers: the router.
#[derive(Clone)]
struct CallService {
    core: Weak<ServerCore>,
}

impl Service<Arc<Call>> for CallService {
    type Response = Outcome;
    type Error = ProtocolError;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ProtocolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Arc<Call>) -> CallFuture {
        match self.core.upgrade() {
            Some(core) => router::route(&core, call),
            None => Box::pin(std::future::ready(Err(ProtocolError::Internal))),
        }
    }
}
