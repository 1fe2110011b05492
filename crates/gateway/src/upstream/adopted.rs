//! Connections to processes of earlier gateways, which calls of tasks still use.
//!
//! A new call uses such a connection too, if it has the same key and no other connection has it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{connection::Connection, lease::InUse};

/// Connections that are not the one of their key.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Held while one is opened, so that calls of the same process share it.
    pub(super) opening: tokio::sync::Mutex<()>,
}

impl Adopted {
    pub(super) fn find(&self, is_wanted: impl Fn(&&Arc<Connection>) -> bool) -> Option<InUse> {
        self.lock().iter().find(is_wanted).map(InUse::new)
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
