//! The open input requests of one connection, so that the server can withdraw them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use outlive_protocol::{Incoming, IncomingKind};
use outlive_wire::{CancelledNotificationParams, Method, RequestId};
use tokio::sync::{Notify, mpsc};

use super::input::{InputRegistry, InputState, RelayInput, ReplyPath};

/// Event about an input request that no call's own stream delivers.
#[derive(Debug)]
#[non_exhaustive]
pub enum RoutedEvent {
    /// An input request.
    Input(RelayInput),
    /// The server withdrew the input request with this ID, or its connection ended.
    Withdrawn(RequestId),
}

/// Open input requests by ID, and the receivers of those that name a task.
#[derive(Debug, Default)]
pub(crate) struct OpenInputs {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: HashMap<RequestId, Entry>,
    by_task: HashMap<String, Destination>,
}

#[derive(Debug)]
struct Entry {
    state: Arc<InputState>,
    /// Where a withdrawal is reported. `None` for an input handler, which is dropped.
    events: Option<mpsc::Sender<RoutedEvent>>,
}

/// Destination of an input request.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) events: mpsc::Sender<RoutedEvent>,
    /// The exchange whose timeout stops while the input request is open.
    pub(crate) settled: Option<Arc<Notify>>,
}

/// Reason why an input request is not accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotOpened {
    TooMany,
    /// The ID belongs to an input request that is open.
    Duplicate,
    /// The client does not declare this kind of input request.
    Undeclared,
}

impl OpenInputs {
    /// Registers an input request.
    pub(crate) fn open(
        self: &Arc<Self>,
        message: Incoming,
        task: Option<String>,
        path: Weak<dyn ReplyPath>,
        to: &Destination,
        limit: usize,
    ) -> Result<RelayInput, NotOpened> {
        let IncomingKind::Request { id, method: Some(method), .. } = message.kind() else {
            return Err(NotOpened::Undeclared);
        };
        let method = *method;
        let state = self.add(id, Some(to.events.clone()), to.settled.clone(), limit)?;
        let open: Weak<Self> = Arc::downgrade(self);
        Ok(RelayInput { message, method, state, path, open, task })
    }

    /// Registers an input request that an input handler responds to.
    pub(crate) fn watch(
        self: &Arc<Self>,
        id: &RequestId,
        limit: usize,
    ) -> Result<Watched, NotOpened> {
        let state = self.add(id, None, None, limit)?;
        Ok(Watched { state, open: Arc::downgrade(self) })
    }

    fn add(
        &self,
        id: &RequestId,
        events: Option<mpsc::Sender<RoutedEvent>>,
        settled: Option<Arc<Notify>>,
        limit: usize,
    ) -> Result<Arc<InputState>, NotOpened> {
        let mut inner = self.lock();
        if inner.open.contains_key(id) {
            return Err(NotOpened::Duplicate);
        }
        if inner.open.len() >= limit {
            return Err(NotOpened::TooMany);
        }
        let state = Arc::new(InputState::new(id.clone(), settled));
        inner.open.insert(id.clone(), Entry { state: Arc::clone(&state), events });
        Ok(state)
    }

    /// Handles a notification with which the server withdraws a request.
    pub(crate) fn heard(&self, message: &Incoming) {
        let IncomingKind::Notification { method: Some(Method::Cancelled), .. } = message.kind()
        else {
            return;
        };
        let params: Option<CancelledNotificationParams> = message.params().ok();
        let Some(id) = params.and_then(|params| params.request_id) else { return };
        let removed = self.lock().open.remove(&id);
        if let Some(entry) = removed {
            entry.withdraw(id);
        }
    }

    /// Withdraws all input requests, because the connection ended.
    pub(crate) fn close(&self) {
        let open = std::mem::take(&mut self.lock().open);
        open.into_iter().for_each(|(id, entry)| entry.withdraw(id));
    }

    /// Directs the input requests of a task to a receiver while the guard lives.
    pub(crate) fn receive_for_task(self: &Arc<Self>, task: &str, to: Destination) -> TaskInputs {
        let events = to.events.clone();
        self.lock().by_task.insert(task.to_owned(), to);
        TaskInputs { task: task.to_owned(), events, open: Arc::downgrade(self) }
    }

    /// Returns the receiver of the input requests of a task.
    pub(crate) fn of_task(&self, task: &str) -> Option<Destination> {
        self.lock().by_task.get(task).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InputRegistry for OpenInputs {
    fn remove(&self, state: &Arc<InputState>) {
        let mut inner = self.lock();
        if inner.open.get(&state.id).is_some_and(|entry| Arc::ptr_eq(&entry.state, state)) {
            inner.open.remove(&state.id);
        }
    }
}

impl Entry {
    fn withdraw(self, id: RequestId) {
        if let (true, Some(events)) = (self.state.withdraw(), self.events) {
            // A full channel loses only the event: the input request itself knows it too.
            let _ = events.try_send(RoutedEvent::Withdrawn(id));
        }
    }
}

/// An input request while its input handler runs.
#[derive(Debug)]
pub(crate) struct Watched {
    state: Arc<InputState>,
    open: Weak<OpenInputs>,
}

impl Watched {
    /// Completes when the server withdraws the input request.
    pub(crate) async fn withdrawn(&self) {
        self.state.withdrawn().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.state.settle();
        if let Some(open) = self.open.upgrade() {
            open.remove(&self.state);
        }
    }
}

/// Receiver of the input requests of a task.
#[derive(Debug)]
pub(crate) struct TaskInputs {
    task: String,
    events: mpsc::Sender<RoutedEvent>,
    open: Weak<OpenInputs>,
}

impl Drop for TaskInputs {
    fn drop(&mut self) {
        let Some(open) = self.open.upgrade() else { return };
        let mut inner = open.lock();
        if inner.by_task.get(&self.task).is_some_and(|to| to.events.same_channel(&self.events)) {
            inner.by_task.remove(&self.task);
        }
    }
}
