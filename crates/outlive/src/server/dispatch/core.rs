//! The parts of a running server: environment, items, layers and hooks.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use outlive_protocol::Session;
use outlive_wire::JsonObject;

use crate::server::{
    dispatch::{
        custom::{CustomMethod, NotificationHandler},
        layer::CallStack,
    },
    env::environment::Env,
    register::{catalog_port::CatalogPort, registries::Registries},
    throttle::{RateLimit, Throttle},
};

/// A running server.
pub(crate) struct ServerCore {
    pub(crate) env: Arc<Env>,
    /// Items that the application registered.
    pub(crate) registered: Registries,
    /// Items that depend on the call.
    pub(crate) catalog: Option<CatalogPort>,
    pub(crate) description: Description,
    pub(crate) layers: Option<CallStack>,
    pub(crate) hooks: Hooks,
    /// Limits on the calls of each caller, over all tools.
    pub(crate) callers: Option<Arc<Throttle>>,
    /// Number of active transports. The last one to stop drains the server.
    pub(crate) transports: AtomicUsize,
}

/// Description of the server for clients, apart from its registered items.
pub(crate) struct Description {
    pub(crate) instructions: Option<String>,
    pub(crate) offers: Offers,
    pub(crate) extensions: JsonObject,
    pub(crate) experimental: JsonObject,
}

/// Custom methods and hooks of the application.
pub(crate) struct Hooks {
    pub(crate) methods: HashMap<Box<str>, CustomMethod>,
    pub(crate) notifications: HashMap<Box<str>, NotificationHandler>,
    pub(crate) on_open: Vec<SessionHook>,
    pub(crate) on_close: Vec<SessionHook>,
}

/// Hook that runs when a legacy session opens or closes.
pub(crate) type SessionHook = Box<dyn Fn(&Arc<Session>) + Send + Sync>;

/// Capabilities that the server advertises even without registered items.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) subscriptions: bool,
}

impl ServerCore {
    pub(crate) fn has_tools(&self) -> bool {
        self.description.offers.tools || !self.registered.tools.is_empty()
    }

    pub(crate) fn has_resources(&self) -> bool {
        let Registries { resources, templates, .. } = &self.registered;
        self.description.offers.resources || !resources.is_empty() || !templates.is_empty()
    }

    pub(crate) fn has_subscriptions(&self) -> bool {
        self.description.offers.subscriptions && self.has_resources()
    }

    pub(crate) fn has_prompts(&self) -> bool {
        self.description.offers.prompts || !self.registered.prompts.is_empty()
    }

    /// Returns whether completion is available: only prompts and templates have completers.
    pub(crate) fn has_completions(&self) -> bool {
        self.has_prompts() || !self.registered.templates.is_empty()
    }
}

/// Rate and concurrency limits per caller, over all tools.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallerLimits {
    pub(crate) rate: Option<RateLimit>,
    pub(crate) concurrent: Option<u32>,
}

impl CallerLimits {
    pub(crate) fn throttle(self) -> Option<Arc<Throttle>> {
        (self.rate.is_some() || self.concurrent.is_some())
            .then(|| Arc::new(Throttle::new(self.rate, self.concurrent)))
    }
}

/// Default time for which list changes are collected before clients are notified.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(50);
