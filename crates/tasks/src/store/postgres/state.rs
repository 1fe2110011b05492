//! State that all connections of a store share.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::{changes::Listeners, clock::Shift, connect::Database};

/// A database, and the identity of this process in it.
pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) shift: Shift,
    pub(super) listeners: Arc<Listeners>,
    /// Random number that identifies the changes of this process.
    pub(super) origin: i64,
    /// Liveness lock of this process.
    lock: AtomicI64,
}

impl Shared {
    pub(super) fn new(database: Database, origin: i64) -> Self {
        Self {
            database,
            shift: Shift::default(),
            listeners: Arc::default(),
            origin,
            lock: AtomicI64::new(0),
        }
    }

    pub(super) fn lock(&self) -> i64 {
        self.lock.load(Ordering::Relaxed)
    }

    pub(super) fn set_lock(&self, lock: i64) {
        self.lock.store(lock, Ordering::Relaxed);
    }
}
