//! Outbox of a pipe: unread messages, counted in bytes.
//!
//! A client that does not read must not make the server buffer without bound. On a separate pipe,
//! the server stops reading from the client. A stream of HTTP+SSE, whose client posts on other
//! connections, is closed.

use std::{
    ops::Deref,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use outlive_protocol::Receipt;
use tokio::sync::mpsc;

use crate::{
    budget::{Budget, Charge},
    caller::Caller,
};

/// Capacity of the outbox in messages. Senders wait when it is full.
const OUTBOX: usize = 256;

/// Name of the limit per pipe.
const LIMIT: &str = "max_stream_bytes";

/// Queue of messages for the client. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Unread>,
    meter: Arc<Meter>,
}

/// An unread message. Its bytes count until it is dropped.
#[derive(Debug)]
pub(crate) struct Unread {
    bytes: Vec<u8>,
    meter: Arc<Meter>,
    receipt: Option<Receipt>,
    _charge: Option<Charge>,
}

/// Counter of unread bytes.
#[derive(Debug)]
pub(crate) struct Meter {
    max: usize,
    /// Budget and caller that the bytes count against, for a stream that closes when it is not
    /// read.
    charged: Option<(Budget, Option<Caller>)>,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// Limit that was exceeded. The outbox then rejects all messages.
    exceeded: Option<&'static str>,
}

/// The pipe is closed.
#[derive(Debug)]
pub(crate) struct Gone;

impl Outbox {
    /// Creates an outbox without a budget. Its owner stops reading while too many bytes are unread.
    pub(crate) fn waiting(max: usize) -> (Self, mpsc::Receiver<Unread>) {
        Self::new(max, None)
    }

    /// Creates an outbox that closes when the stream, the caller or the server exceeds its limit of
    /// unread bytes.
    pub(crate) fn ending(
        max: usize,
        budget: Budget,
        caller: Option<Caller>,
    ) -> (Self, mpsc::Receiver<Unread>) {
        Self::new(max, Some((budget, caller)))
    }

    fn new(
        max: usize,
        charged: Option<(Budget, Option<Caller>)>,
    ) -> (Self, mpsc::Receiver<Unread>) {
        let (queue, unread) = mpsc::channel(OUTBOX);
        let meter = Meter { max, charged, state: Mutex::default(), room: Condvar::new() };
        (Self { queue, meter: Arc::new(meter) }, unread)
    }

    /// Sends a message to the outbox. Waits while the queue is full.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        self.send_tracked(bytes, None).await
    }

    /// Sends a message as [`Outbox::send`] does. The receipt is called when the message was written.
    pub(crate) async fn send_tracked(
        &self,
        bytes: Vec<u8>,
        receipt: Option<Receipt>,
    ) -> Result<(), Gone> {
        let mut unread = self.meter.count(bytes)?;
        unread.receipt = receipt;
        self.queue.send(unread).await.map_err(|_| Gone)
    }

    /// Wakes a reader that waits for a message.
    pub(crate) fn wake(&self) {
        if let Ok(place) = self.queue.try_reserve() {
            let (bytes, meter) = (Vec::new(), Arc::clone(&self.meter));
            place.send(Unread { bytes, meter, receipt: None, _charge: None });
        }
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl Meter {
    fn count(self: &Arc<Self>, bytes: Vec<u8>) -> Result<Unread, Gone> {
        let mut charge = None;
        let mut state = self.lock();
        if let Some((budget, caller)) = &self.charged {
            if state.exceeded.is_some() {
                return Err(Gone);
            }
            // The first message may exceed the limit: the size of a single message has its own
            // limit.
            if state.bytes > 0 && state.bytes + bytes.len() > self.max {
                state.exceeded = Some(LIMIT);
                return Err(Gone);
            }
            let charge = charge.insert(budget.open(caller.clone()));
            if let Err(exceeded) = charge.grow(bytes.len()) {
                state.exceeded = Some(exceeded.0);
                return Err(Gone);
            }
        }
        state.bytes += bytes.len();
        drop(state);
        Ok(Unread { bytes, meter: Arc::clone(self), receipt: None, _charge: charge })
    }

    /// Returns whether the unread bytes are within the limit.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes <= self.max
    }

    /// Blocks the thread until the unread bytes are within the limit.
    pub(crate) fn wait_for_room(&self) {
        let wait = self.room.wait_while(self.lock(), |state| state.bytes > self.max);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the limit that was exceeded.
    pub(crate) fn exceeded(&self) -> Option<&'static str> {
        self.lock().exceeded
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unread {
    /// Takes the callback for the delivery of the message.
    pub(crate) fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }
}

impl Deref for Unread {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let mut state = self.meter.lock();
        state.bytes -= self.bytes.len();
        if state.bytes <= self.meter.max {
            self.meter.room.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::{Gone, Outbox};
    use crate::budget::{Budget, Names};

    fn budget(bytes: usize) -> Budget {
        Budget::new(bytes, bytes, Names { per_caller: "mine", total: "all" })
    }

    #[tokio::test]
    async fn unread_stream_above_its_limit_rejects_messages() {
        let budget = budget(1_000);
        let (outbox, mut unread) = Outbox::ending(100, budget.clone(), None);
        outbox.send(vec![0; 500]).await.unwrap();
        assert!(matches!(outbox.send(vec![0; 1]).await, Err(Gone)));
        assert_eq!(outbox.meter().exceeded(), Some("max_stream_bytes"));
        drop(unread.recv().await);
        assert!(
            matches!(outbox.send(vec![0; 1]).await, Err(Gone)),
            "a stream that exceeded its limit stays closed"
        );
        let (other, _unread) = Outbox::ending(100, budget, None);
        other.send(vec![0; 1_000]).await.unwrap();
    }

    #[tokio::test]
    async fn streams_share_one_budget() {
        let budget = budget(100);
        let (first, _unread) = Outbox::ending(80, budget.clone(), None);
        let (second, _unread) = Outbox::ending(80, budget, None);
        first.send(vec![0; 60]).await.unwrap();
        assert!(matches!(second.send(vec![0; 60]).await, Err(Gone)));
        assert_eq!(second.meter().exceeded(), Some("all"));
    }

    #[tokio::test]
    async fn pipe_without_room_waits_until_its_client_reads() {
        let (outbox, mut unread) = Outbox::waiting(100);
        outbox.send(vec![0; 60]).await.unwrap();
        assert!(outbox.meter().has_room());
        outbox.send(vec![0; 60]).await.unwrap();
        assert!(!outbox.meter().has_room());
        let meter = Arc::clone(outbox.meter());
        let reader = thread::spawn(move || meter.wait_for_room());
        drop(unread.recv().await);
        reader.join().unwrap();
        assert!(outbox.meter().has_room());
    }
}
