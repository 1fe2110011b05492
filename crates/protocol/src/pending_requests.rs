//! Requests of the server that wait for a response of the client. Legacy sessions only.
//!
//! The opposite of [`InFlight`](crate::InFlight), which holds the client's requests.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use outlive_wire::{ErrorObject, RawJson};

/// The pending requests of one session.
#[derive(Default)]
pub struct PendingRequests {
    /// Number before the first request ID.
    before: AtomicU64,
    last_id: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    slots: HashMap<u64, Arc<Slot>>,
    /// Set when the session ends. New requests then fail at once.
    closed: bool,
}

/// Error message for the requests of a session that has ended.
const GONE: &str = "the session of the client has ended";

/// The client's response: a result or an error.
pub type ClientReply = Result<RawJson, ErrorObject>;

// The table and the waiting run share a slot. A std mutex: no code awaits while it is held.
#[derive(Default)]
struct Slot(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    reply: Option<ClientReply>,
    waker: Option<Waker>,
}

/// A request that was sent. Dropping it removes the request; a late response is ignored.
pub struct PendingRequest {
    id: u64,
    slot: Arc<Slot>,
    table: Arc<PendingRequests>,
}

impl PendingRequests {
    /// Sets a random start in the session's ID range, so that the request IDs of two replicas
    /// differ. Call it before the first request.
    pub(crate) fn begin_in_range_of(&self, session: &str) {
        let mut bytes = [0; 4];
        // Failure is harmless: without random bytes the server cannot create session IDs either.
        if getrandom::fill(&mut bytes).is_ok() {
            // The shift leaves half of the range for increments, more than any session needs.
            let before = range_of(session) | u64::from(u32::from_le_bytes(bytes) >> 1);
            self.before.store(before, Ordering::Relaxed);
            self.last_id.store(before, Ordering::Relaxed);
        }
    }

    /// Returns whether this process used an ID for a request of this session.
    pub fn has_given(&self, id: u64) -> bool {
        let given = self.before.load(Ordering::Relaxed)..self.last_id.load(Ordering::Relaxed);
        id.checked_sub(1).is_some_and(|before| given.contains(&before))
    }

    /// Returns the IDs of the pending requests.
    pub fn waiting(&self) -> Vec<u64> {
        self.lock().slots.keys().copied().collect()
    }

    /// Returns whether any request is pending.
    pub fn is_waiting(&self) -> bool {
        !self.lock().slots.is_empty()
    }

    /// Registers a new request and assigns its ID.
    pub fn open(self: &Arc<Self>) -> PendingRequest {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = Arc::<Slot>::default();
        let mut waiting = self.lock();
        waiting.slots.insert(id, Arc::clone(&slot));
        let closed = waiting.closed;
        drop(waiting);
        if closed {
            self.fail(id, GONE);
        }
        PendingRequest { id, slot, table: Arc::clone(self) }
    }

    /// Delivers a response. Returns `false` if no request with this ID is pending, which is not an
    /// error: a response can race with the request's removal.
    pub fn answer(&self, id: u64, reply: ClientReply) -> bool {
        let Some(slot) = self.lock().slots.remove(&id) else { return false };
        let mut answered = slot.lock();
        answered.reply = Some(reply);
        let waker = answered.waker.take();
        drop(answered);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Fails a request because the client cannot be reached.
    pub fn fail(&self, id: u64, message: impl Into<String>) {
        let code = outlive_wire::code::INTERNAL;
        self.answer(id, Err(ErrorObject { code, message: message.into(), data: None }));
    }

    /// Fails all pending and future requests, because the session has ended.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        let open: Vec<u64> = waiting.slots.keys().copied().collect();
        drop(waiting);
        open.into_iter().for_each(|id| self.fail(id, GONE));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the start of a session's ID range, equal on all replicas: 16 bits of the hash of the
/// session ID, then 32 zero bits. Every client can represent 48 bits as a number.
fn range_of(session: &str) -> u64 {
    // FNV-1a: stable across versions of the server, and it does not have to be secret.
    let hash = session.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 48 << 32
}

/// Returns whether any replica could have used this ID for a request of this session.
pub(crate) fn is_in_range_of(session: &str, id: u64) -> bool {
    id >> 32 << 32 == range_of(session)
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Answered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingRequest {
    /// Returns the request ID.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Polls for the response. Completes once.
    pub fn poll_reply(&self, cx: &mut Context<'_>) -> Poll<ClientReply> {
        let mut answered = self.slot.lock();
        match answered.reply.take() {
            Some(reply) => Poll::Ready(reply),
            None => {
                answered.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.table.lock().slots.remove(&self.id);
    }
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests").field("waiting", &self.lock().slots.len()).finish()
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest").field("id", &self.id).finish_non_exhaustive()
    }
}
