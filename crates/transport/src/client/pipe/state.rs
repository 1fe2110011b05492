//! State that the tasks of a pipe share with its requests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use outlive_protocol::{Incoming, IncomingKind};
use tokio::sync::{Notify, watch};

use super::{long_line::LongLine, slot::Slot};
use crate::client::{TransportError, TransportErrorKind};

/// Limits of a pipe.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "three numbers")]
pub struct PipeLimits {
    /// Maximum bytes of one message.
    pub message_bytes: usize,
    /// Maximum number of queued messages per request. Further notifications are dropped.
    pub queued: usize,
    /// Lines in a row that are not JSON-RPC messages, after which the pipe is closed.
    pub invalid: usize,
}

#[derive(Debug)]
pub(super) struct PipeState {
    // A std mutex: no code awaits while it is held, and each access takes microseconds.
    pub(super) waiting: Mutex<HashMap<u64, Arc<Slot>>>,
    /// Reason why the pipe is closed.
    closed: OnceLock<TransportErrorKind>,
    pub(super) closing: Notify,
    pub(super) limits: PipeLimits,
    /// Responses that arrived after the request had its response, before it was forgotten.
    pub(super) unread_responses: AtomicU64,
    /// Number of messages that belong to no request.
    pub(super) others: AtomicU64,
    /// Number of those that their receiver has handled.
    pub(super) handled: watch::Sender<u64>,
}

impl PipeState {
    pub(super) fn new(limits: PipeLimits) -> Self {
        Self {
            waiting: Mutex::default(),
            closed: OnceLock::new(),
            closing: Notify::new(),
            limits,
            unread_responses: AtomicU64::new(0),
            others: AtomicU64::new(0),
            handled: watch::Sender::new(0),
        }
    }

    /// Closes the pipe. Only the first reason counts.
    pub(super) fn close(&self, reason: TransportErrorKind) {
        let reason = self.closed.get_or_init(|| reason).clone();
        self.closing.notify_waiters();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain().for_each(|(_, slot)| slot.close(reason.clone()));
    }

    /// Returns why the pipe is closed.
    pub(super) fn closed(&self) -> Option<&TransportErrorKind> {
        self.closed.get()
    }

    /// Fails the request whose response exceeds the limit of a message.
    pub(super) fn too_long(&self, line: &LongLine) {
        let limit = self.limits.message_bytes;
        tracing::warn!(bytes = line.bytes, limit, "skipped a message that exceeds the limit");
        let slot = match line.answers() {
            Some(id) => self.slot(id),
            None if line.has_method() => None,
            None => self.only_slot(),
        };
        if let Some(slot) = slot {
            let error = TransportError::after_sending(TransportErrorKind::TooLarge(limit));
            slot.fail(error.because(format!("it has {} bytes", line.bytes)));
        }
    }

    /// Returns the only request that waits, if there is one.
    fn only_slot(&self) -> Option<Arc<Slot>> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slots = waiting.values();
        slots.next().filter(|_| waiting.len() == 1).cloned()
    }

    pub(super) fn forget(&self, id: u64) {
        let forgotten = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let unread = forgotten.map_or(0, |slot| slot.responses());
        self.unread_responses.fetch_add(unread, Ordering::Relaxed);
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
        match id.and_then(|id| self.slot(id)) {
            Some(slot) => {
                slot.put(message);
                None
            }
            None => Some(message),
        }
    }
}
