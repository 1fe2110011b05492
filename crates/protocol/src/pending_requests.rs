//! Requests of ours that wait for the client's answer: legacy sessions only.
//!
//! The other direction of [`InFlight`](crate::InFlight): there the client's requests by the
//! client's ids, here ours by ours.

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

/// The requests of one session that have not been answered.
#[derive(Default)]
pub struct PendingRequests {
    /// What the first id comes after.
    before: AtomicU64,
    last_id: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    slots: HashMap<u64, Arc<Slot>>,
    /// The client has gone: whatever is asked from now on fails at once.
    closed: bool,
}

/// Why a question of a session that has ended is not answered.
const GONE: &str = "the client's session has ended";

/// What a client answers: a result, or an error.
pub type ClientReply = Result<RawJson, ErrorObject>;

// Shared by the table and the one who waits; a std mutex, held for a take or a put.
#[derive(Default)]
struct Slot(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    reply: Option<ClientReply>,
    waker: Option<Waker>,
}

/// A request that has been made. Dropping it forgets the request; an answer is ignored then.
pub struct PendingRequest {
    id: u64,
    slot: Arc<Slot>,
    table: Arc<PendingRequests>,
}

impl PendingRequests {
    /// Lets the ids begin at a random place of the session's own range, so that those of two
    /// replicas of one session differ. Before the first request.
    pub(crate) fn begin_in_range_of(&self, session: &str) {
        let mut bytes = [0; 4];
        // Without random bytes there are no sessions either.
        if getrandom::fill(&mut bytes).is_ok() {
            // One bit is left free: no session asks so often that it leaves its range.
            let before = range_of(session) | u64::from(u32::from_le_bytes(bytes) >> 1);
            self.before.store(before, Ordering::Relaxed);
            self.last_id.store(before, Ordering::Relaxed);
        }
    }

    /// Whether an id was given to a request here, answered or not.
    pub fn has_given(&self, id: u64) -> bool {
        let given = self.before.load(Ordering::Relaxed)..self.last_id.load(Ordering::Relaxed);
        id.checked_sub(1).is_some_and(|before| given.contains(&before))
    }

    /// The requests that wait for an answer.
    pub fn waiting(&self) -> Vec<u64> {
        self.lock().slots.keys().copied().collect()
    }

    /// Whether any request waits for an answer.
    pub fn is_waiting(&self) -> bool {
        !self.lock().slots.is_empty()
    }

    /// Gives a new request its id.
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

    /// Hands an answer to whoever waits for it; `false` if nobody does, which is no error: the
    /// answer and the loss of interest in it may cross.
    pub fn answer(&self, id: u64, reply: ClientReply) -> bool {
        let Some(slot) = self.lock().slots.remove(&id) else { return false };
        let mut answered = slot.lock();
        answered.reply = Some(reply);
        let waker = answered.waker.take();
        drop(answered);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Answers a request for a client that cannot be reached.
    pub fn fail(&self, id: u64, message: impl Into<String>) {
        let code = outlive_wire::code::INTERNAL;
        self.answer(id, Err(ErrorObject { code, message: message.into(), data: None }));
    }

    /// The client has gone: nothing will be answered any more.
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

/// Where the ids of a session begin, on all replicas: 16 bits that its name says, and 32 bits below
/// them. Every client can read 48 bits as a number.
fn range_of(session: &str) -> u64 {
    // FNV-1a: replicas of different versions must agree, and nothing depends on its being secret.
    let hash = session.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 48 << 32
}

/// Whether a request with this id can be one of this session, made by any replica.
pub(crate) fn is_in_range_of(session: &str, id: u64) -> bool {
    id >> 32 << 32 == range_of(session)
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Answered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingRequest {
    /// The request's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the answer. Ready once.
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
        f.debug_struct("Asked").field("waiting", &self.lock().slots.len()).finish()
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("id", &self.id).finish_non_exhaustive()
    }
}
