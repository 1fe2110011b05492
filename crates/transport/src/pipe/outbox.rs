//! Messages that wait for the reader of a pipe, counted in bytes.
//!
//! A client that does not read must not make the server hold whatever it asks for. On a pipe of its
//! own it is not read from until it reads. A stream of HTTP+SSE, to which others post, ends.

use std::{
    ops::Deref,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;

use crate::{
    budget::{Budget, Charge},
    caller::Caller,
};

/// Messages that wait for the writer. Calls that produce more wait until there is room.
const OUTBOX: usize = 256;

/// The name of the limit that one pipe has.
const LIMIT: &str = "max_stream_bytes";

/// Where calls put what they have to say. Clones are the same.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Unread>,
    meter: Arc<Meter>,
}

/// A message that has not been read. It is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Unread {
    bytes: Vec<u8>,
    meter: Arc<Meter>,
    _charge: Option<Charge>,
}

/// Counts the bytes that wait, in the outbox and before it.
#[derive(Debug)]
pub(crate) struct Meter {
    max: usize,
    /// What a stream's bytes are charged to, where a stream that is not read ends.
    charged: Option<(Budget, Option<Caller>)>,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// The limit that was exceeded. Nothing is taken any more.
    exceeded: Option<&'static str>,
}

/// The reader of the pipe has gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Outbox {
    /// An outbox whose owner stops to read where too much waits in it.
    pub(crate) fn waiting(max: usize) -> (Self, mpsc::Receiver<Unread>) {
        Self::new(max, None)
    }

    /// One that takes nothing any more where too much waits in it, for this caller or in all.
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

    /// Puts a message into the outbox, when there is room for it.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let unread = self.meter.count(bytes)?;
        self.queue.send(unread).await.map_err(|_| Gone)
    }

    /// Wakes a reader that would otherwise wait for a message that never comes.
    pub(crate) fn wake(&self) {
        if let Ok(place) = self.queue.try_reserve() {
            let (bytes, meter) = (Vec::new(), Arc::clone(&self.meter));
            place.send(Unread { bytes, meter, _charge: None });
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
            // One message is taken in any case: how large it may be is decided elsewhere.
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
        Ok(Unread { bytes, meter: Arc::clone(self), _charge: charge })
    }

    /// Whether so little waits that more may be asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes <= self.max
    }

    /// Waits for that. Blocks the thread.
    pub(crate) fn wait_for_room(&self) {
        let wait = self.room.wait_while(self.lock(), |state| state.bytes > self.max);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// The limit that was exceeded, if one was.
    pub(crate) fn exceeded(&self) -> Option<&'static str> {
        self.lock().exceeded
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn a_stream_that_is_not_read_takes_no_more() {
        let budget = budget(1_000);
        let (outbox, mut unread) = Outbox::ending(100, budget.clone(), None);
        outbox.send(vec![0; 500]).await.unwrap();
        assert!(matches!(outbox.send(vec![0; 1]).await, Err(Gone)));
        assert_eq!(outbox.meter().exceeded(), Some("max_stream_bytes"));
        drop(unread.recv().await);
        assert!(matches!(outbox.send(vec![0; 1]).await, Err(Gone)), "it has ended");
        let (other, _unread) = Outbox::ending(100, budget, None);
        other.send(vec![0; 1_000]).await.unwrap();
    }

    #[tokio::test]
    async fn many_streams_have_one_budget() {
        let budget = budget(100);
        let (first, _unread) = Outbox::ending(80, budget.clone(), None);
        let (second, _unread) = Outbox::ending(80, budget, None);
        first.send(vec![0; 60]).await.unwrap();
        assert!(matches!(second.send(vec![0; 60]).await, Err(Gone)));
        assert_eq!(second.meter().exceeded(), Some("all"));
    }

    #[tokio::test]
    async fn a_pipe_waits_until_its_client_has_read() {
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
