//! The running calls of one connection or session, so that they can be cancelled by ID.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use outlive_wire::Method;

use crate::CancelReason;

/// The part of a call that the table of running calls needs.
pub trait RunningCall: Send + Sync {
    /// Returns the request ID as in the message.
    fn id(&self) -> &str;

    /// Returns the method, or `None` for a custom method.
    fn method(&self) -> Option<Method>;

    /// Cancels the call.
    fn cancel(&self, reason: CancelReason);
}

/// Running calls by request ID. Calls that complete at once are never added.
#[derive(Default)]
pub struct InFlight(Mutex<Calls>);

type Calls = HashMap<Box<str>, Arc<dyn RunningCall>>;

/// Keeps a call in the table until it is dropped.
pub struct InFlightGuard {
    table: Arc<InFlight>,
    call: Arc<dyn RunningCall>,
}

impl InFlight {
    /// Returns whether a call with this ID is running.
    pub fn contains(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Returns how many calls are running.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether no call is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a call until the guard is dropped.
    #[must_use]
    pub fn hold(self: &Arc<Self>, call: &Arc<impl RunningCall + 'static>) -> InFlightGuard {
        let call: Arc<dyn RunningCall> = Arc::clone(call) as _;
        self.lock().insert(call.id().into(), Arc::clone(&call));
        InFlightGuard { table: Arc::clone(self), call }
    }

    /// Cancels a call. Returns `false` if no call with this ID is running, which is not an error.
    pub fn cancel(&self, id: &str, reason: CancelReason) -> bool {
        let call = self.lock().remove(id);
        // The call is cancelled outside the lock: this wakes its owner, which may remove it at once.
        call.inspect(|call| call.cancel(reason)).is_some()
    }

    /// Cancels every call.
    pub fn cancel_all(&self) {
        self.cancel_where(|_| true);
    }

    /// Cancels every call of a method.
    pub fn cancel_method(&self, method: Method) {
        self.cancel_where(|call| call.method() == Some(method));
    }

    fn cancel_where(&self, matches: impl Fn(&dyn RunningCall) -> bool) {
        let calls: Vec<_> =
            self.lock().extract_if(|_, call| matches(&**call)).map(|(_, call)| call).collect();
        calls.iter().for_each(|call| call.cancel(CancelReason::Disconnected));
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut calls = self.table.lock();
        // Remove this call only: after a cancellation the client may have reused the ID.
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

impl fmt::Debug for InFlightGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightGuard").field("id", &self.call.id()).finish_non_exhaustive()
    }
}
