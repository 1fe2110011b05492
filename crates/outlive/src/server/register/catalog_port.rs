//! The catalog of a server.

use std::sync::Arc;

use outlive_protocol::SubscriptionWatcher;

use crate::server::{
    env::environment::Env,
    meter::ToolMetrics,
    register::{
        catalog::Catalog,
        catalog_handle::{CatalogHandle, CatalogMeters},
    },
};

/// The catalog of a server.
pub(crate) struct CatalogPort {
    pub(crate) items: Arc<dyn Catalog>,
    meters: Arc<CatalogMeters>,
}

impl CatalogPort {
    /// Attaches a catalog to a server.
    pub(crate) fn new(items: Arc<dyn Catalog>, env: &Arc<Env>) -> Self {
        let meters = Arc::default();
        items.attach(CatalogHandle::new(env, &meters));
        env.profile.bus.watch_subscriptions(Arc::new(Subscriptions(Arc::clone(&items))));
        Self { items, meters }
    }

    /// Returns the metrics of the catalog's tools.
    pub(crate) fn metrics(&self) -> Vec<ToolMetrics> {
        self.meters.read()
    }
}

/// Reports subscriptions to a catalog.
struct Subscriptions(Arc<dyn Catalog>);

impl SubscriptionWatcher for Subscriptions {
    fn subscribed(&self, principal: &str, uri: &str) {
        self.0.subscribed(principal, uri);
    }

    fn unsubscribed(&self, principal: &str, uri: &str) {
        self.0.unsubscribed(principal, uri);
    }
}
