//! Subscriptions of clients to resources of upstreams: one per upstream connection and URI.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive::client::notifications::{ListenFilter, ServerNotification};
use tokio::task::{JoinHandle, JoinSet};

use crate::{
    assemble,
    member::Member,
    relay::own_uri,
    shared::Shared,
    upstream::{Alive, Connection, ConnectionKey},
    view::ViewKey,
};

/// Delay before a subscription is made again after its connection was lost.
const RETRY: Duration = Duration::from_secs(1);

/// Interval in which a subscription is extended to new connections of its principal.
const LOOK: Duration = Duration::from_secs(5);

/// Time to end a subscription at the upstream.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval in which the session of a subscription is checked.
const PING_INTERVAL: Duration = Duration::from_secs(30);

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
            let mut is_again = false;
            while let Some(shared) = weak.upgrade() {
                // Ends when a connection is lost; then the subscription is made again.
                subscribe(&shared, &principal, &uri, is_again).await;
                is_again = true;
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

/// Subscribes to a resource on the connections of a principal, and forwards its changes until one of
/// them is lost. `is_again` tells whether changes may have been missed before.
async fn subscribe(shared: &Arc<Shared>, principal: &str, uri: &str, is_again: bool) {
    let Some(member) = owner(shared, principal, uri) else { return };
    let settings = member.settings();
    let key = ConnectionKey::of_principal(&settings, shared.rules, principal);
    let own: Arc<str> = own_uri(&settings.name, uri).into();
    if member.runtime.open_of(&key).is_empty()
        && member.runtime.acquire(&key, &Alive::Always).await.is_err()
    {
        return;
    }
    let mut watched: Vec<Arc<Connection>> = Vec::new();
    let mut watching = JoinSet::new();
    loop {
        // Each class of clients may have another process, which can start later.
        for connection in member.runtime.open_of(&key) {
            if !watched.iter().any(|known| Arc::ptr_eq(known, &connection)) {
                let (shared, member, own) = (Arc::clone(shared), Arc::clone(&member), own.clone());
                let held = Held::new(&connection);
                watching
                    .spawn(async move { watch(&shared, &member, &held.0, &own, is_again).await });
                watched.push(connection);
            }
        }
        if watching.is_empty() || tokio::time::timeout(LOOK, watching.join_next()).await.is_ok() {
            return;
        }
    }
}

/// Watches a resource on one connection until it is lost.
async fn watch(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    connection: &Arc<Connection>,
    uri: &str,
    is_again: bool,
) {
    let watched = async {
        match connection.is_legacy() {
            true => watch_legacy(connection, uri).await,
            false => listen(shared, member, connection, uri).await,
        }
    };
    if is_again {
        // The resource may have changed while nothing was subscribed.
        shared.events().resource_updated(member.state(), connection, uri);
    }
    tokio::select! {
        () = watched => {}
        () = ended(connection) => {}
    }
}

/// Subscribes at a legacy upstream, whose notifications the connection forwards. Subscribes again in
/// a new session.
async fn watch_legacy(connection: &Arc<Connection>, uri: &str) {
    let mut notifications = connection.client.notifications();
    let subscribed = Subscribed { connection: Arc::clone(connection), uri: uri.to_owned() };
    loop {
        if let Err(error) = subscribed.connection.client.subscribe_resource(uri).await {
            tracing::debug!(%error, "cannot subscribe to a resource of an upstream");
        }
        loop {
            match tokio::time::timeout(PING_INTERVAL, notifications.next()).await {
                Ok(Some(ServerNotification::Reconnected)) => break,
                Ok(Some(_)) => {}
                Ok(None) => return,
                // Without calls, nothing else finds out that the session is gone.
                Err(_) => {
                    let _ = connection.client.ping().await;
                }
            }
        }
    }
}

/// Completes when a connection is closed, or its session has ended.
async fn ended(connection: &Arc<Connection>) {
    let client = connection.client.clone();
    let polled = async {
        while connection.is_open() && connection.alive().is_alive() {
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::select! {
        _ = client.closed() => {}
        () = polled => {}
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
    if let Ok(mut subscription) = connection.client.listen(filter).await {
        while let Some(notification) = subscription.next().await {
            if let ServerNotification::ResourceUpdated(updated) = notification {
                let events = shared.events();
                events.resource_updated(member.state(), connection, &updated);
            }
        }
    }
    // Without subscriptions, single resources are not watched.
    std::future::pending().await
}

/// Returns the upstream of a URI, as clients see it.
fn owner(shared: &Arc<Shared>, principal: &str, uri: &str) -> Option<Arc<Member>> {
    let find = |view: &crate::view::View| view.upstream_of(uri).map(Arc::<str>::from);
    let name = shared.find_in_views_of(principal, find).or_else(|| {
        assemble::view(shared, &ViewKey::default()).upstream_of(uri).map(Arc::<str>::from)
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
            let _ = tokio::time::timeout(END_TIMEOUT, ending).await;
        });
    }
}
