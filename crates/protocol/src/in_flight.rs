//! The calls of one pipe or session that are running, so that they can be cancelled by id.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::Call;

/// Running calls by request id. Only calls that could not be answered at once get in here.
#[derive(Default)]
pub struct InFlight(Mutex<HashMap<Box<str>, Arc<Call>>>);

/// Keeps a call in the table until it is dropped.
#[derive(Debug)]
pub struct InFlightGuard {
    table: Arc<InFlight>,
    call: Arc<Call>,
}

impl InFlight {
    /// Whether a call with this id is running.
    pub fn contains(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// How many calls are running.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no call is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enters a call, until the guard is dropped.
    #[must_use]
    pub fn hold(self: &Arc<Self>, call: &Arc<Call>) -> InFlightGuard {
        self.lock().insert(call.id().into(), Arc::clone(call));
        InFlightGuard { table: Arc::clone(self), call: Arc::clone(call) }
    }

    /// Cancels a call; `false` if no such call is running, which is no error.
    pub fn cancel(&self, id: &str) -> bool {
        let call = self.lock().remove(id);
        // Outside the lock: cancelling wakes the owner, which may leave the table at once.
        call.inspect(|call| call.port().cancel()).is_some()
    }

    /// Cancels every call.
    pub fn cancel_all(&self) {
        self.cancel_where(|_| true);
    }

    /// Cancels every call of which this is true.
    pub fn cancel_where(&self, meant: impl Fn(&Call) -> bool) {
        let calls: Vec<_> =
            self.lock().extract_if(|_, call| meant(call)).map(|(_, call)| call).collect();
        calls.iter().for_each(|call| call.port().cancel());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Call>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut calls = self.table.lock();
        // The id may have been used again since a cancellation: remove our own call only.
        if calls.get(self.call.id()).is_some_and(|call| Arc::ptr_eq(call, &self.call)) {
            calls.remove(self.call.id());
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("calls", &self.len()).finish()
    }
}
