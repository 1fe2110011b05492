//! State that all parts of a gateway share.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use outlive::server::catalog::{Call, CatalogHandle, Change};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    catalog::StoredCatalogs,
    credentials::Credentials,
    member::Member,
    settings::GatewaySettings,
    upstream::{OwnerRules, ProcessLimit, Supervisor, UpstreamEvents},
    view::{View, ViewKey},
};

/// Views in memory: one for each of the 64 capability classes, and for each principal if a credential
/// belongs to it.
const MAX_VIEWS: usize = 256;

/// State that all parts of a gateway share.
pub(crate) struct Shared {
    config: RwLock<Arc<Config>>,
    pub(crate) rules: OwnerRules,
    pub(crate) limit: Arc<ProcessLimit>,
    /// Present if processes survive the gateway.
    pub(crate) supervisor: Option<Arc<Supervisor>>,
    pub(crate) stored: StoredCatalogs,
    pub(crate) credentials: Arc<Credentials>,
    /// Name of this gateway in `_meta["dev.outlive/via"]`.
    pub(crate) id: String,
    handle: OnceLock<CatalogHandle>,
    /// Increases with every change of a list or of the settings.
    generation: AtomicU64,
    views: Mutex<HashMap<ViewKey, Arc<View>>>,
    background: Mutex<JoinSet<()>>,
    events: Arc<dyn UpstreamEvents>,
    /// Wakes the task that writes the status.
    pub(crate) wake: Notify,
}

/// Settings in use.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: GatewaySettings,
    /// Upstreams in file order.
    pub(crate) members: Vec<Arc<Member>>,
    /// Whether a credential for an upstream belongs to the principal.
    has_user_credentials: bool,
}

impl Config {
    pub(crate) fn new(settings: GatewaySettings, members: Vec<Arc<Member>>) -> Self {
        let has_user_credentials =
            members.iter().any(|member| member.settings().has_user_credentials());
        Self { settings, members, has_user_credentials }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.config()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        rules: OwnerRules,
        (limit, supervisor): (Arc<ProcessLimit>, Option<Arc<Supervisor>>),
        stored: StoredCatalogs,
        credentials: Arc<Credentials>,
        events: Arc<dyn UpstreamEvents>,
    ) -> Self {
        Self {
            config: RwLock::new(Arc::new(config)),
            rules,
            limit,
            supervisor,
            stored,
            credentials,
            id: random_id(),
            handle: OnceLock::new(),
            generation: AtomicU64::new(1),
            views: Mutex::default(),
            background: Mutex::default(),
            events,
            wake: Notify::new(),
        }
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_config(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Returns the receiver of the events of upstreams.
    pub(crate) fn events(&self) -> &Arc<dyn UpstreamEvents> {
        &self.events
    }

    /// Sets the handle of the server. A gateway belongs to one server.
    pub(crate) fn attach(&self, handle: CatalogHandle) {
        let _ = self.handle.set(handle);
    }

    pub(crate) fn handle(&self) -> Option<&CatalogHandle> {
        self.handle.get()
    }

    /// Makes the views out of date. They remain in memory for running calls.
    pub(crate) fn outdate_views(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes the views out of date and notifies clients.
    pub(crate) fn changed(&self, changes: &[Change]) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.lock_views().clear();
        if let Some(handle) = self.handle() {
            changes.iter().for_each(|change| handle.changed(change));
        }
        self.wake.notify_one();
    }

    /// Makes the views out of date and notifies the clients of one principal.
    pub(crate) fn changed_for(&self, changes: &[Change], owner: &str) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.lock_views().clear();
        if let Some(handle) = self.handle() {
            let is_owner = |principal: &str| principal == owner;
            changes.iter().for_each(|change| handle.changed_for(change, is_owner));
        }
        self.wake.notify_one();
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the view of a key, unless it is out of date.
    pub(crate) fn known_view(&self, key: &ViewKey) -> Option<Arc<View>> {
        let known = self.lock_views().get(key).cloned()?;
        (known.generation == self.generation()).then_some(known)
    }

    pub(crate) fn keep_view(&self, key: &ViewKey, view: &Arc<View>) {
        let mut views = self.lock_views();
        if views.len() >= MAX_VIEWS {
            views.clear();
        }
        views.insert(key.clone(), Arc::clone(view));
    }

    /// Finds an item in any view in memory.
    pub(crate) fn find_in_views<T>(&self, find: impl Fn(&View) -> Option<T>) -> Option<T> {
        self.lock_views().values().find_map(|view| find(view))
    }

    /// Finds an item in the views in memory that a principal may see.
    pub(crate) fn find_in_views_of<T>(
        &self,
        principal: &str,
        find: impl Fn(&View) -> Option<T>,
    ) -> Option<T> {
        let views = self.lock_views();
        let may_see = |key: &ViewKey| key.principal.as_deref().is_none_or(|own| own == principal);
        views.iter().filter(|(key, _)| may_see(key)).find_map(|(_, view)| find(view))
    }

    /// Returns the key of the view for a call.
    pub(crate) fn view_key(&self, call: &Call) -> ViewKey {
        let is_unrelated = self.rules.open_listener && call.principal().key() == "anonymous";
        let class = outlive::client::relay::CapabilityClass::from_json(call.client_capabilities());
        let is_users = self.config().has_user_credentials;
        let principal = is_users.then(|| Arc::from(call.principal().key()));
        ViewKey { class, is_unrelated, principal }
    }

    /// Starts a background task that ends with the gateway.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        while background.try_join_next().is_some() {}
        background.spawn(task);
    }

    /// Ends all background tasks.
    pub(crate) async fn stop(&self) {
        let mut background =
            std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.shutdown().await;
    }

    fn lock_views(&self) -> MutexGuard<'_, HashMap<ViewKey, Arc<View>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random_id() -> String {
    let random = getrandom::u64().unwrap_or_default();
    format!("{random:016x}")
}
