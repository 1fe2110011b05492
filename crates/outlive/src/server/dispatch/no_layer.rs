//! Replaces `layer` without the feature `tower`: a server has no layers.

use std::sync::{Arc, Weak};

use outlive_protocol::{Call, CallFuture};

/// The empty list of layers of a server that is not built yet.
#[derive(Default)]
pub(crate) struct Layers;

/// All layers around the router. No value of this type exists.
pub(crate) enum CallStack {}

impl CallStack {
    pub(crate) fn start(&self, _: Arc<Call>) -> CallFuture {
        match *self {}
    }
}

/// Returns no layers.
pub(crate) fn stack<C>(_: Layers, _: &Weak<C>) -> Option<CallStack> {
    None
}
