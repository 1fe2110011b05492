//! Connections to processes of earlier gateways, which calls of tasks still use.
//!
//! A new call uses such a connection too, if it has the same key and no other connection has it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::OwnedMutexGuard;

use super::{connection::Connection, key::ConnectionKey, lease::InUse};

/// The right to connect to a process of an earlier gateway.
pub(super) type Adopting = OwnedMutexGuard<()>;

/// Connections that are not the one of their key.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Held while a connection to a process of an earlier gateway is opened, so that all calls of that
    /// process share it.
    adopting: Arc<tokio::sync::Mutex<()>>,
}

impl Adopted {
    /// Waits until no other connection to a process of an earlier gateway is being opened.
    pub(super) fn adopting(&self) -> impl Future<Output = Adopting> + use<> {
        Arc::clone(&self.adopting).lock_owned()
    }

    pub(super) fn find(&self, is_wanted: impl Fn(&&Arc<Connection>) -> bool) -> Option<InUse> {
        self.lock().iter().find(is_wanted).map(InUse::new)
    }

    /// Takes the connection of a key that new calls can use.
    pub(super) fn take(&self, key: &ConnectionKey) -> Option<Arc<Connection>> {
        let is_wanted = |adopted: &mut Arc<Connection>| {
            adopted.key == *key && adopted.is_open() && adopted.serves_new_calls()
        };
        self.lock().extract_if(.., is_wanted).next()
    }

    pub(super) fn add(&self, connection: &Arc<Connection>) {
        self.lock().push(Arc::clone(connection));
    }

    pub(super) fn open(&self) -> Vec<Arc<Connection>> {
        self.lock().clone()
    }

    /// Removes a connection. Returns whether it was there.
    pub(super) fn remove(&self, connection: &Arc<Connection>) -> bool {
        let mut connections = self.lock();
        let before = connections.len();
        connections.retain(|adopted| !Arc::ptr_eq(adopted, connection));
        connections.len() < before
    }

    /// Takes the connections that no call uses.
    pub(super) fn take_unused(&self, now: Instant) -> Vec<Arc<Connection>> {
        let mut connections = self.lock();
        connections.extract_if(.., |adopted| adopted.idle(now).is_some()).collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Connection>> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
