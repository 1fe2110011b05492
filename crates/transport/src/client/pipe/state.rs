//! State that the tasks of a pipe share with its requests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use outlive_protocol::{Incoming, IncomingKind};
use tokio::sync::Notify;

use super::slot::Slot;

/// Limits of a pipe.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "two numbers")]
pub struct PipeLimits {
    /// Maximum bytes of one message.
    pub message_bytes: usize,
    /// Maximum number of queued messages per request. Further notifications are dropped.
    pub queued: usize,
}

#[derive(Debug)]
pub(super) struct PipeState {
    // A std mutex: no code awaits while it is held, and each access takes microseconds.
    pub(super) waiting: Mutex<HashMap<u64, Arc<Slot>>>,
    pub(super) closed: AtomicBool,
    pub(super) closing: Notify,
    pub(super) limits: PipeLimits,
}

impl PipeState {
    pub(super) fn new(limits: PipeLimits) -> Self {
        Self {
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            limits,
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain().for_each(|(_, slot)| slot.close());
    }

    pub(super) fn forget(&self, id: u64) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn slot(&self, id: u64) -> Option<Arc<Slot>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Delivers a message to its request. Returns the message if it belongs to no request.
    pub(super) fn deliver(&self, message: Incoming) -> Option<Incoming> {
        let id = match message.kind() {
            IncomingKind::Result { .. } | IncomingKind::Error { .. } => message.answers(),
            IncomingKind::Notification { .. } => message.belongs_to(),
            IncomingKind::Request { .. } => None,
        };
        let slot = id.and_then(|id| self.slot(id));
        match (slot, message.kind()) {
            (Some(slot), _) => {
                slot.put(message);
                None
            }
            (None, IncomingKind::Result { .. } | IncomingKind::Error { .. }) => {
                tracing::warn!(?id, "dropping a response: no request is waiting for it");
                None
            }
            (None, _) => Some(message),
        }
    }
}
