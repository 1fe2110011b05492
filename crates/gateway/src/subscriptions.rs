//! Subscriptions of clients to resources of upstreams: one per upstream connection and URI.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive::client::notifications::{ListenFilter, ServerNotification};
use tokio::task::JoinHandle;

use crate::{
    assemble,
    member::Member,
    relay::own_uri,
    shared::Shared,
    upstream::{Alive, Connection, ConnectionKey},
    view::ViewKey,
};

/// Delay before a subscription is made again after its connection was lost.
const RETRY: Duration = Duration::from_secs(5);

/// Subscriptions of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// Number of clients, and the task that subscribes, by principal and URI.
    active: Mutex<HashMap<(String, String), Active>>,
}

#[derive(Debug)]
struct Active {
    clients: usize,
    task: JoinHandle<()>,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscriptions {
    /// Counts a client of a principal. The first one subscribes at the upstream.
    pub(crate) fn add(&self, shared: &Arc<Shared>, principal: &str, uri: &str) {
        let key = (principal.to_owned(), uri.to_owned());
        let mut active = self.lock();
        if let Some(known) = active.get_mut(&key) {
            known.clients += 1;
            return;
        }
        let (weak, principal, uri) = (Arc::downgrade(shared), principal.to_owned(), uri.to_owned());
        let task = tokio::spawn(async move {
            while let Some(shared) = weak.upgrade() {
                // Ends when the connection is lost; then the subscription is made again.
                subscribe(&shared, &principal, &uri).await;
                drop(shared);
                tokio::time::sleep(RETRY).await;
            }
        });
        active.insert(key, Active { clients: 1, task });
    }

    /// Counts a client less. The last one ends the subscription at the upstream.
    pub(crate) fn remove(&self, principal: &str, uri: &str) {
        let key = (principal.to_owned(), uri.to_owned());
        let mut active = self.lock();
        let Some(known) = active.get_mut(&key) else { return };
        known.clients -= 1;
        if known.clients == 0 {
            active.remove(&key);
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subscribes to a resource, and forwards its changes until the connection is lost.
async fn subscribe(shared: &Arc<Shared>, principal: &str, uri: &str) {
    let Some(member) = owner(shared, uri) else { return };
    let settings = member.settings();
    let key = ConnectionKey::of_principal(&settings, shared.rules, principal);
    let Ok(lease) = member.runtime.acquire(&key, &Alive::Always).await else { return };
    let held = Held::new(lease.connection());
    // The permit of the lease is for calls.
    drop(lease);
    let own = own_uri(&settings.name, uri);
    match held.0.is_legacy() {
        true => {
            let subscribed = Subscribed { connection: Arc::clone(&held.0), uri: own.to_owned() };
            if subscribed.connection.client.subscribe_resource(own).await.is_ok() {
                while subscribed.connection.is_open() {
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        false => listen(shared, &member, &held.0, own).await,
    }
}

/// Forwards the changes of a resource of a modern upstream.
async fn listen(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    connection: &Arc<Connection>,
    uri: &str,
) {
    let filter = ListenFilter::new().resource(uri);
    let Ok(mut subscription) = connection.client.listen(filter).await else { return };
    while let Some(notification) = subscription.next().await {
        if let ServerNotification::ResourceUpdated(updated) = notification {
            let events = shared.events();
            events.resource_updated(member.state(), connection, &updated);
        }
    }
}

/// Returns the upstream of a URI, as clients see it.
fn owner(shared: &Arc<Shared>, uri: &str) -> Option<Arc<Member>> {
    let find = |view: &crate::view::View| view.upstream_of(uri).map(Arc::<str>::from);
    let name = shared.find_in_views(find).or_else(|| {
        let none = ViewKey { class: Default::default(), is_unrelated: false };
        assemble::view(shared, none).upstream_of(uri).map(Arc::<str>::from)
    })?;
    let config = shared.config();
    config.members.iter().find(|member| member.settings().name == name).cloned()
}

/// A connection that must not be stopped as idle.
struct Held(Arc<Connection>);

impl Held {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.subscribe(true);
        Self(Arc::clone(connection))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.subscribe(false);
    }
}

/// A subscription at a legacy upstream. Dropping it ends the subscription.
struct Subscribed {
    connection: Arc<Connection>,
    uri: String,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (connection, uri) = (Arc::clone(&self.connection), std::mem::take(&mut self.uri));
        runtime.spawn(async move {
            let ending = connection.client.unsubscribe_resource(uri.as_str());
            let _ = tokio::time::timeout(RETRY, ending).await;
        });
    }
}
