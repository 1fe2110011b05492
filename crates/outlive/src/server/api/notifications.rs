//! Notifications of a server that is being built.

use std::sync::Arc;

use crate::{
    deliveries::{Composer, Target},
    server::api::server::WeakServer,
};

/// Creates the composer of a server's notifications, which is above this layer.
pub(crate) type NewComposer = fn(WeakServer) -> Arc<dyn Composer>;

/// Targets of notifications, and their composer.
pub(crate) struct Notifications {
    pub(crate) targets: Vec<Target>,
    pub(crate) composer: NewComposer,
}
