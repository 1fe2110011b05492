//! `kill -9` at the write points of the servers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::kinds::Kind;
use crate::console::site::Site;

/// Time after a kill for which only the points and kinds with the fewest kills are next.
const PREFERENCE: Duration = Duration::from_secs(1);
/// Longest wait for an order before the killer checks whether the campaign is over.
const WAIT: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(5);

/// A write of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    /// The commit that creates the task and its approval request.
    Create,
    /// The reply to a call that waits.
    Pending,
    /// The commit of a vote.
    Vote,
    /// The commit of a cancellation.
    Withdraw,
    /// The commit of the worker that finds the decision timeout over.
    Expire,
    /// The claim of the approved task and the commit of its start.
    Start,
    /// The commit of the result, and its reply.
    End,
}

impl Point {
    const ALL: [Self; 7] = [
        Self::Create,
        Self::Pending,
        Self::Vote,
        Self::Withdraw,
        Self::Expire,
        Self::Start,
        Self::End,
    ];

    /// Milliseconds between the event that announces the write and the kill.
    fn delay(self) -> Range<u64> {
        match self {
            Self::Create | Self::Vote | Self::Withdraw => 0..25,
            Self::Pending => 0..10,
            Self::Expire => 500..800,
            Self::Start => 0..40,
            Self::End => 40..200,
        }
    }
}

/// The order to kill servers.
struct Order {
    point: Point,
    kind: Kind,
    victims: Vec<usize>,
    delay: Duration,
}

/// Orders for [`Killer::work`].
pub(super) struct Orders(Receiver<Order>);

/// Takes orders from clients and people, one at a time. An order during another one is dropped,
/// because its write is over when the killer has time for it.
pub(super) struct Killer {
    orders: SyncSender<Order>,
    tally: Mutex<Tally>,
    /// Announced requests whose response was lost: the kill fell between request and response.
    lost: AtomicUsize,
}

/// The start of a replica.
type Start<'scope> = ScopedJoinHandle<'scope, Result<()>>;

impl Killer {
    /// Creates a killer with a target for each point and kind, and the queue that
    /// [`Killer::work`] reads.
    pub(super) fn new(target: usize) -> (Self, Orders) {
        // Without a buffer, an order is accepted only while the killer waits for one.
        let (orders, waiting) = sync_channel(0);
        let (tally, lost) = (Mutex::new(Tally::new(target)), AtomicUsize::new(0));
        (Self { orders, tally, lost }, Orders(waiting))
    }

    /// Announces a write of a server, which is killed around it if a kill is due at one of the
    /// points. Only a lost response shows that the kill fell into the request; see
    /// [`Killer::lose`].
    pub(super) fn announce(&self, points: &[Point], key: &str, victims: Vec<usize>, random: u64) {
        let Some(kind) = Kind::of_key(key) else { return };
        let Some(point) = self.tally().choose(points, kind, Instant::now()) else { return };
        let range = point.delay();
        let delay = Duration::from_millis(range.start + random % (range.end - range.start));
        // A busy killer drops the order.
        let _ = self.orders.try_send(Order { point, kind, victims, delay });
    }

    /// Counts an announced request that got no response.
    pub(super) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of announced requests that got no response.
    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Executes orders until `is_over`, then waits for the replicas that start. A killed replica
    /// starts again while the next order is executed, if at least two others are up.
    pub(super) fn work(
        &self,
        orders: &Orders,
        site: &Site,
        is_over: impl Fn() -> bool,
    ) -> Result<()> {
        let needed = site.replicas().min(2);
        thread::scope(|scope| {
            let mut starts: Vec<Start<'_>> = Vec::new();
            while !is_over() {
                starts = unfinished(starts)?;
                if site.up() < needed {
                    thread::sleep(POLL);
                    continue;
                }
                let Ok(order) = orders.0.recv_timeout(WAIT) else { continue };
                thread::sleep(order.delay);
                let mut killed = Vec::new();
                for victim in order.victims {
                    if site.kill(victim)? {
                        killed.push(victim);
                    }
                }
                if !killed.is_empty() {
                    self.tally().add(order.point, order.kind, Instant::now());
                }
                let start = |victim| scope.spawn(move || site.launch(victim));
                starts.extend(killed.into_iter().map(start));
            }
            starts.into_iter().try_for_each(join)
        })
    }

    /// Whether every point of every kind reached the target.
    pub(super) fn is_done(&self) -> bool {
        let tally = self.tally();
        tally.least() >= tally.target
    }

    /// Returns the number of all kills, and the smallest number of a point and kind.
    pub(super) fn summary(&self) -> (usize, usize) {
        let tally = self.tally();
        (tally.done.values().sum(), tally.least())
    }

    /// A poisoned lock is usable: each change is one addition.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the starts that have not ended, and the error of one that has failed.
fn unfinished(starts: Vec<Start<'_>>) -> Result<Vec<Start<'_>>> {
    let (ended, running): (Vec<_>, Vec<_>) =
        starts.into_iter().partition(ScopedJoinHandle::is_finished);
    ended.into_iter().try_for_each(join)?;
    Ok(running)
}

fn join(start: Start<'_>) -> Result<()> {
    start.join().map_err(|_| anyhow!("the start of a replica panicked"))?
}

/// Kills of each point and kind.
struct Tally {
    done: BTreeMap<(Point, Kind), usize>,
    target: usize,
    /// Time of the last kill.
    last: Option<Instant>,
}

impl Tally {
    fn new(target: usize) -> Self {
        let all = Point::ALL.into_iter().flat_map(|point| Kind::ALL.map(|kind| (point, kind)));
        Self { done: all.map(|at| (at, 0)).collect(), target, last: None }
    }

    /// Returns the one of these points with the fewest kills of this kind. Returns `None` if it has
    /// enough, or if others have fewer and get the preference.
    fn choose(&self, points: &[Point], kind: Kind, now: Instant) -> Option<Point> {
        let count = |point: Point| self.done.get(&(point, kind)).copied().unwrap_or(0);
        let point = points.iter().copied().min_by_key(|point| count(*point))?;
        let is_preferred = count(point) == self.least()
            || self.last.is_none_or(|last| now.duration_since(last) >= PREFERENCE);
        (count(point) < self.target && is_preferred).then_some(point)
    }

    fn add(&mut self, point: Point, kind: Kind, now: Instant) {
        *self.done.entry((point, kind)).or_insert(0) += 1;
        self.last = Some(now);
    }

    /// Kills of the point and kind with the fewest.
    fn least(&self) -> usize {
        self.done.values().copied().min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Kind, PREFERENCE, Point, Tally};

    #[test]
    fn point_and_kind_with_fewest_kills_is_preferred_until_its_target() {
        let (mut tally, now) = (Tally::new(2), Instant::now());
        let later = now + PREFERENCE;
        let both = [Point::Start, Point::End];
        assert_eq!(tally.choose(&both, Kind::Tasks, now), Some(Point::Start));
        tally.add(Point::Start, Kind::Tasks, now);
        assert_eq!(tally.choose(&both, Kind::Tasks, now), Some(Point::End));
        assert_eq!(tally.choose(&both[..1], Kind::Tasks, now), None);
        assert_eq!(tally.choose(&both[..1], Kind::Session, now), Some(Point::Start));
        assert_eq!(tally.choose(&both[..1], Kind::Tasks, later), Some(Point::Start));
        tally.add(Point::Start, Kind::Tasks, now);
        assert_eq!(tally.choose(&both[..1], Kind::Tasks, later), None);
    }

    #[test]
    fn smallest_number_of_kills_covers_every_point_and_kind() {
        let (mut tally, now) = (Tally::new(1), Instant::now());
        for point in Point::ALL {
            for kind in Kind::ALL {
                assert_eq!(tally.least(), 0, "{point:?} {kind:?}");
                tally.add(point, kind, now);
            }
        }
        assert_eq!(tally.least(), 1);
    }
}
