//! Decides which client documents are fetched now, and which wait.
//!
//! Any browser can make the proxy fetch a document from any host, so a host that does not reply must
//! cost others nothing. A host and a caller have a share of all places. Who has no place waits, and
//! the place that becomes free goes to the waiting caller with the fewest places. A fetch has
//! [`MIN_TIME`] for itself; after that it gives its place to whoever waits for it.

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

/// Number of documents that are fetched at once.
const MAX_FETCHES: usize = 32;

/// Number of documents that one caller has fetched at once.
const MAX_FETCHES_PER_CALLER: usize = 16;

/// Number of documents that are fetched from one host at once.
const MAX_FETCHES_PER_HOST: usize = 2;

/// Number of fetches that wait for a place.
const MAX_WAITING: usize = 256;

/// Number of fetches of one caller, or from one host, that wait for a place.
const MAX_WAITING_SHARE: usize = 64;

/// How long a fetch waits for a place.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a fetch keeps its place while others wait for it.
const MIN_TIME: Duration = Duration::from_secs(1);

/// The places of all fetches.
#[derive(Default)]
pub(super) struct Gate {
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// Notified when a fetch begins to wait.
    waits: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    fetching: Vec<Fetching>,
    waiting: VecDeque<(Fetching, oneshot::Sender<()>)>,
}

/// A fetch: its number, who caused it and where it goes.
struct Fetching {
    number: u64,
    caller: Option<IpAddr>,
    host: String,
}

/// A place, or the wait for one. Dropping it lets another fetch start.
pub(super) struct Turn<'g> {
    gate: &'g Gate,
    number: u64,
}

impl Gate {
    /// Waits for a place. Returns `None` if too many fetches wait already, or the wait takes too long.
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
    /// Returns when another fetch has got this place: not before [`MIN_TIME`] is over.
    pub(super) async fn taken(&self) {
        tokio::time::sleep(MIN_TIME).await;
        loop {
            let mut waits = std::pin::pin!(self.gate.waits.notified());
            // Registered before the look, so that no fetch begins to wait unseen in between.
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
    /// Starts what waits and has room.
    fn start(&mut self) {
        while let Some(at) = self.next() {
            let Some((one, start)) = self.waiting.remove(at) else { return };
            self.fetching.push(one);
            // If the receiver is gone, its `Turn` is about to be dropped and gives the place back.
            let _ = start.send(());
        }
    }

    /// Returns the position of the waiting fetch whose caller has the fewest places, the oldest first.
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

    /// Gives the place of a fetch to one that waits for it. Returns whether one did.
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

/// The network of a caller: a household or a machine has all addresses of an IPv6 /64.
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
        gate.enter(caller(last), host).await.expect("has a place")
    }

    async fn waits(future: impl Future) -> bool {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_from_busy_host_waits_and_others_do_not() {
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
    async fn caller_with_all_of_its_share_leaves_places_for_others() {
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
    async fn slow_fetch_gives_its_place_only_to_one_that_waits_for_it() {
        let gate = Gate::default();
        let (first, second) =
            (now(&gate, 1, "slow.example").await, now(&gate, 1, "slow.example").await);
        let alone = tokio::time::timeout(super::WAIT_TIMEOUT, first.taken()).await;
        assert!(alone.is_err(), "nothing waits");
        let given = async {
            tokio::join!(gate.enter(caller(2), "slow.example"), first.taken()).0.is_some()
        };
        let given = tokio::time::timeout(super::WAIT_TIMEOUT * 2, given).await;
        assert_eq!(given, Ok(true), "one waits for the place");
        let stays = tokio::time::timeout(super::WAIT_TIMEOUT, second.taken()).await;
        assert!(stays.is_err(), "one fetch waited, and one place was given");
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_without_a_place_is_refused_in_the_end() {
        let gate = Gate::default();
        let _turns = (now(&gate, 1, "slow.example").await, now(&gate, 1, "slow.example").await);
        assert!(gate.enter(caller(1), "slow.example").await.is_none(), "it waited");
        let queue: Vec<_> =
            (0..MAX_WAITING_SHARE).map(|_| gate.queue(caller(1), "slow.example")).collect();
        assert!(queue.iter().all(Option::is_some));
        assert!(gate.queue(caller(2), "slow.example").is_none(), "the queue of the host is full");
        assert!(gate.queue(caller(1), "quick.example").is_none(), "so is that of the caller");
        now(&gate, 2, "quick.example").await;
        drop(queue);
        assert!(gate.queue(caller(1), "quick.example").is_some());
    }
}
