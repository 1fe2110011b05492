//! Reads the lists of upstreams: on demand, after changes, and when they are no longer fresh.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use outlive::server::{catalog::Change, layer::Call};

use crate::{
    catalog::{Ensured, Reading, read},
    member::Member,
    names::qualified,
    relay::own_members,
    shared::Shared,
    status::Problem,
    upstream::{Alive, CatalogKey, Connection, ConnectionKey, UpstreamEvents, UpstreamState},
};

/// Delay after a notification of changed lists, whatever their number.
const SETTLE: Duration = Duration::from_millis(250);

/// Repeated reads of lists that change while they are read.
const MAX_READS: usize = 8;

/// Starts to read the missing lists for a call. Returns whether lists are missing.
pub(crate) fn ensure(shared: &Arc<Shared>, members: &[Arc<Member>], call: &Call) -> Vec<Missing> {
    let mut missing = Vec::new();
    for member in members {
        let settings = member.settings();
        let (key, alive) = ConnectionKey::of_call(&settings, shared.rules, call);
        missing.extend(ensure_key(shared, member, key, alive));
    }
    missing
}

/// A catalog that is being read.
pub(crate) struct Missing {
    pub(crate) member: Arc<Member>,
    done: tokio::sync::watch::Receiver<bool>,
}

impl Missing {
    /// Waits until the lists were read, or could not be read.
    pub(crate) async fn wait(mut self) {
        let _ = self.done.wait_for(|done| *done).await;
    }
}

/// Starts to read the lists for one key of connections, unless they are known.
pub(crate) fn ensure_key(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    key: ConnectionKey,
    alive: Alive,
) -> Option<Missing> {
    let member = Arc::clone(member);
    match member.catalogs.ensure(&key.catalog()) {
        Ensured::Known => None,
        Ensured::Reading(done) => Some(Missing { member, done }),
        Ensured::Missing(reading) => {
            let done = reading.done();
            start(shared, &member, reading, key, alive);
            Some(Missing { member, done })
        }
    }
}

fn start(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    reading: Reading,
    key: ConnectionKey,
    alive: Alive,
) {
    let (weak, member) = (Arc::downgrade(shared), Arc::clone(member));
    shared.spawn(async move {
        if let Some(shared) = weak.upgrade() {
            run(&shared, &member, reading, &key, &alive).await;
        }
    });
}

/// Reads the lists: first from the store, then from the upstream.
async fn run(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    reading: Reading,
    key: &ConnectionKey,
    alive: &Alive,
) {
    let settings = member.settings();
    let catalog = key.catalog();
    let mut reading = reading;
    if member.catalogs.get(&catalog).is_none()
        && let Some(stored) = shared.stored.catalog(&settings.name, &catalog).await
    {
        // A stored definition may be one that is not accepted.
        member.pins.load(&shared.stored, &settings.name).await;
        if member.pins.compare(&catalog, &stored) {
            member.pins.save(&shared.stored, &settings.name).await;
        }
        member.catalogs.settle(&reading, Some(Arc::new(stored)), || shared.outdate_views());
        drop(reading);
        notify_clients_of(shared, &catalog);
        // The stored lists may be old: they are read again, without a waiting client.
        let Some(again) = member.catalogs.refresh(&catalog) else { return };
        reading = again;
    }
    for _ in 0..MAX_READS {
        let Ok(lease) = member.runtime.acquire(key, alive).await else { return };
        if !read_once(shared, member, &reading, lease.connection()).await {
            return;
        }
    }
}

/// Reads the lists over a connection. Returns whether they changed meanwhile.
async fn read_once(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    reading: &Reading,
    connection: &Connection,
) -> bool {
    let settings = member.settings();
    let meta = own_members(&shared.id);
    let reading_all = read(connection, &settings, &meta);
    let lists = tokio::time::timeout(settings.start_timeout, reading_all).await;
    let lists = match lists {
        Ok(Ok(lists)) => Arc::new(lists),
        Ok(Err(error)) => {
            let problem = member.state().problem_of(&error);
            return give_up(member, reading, problem);
        }
        Err(_) => return give_up(member, reading, Problem::slow(settings.start_timeout)),
    };
    member.state().recovered_for(connection.key.principal());
    member.state().recovered();
    member.pins.load(&shared.stored, &settings.name).await;
    if member.pins.compare(&reading.key, &lists) {
        member.pins.save(&shared.stored, &settings.name).await;
    }
    let was_known = member.catalogs.get(&reading.key).is_some();
    let outdate_views = || shared.outdate_views();
    let settled = member.catalogs.settle(reading, Some(Arc::clone(&lists)), outdate_views);
    if settled.is_changed {
        if was_known {
            member.state().meter().catalog_changed();
        }
        shared.stored.put_catalog(&settings.name, &reading.key, &lists).await;
        notify_clients_of(shared, &reading.key);
    }
    settled.is_stale
}

fn give_up(member: &Member, reading: &Reading, problem: Problem) -> bool {
    member.catalogs.settle(reading, None, || ());
    member.state().failed_for(reading.key.principal.as_deref(), problem);
    false
}

/// Notifies clients that the lists changed.
pub(crate) fn notify(shared: &Shared) {
    shared.changed(&[Change::Tools, Change::Prompts, Change::Resources]);
}

/// Notifies the clients that see a catalog that it changed.
pub(crate) fn notify_clients_of(shared: &Shared, catalog: &CatalogKey) {
    match &catalog.principal {
        None => notify(shared),
        Some(owner) => {
            shared.changed_for(&[Change::Tools, Change::Prompts, Change::Resources], owner)
        }
    }
}

/// Reads the lists of a connection again after the delay, once for any number of calls.
fn refresh_later(shared: &Arc<Shared>, member: &Arc<Member>, connection: &Connection) {
    if !member.catalogs.schedule(&connection.catalog()) {
        return;
    }
    let (weak, member) = (Arc::downgrade(shared), Arc::downgrade(member));
    let key = connection.key.clone();
    let alive = connection.alive();
    shared.spawn(async move {
        tokio::time::sleep(SETTLE).await;
        let (Some(shared), Some(member)) = (weak.upgrade(), member.upgrade()) else { return };
        refresh(&shared, &member, key, alive);
    });
}

/// Reads the lists of a catalog again.
pub(crate) fn refresh(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    key: ConnectionKey,
    alive: Alive,
) {
    if let Some(reading) = member.catalogs.refresh(&key.catalog()) {
        start(shared, member, reading, key, alive);
    }
}

/// Forwards the events of upstreams to the gateway.
#[derive(Default)]
pub(crate) struct Events(OnceLock<Weak<Shared>>);

impl Events {
    pub(crate) fn connect(&self, shared: &Arc<Shared>) {
        let _ = self.0.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.0.get()?.upgrade()
    }

    fn member(&self, upstream: &UpstreamState) -> Option<(Arc<Shared>, Arc<Member>)> {
        let shared = self.shared()?;
        let config = shared.config();
        let is_same = |member: &&Arc<Member>| std::ptr::eq(Arc::as_ptr(member.state()), upstream);
        let member = config.members.iter().find(is_same).cloned()?;
        Some((shared, member))
    }
}

impl UpstreamEvents for Events {
    fn connected(&self, upstream: &UpstreamState, connection: &Arc<Connection>) {
        let Some((shared, member)) = self.member(upstream) else { return };
        // The task that reads the lists for the first time has opened the connection itself.
        let catalog = connection.catalog();
        if member.catalogs.get(&catalog).is_some() && !member.catalogs.is_reading(&catalog) {
            refresh_later(&shared, &member, connection);
        }
    }

    fn lists_changed(&self, upstream: &UpstreamState, connection: &Arc<Connection>) {
        if let Some((shared, member)) = self.member(upstream) {
            refresh_later(&shared, &member, connection);
        }
    }

    fn resource_updated(&self, upstream: &UpstreamState, connection: &Arc<Connection>, uri: &str) {
        let Some((shared, member)) = self.member(upstream) else { return };
        let Some(handle) = shared.handle() else { return };
        let qualified = qualified(&member.settings().name, uri);
        // A client sees one of both forms, and subscribes to that one.
        for change in [Change::Resource(uri.into()), Change::Resource(qualified.into())] {
            match connection.key.principal() {
                Some(owner) => handle.changed_for(&change, |principal| principal == owner),
                None => handle.changed(&change),
            }
        }
    }

    fn state_changed(&self) {
        let Some(shared) = self.shared() else { return };
        shared.wake.notify_one();
    }

    fn stop_idle_process(&self) -> bool {
        let Some(shared) = self.shared() else { return false };
        let config = shared.config();
        config.members.iter().any(|member| member.runtime.stop_idle_process())
    }
}
