//! Concurrency limits for fetches of client documents.
//!
//! Any browser can make the proxy fetch a document from any host, so a host that does not respond
//! must not block others. Each host and each caller has a share of all slots. A free slot goes to
//! the waiting caller with the fewest slots. A fetch keeps its slot for at least [`MIN_TIME`], and
//! then releases it to a waiting fetch.

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

/// Maximum number of concurrent fetches.
const MAX_FETCHES: usize = 32;

/// Maximum number of concurrent fetches per caller.
const MAX_FETCHES_PER_CALLER: usize = 16;

/// Maximum number of concurrent fetches per host.
const MAX_FETCHES_PER_HOST: usize = 2;

/// Maximum number of waiting fetches.
const MAX_WAITING: usize = 256;

/// Maximum number of waiting fetches per caller and per host.
const MAX_WAITING_SHARE: usize = 64;

/// Maximum time that a fetch waits for a slot.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum time that a fetch keeps its slot while others wait.
const MIN_TIME: Duration = Duration::from_secs(1);

/// Slots of all fetches.
#[derive(Default)]
pub(super) struct Gate {
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// Notified when a fetch starts to wait.
    waits: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    fetching: Vec<Fetching>,
    waiting: VecDeque<(Fetching, oneshot::Sender<()>)>,
}

/// A fetch with its number, its caller and its host.
struct Fetching {
    number: u64,
    caller: Option<IpAddr>,
    host: String,
}

/// A slot, or a position in the queue. Dropping it lets another fetch start.
pub(super) struct Turn<'g> {
    gate: &'g Gate,
    number: u64,
}

impl Gate {
    /// Waits for a slot. Returns `None` if the queue is full, or if the wait times out.
    pub(super) async fn enter(&self, caller: Option<IpAddr>, host: &str) -> Option<Turn<'_>> {
        let (turn, started) = self.queue(caller.map(network), host)?;
        tokio::time::timeout(WAIT_TIMEOUT, started).await.ok()?.ok()?;
        Some(turn)
    }

    fn queue(
        &self,
        caller: Option<IpAddr>,
        host: &str,
    ) -> Option<(Turn<'_>, oneshot::Receiver<()>)> {
        let mut state = self.state();
        let waiting = |same: &dyn Fn(&Fetching) -> bool| {
            state.waiting.iter().filter(|(one, _)| same(one)).count()
        };
        if state.waiting.len() >= MAX_WAITING
            || waiting(&|one| one.caller == caller) >= MAX_WAITING_SHARE
            || waiting(&|one| one.host == host) >= MAX_WAITING_SHARE
        {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let (start, started) = oneshot::channel();
        state.waiting.push_back((Fetching { number, caller, host: host.to_owned() }, start));
        state.start();
        drop(state);
        self.waits.notify_waiters();
        Some((Turn { gate: self, number }, started))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Completes when another fetch has taken this slot, not before [`MIN_TIME`] has passed.
    pub(super) async fn taken(&self) {
        tokio::time::sleep(MIN_TIME).await;
        loop {
            let mut waits = std::pin::pin!(self.gate.waits.notified());
            // Enabled before the check, so that a fetch that starts to wait in between is not
            // missed.
            waits.as_mut().enable();
            if self.gate.state().give(self.number) {
                return;
            }
            waits.await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.fetching.retain(|one| one.number != self.number);
        state.waiting.retain(|(one, _)| one.number != self.number);
        state.start();
    }
}

impl State {
    /// Starts waiting fetches while slots are free.
    fn start(&mut self) {
        while let Some(at) = self.next() {
            let Some((one, start)) = self.waiting.remove(at) else { return };
            self.fetching.push(one);
            // If the receiver is gone, its `Turn` is about to be dropped, which releases the slot.
            let _ = start.send(());
        }
    }

    /// Returns the index of the waiting fetch whose caller has the fewest slots. The oldest one
    /// wins a tie.
    fn next(&self) -> Option<usize> {
        if self.fetching.len() >= MAX_FETCHES {
            return None;
        }
        let of_caller = |one: &Fetching| self.count(|other| other.caller == one.caller);
        let has_room = |one: &Fetching| {
            of_caller(one) < MAX_FETCHES_PER_CALLER
                && self.count(|other| other.host == one.host) < MAX_FETCHES_PER_HOST
        };
        let all = self.waiting.iter().enumerate().filter(|(_, (one, _))| has_room(one));
        all.min_by_key(|(_, (one, _))| of_caller(one)).map(|(at, _)| at)
    }

    fn count(&self, same: impl Fn(&Fetching) -> bool) -> usize {
        self.fetching.iter().filter(|one| same(one)).count()
    }

    /// Transfers the slot of a fetch to a waiting one. Returns whether a fetch took it.
    fn give(&mut self, number: u64) -> bool {
        let Some(at) = self.fetching.iter().position(|one| one.number == number) else {
            return true;
        };
        let mine = self.fetching.swap_remove(at);
        let others = self.fetching.len();
        self.start();
        let given = self.fetching.len() > others;
        if !given {
            self.fetching.push(mine);
        }
        given
    }
}

/// Returns the network of a caller: for IPv6 the /64, because a machine controls all its addresses.
fn network(caller: IpAddr) -> IpAddr {
    match caller {
        IpAddr::V4(_) => caller,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, net::IpAddr, pin::pin, task::Poll};

    use super::{Gate, MAX_FETCHES_PER_CALLER, MAX_FETCHES_PER_HOST, MAX_WAITING_SHARE, Turn};

    fn caller(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    async fn now<'g>(gate: &'g Gate, last: u8, host: &str) -> Turn<'g> {
        gate.enter(caller(last), host).await.expect("expected a slot")
    }

    async fn waits(future: impl Future) -> bool {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_from_a_busy_host_waits_and_other_hosts_do_not() {
        let gate = Gate::default();
        let mut turns = Vec::new();
        for _ in 0..MAX_FETCHES_PER_HOST {
            turns.push(now(&gate, 1, "slow.example").await);
        }
        assert!(waits(gate.enter(caller(2), "slow.example")).await);
        let other = now(&gate, 1, "quick.example").await;
        turns.pop();
        let next = now(&gate, 2, "slow.example").await;
        drop((other, next));
    }

    #[tokio::test(start_paused = true)]
    async fn caller_at_its_limit_leaves_slots_for_other_callers() {
        let gate = Gate::default();
        let mut turns = Vec::new();
        for at in 0..MAX_FETCHES_PER_CALLER {
            turns.push(now(&gate, 1, &format!("{at}.example")).await);
        }
        let further = gate.enter(caller(1), "more.example");
        assert!(waits(further).await);
        now(&gate, 2, "quick.example").await;
    }

    #[tokio::test(start_paused = true)]
    async fn slow_fetch_releases_its_slot_only_to_a_waiting_fetch() {
        let gate = Gate::default();
        let (first, second) =
            (now(&gate, 1, "slow.example").await, now(&gate, 1, "slow.example").await);
        let alone = tokio::time::timeout(super::WAIT_TIMEOUT, first.taken()).await;
        assert!(alone.is_err(), "no fetch waits");
        let given = async {
            tokio::join!(gate.enter(caller(2), "slow.example"), first.taken()).0.is_some()
        };
        let given = tokio::time::timeout(super::WAIT_TIMEOUT * 2, given).await;
        assert_eq!(given, Ok(true), "a waiting fetch takes the slot");
        let stays = tokio::time::timeout(super::WAIT_TIMEOUT, second.taken()).await;
        assert!(stays.is_err(), "only one slot is released for one waiting fetch");
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_without_a_slot_is_rejected_after_a_timeout() {
        let gate = Gate::default();
        let _turns = (now(&gate, 1, "slow.example").await, now(&gate, 1, "slow.example").await);
        assert!(gate.enter(caller(1), "slow.example").await.is_none(), "the wait timed out");
        let queue: Vec<_> =
            (0..MAX_WAITING_SHARE).map(|_| gate.queue(caller(1), "slow.example")).collect();
        assert!(queue.iter().all(Option::is_some));
        assert!(gate.queue(caller(2), "slow.example").is_none(), "the queue of the host is full");
        assert!(
            gate.queue(caller(1), "quick.example").is_none(),
            "the queue of the caller is full"
        );
        now(&gate, 2, "quick.example").await;
        drop(queue);
        assert!(gate.queue(caller(1), "quick.example").is_some());
    }
}
