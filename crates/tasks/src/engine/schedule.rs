//! What an engine does by itself: claims what is due, keeps its leases, sweeps.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    EngineEvent, Inner, Signals, StartError,
    clean_up::clean_up,
    drive::{self, Held},
    room::{Expected, NOT_HELD},
};
use crate::{
    JournalEntry,
    capacity::Grant,
    store::{
        Changes, Claim, ClaimedTask, CleanupState, Lease, StoreError, TaskId, TaskOutcome,
        Transition,
    },
    time::{millis, wall_clock},
};

/// Claims and sweeps, for as long as the engine is used.
pub(super) async fn claims(engine: Weak<Inner>) {
    let mut swept: Option<Instant> = None;
    loop {
        let Some(inner) = engine.upgrade() else { return };
        if *inner.stopping.borrow() {
            return;
        }
        let config = &inner.config;
        let left = claim(&inner).await;
        if swept.is_none_or(|swept| swept.elapsed() >= config.sweep_interval) {
            // What is left is swept before anything is waited for.
            let more = sweep(&inner).await;
            swept = (!more).then(Instant::now);
        }
        let due = match left {
            _ if swept.is_none() => continue,
            Left::Nothing => {
                let full = inner.shares.full(config.per_caller());
                inner.store.next_due(&full).await.ok().flatten()
            }
            Left::More => continue,
            Left::NoRoom => None,
        };
        let pause = due
            .unwrap_or(config.poll_interval)
            .clamp(Duration::from_millis(1), config.poll_interval);
        let _ = tokio::time::timeout(pause, inner.due.notified()).await;
    }
}

/// Ends what has taken too long, and forgets what has been over for long enough. `true` if there may
/// be more of it.
pub(super) async fn sweep(inner: &Inner) -> bool {
    let config = &inner.config;
    match (inner.store.sweep(config.claim_batch, config.retention).await, &inner.observer) {
        (Ok(swept), observer) => {
            observer.iter().for_each(|observer| observer.swept(&swept));
            swept.more
        }
        (Err(error), _) => {
            tracing::warn!(%error, "tasks could not be swept");
            false
        }
    }
}

/// What is left when tasks have been claimed.
enum Left {
    /// Nothing that is due.
    Nothing,
    /// Perhaps more, and there is room for it.
    More,
    /// Perhaps more, and there is no room for it until something ends.
    NoRoom,
}

/// Interval between two claims for callers that run few tasks, after a claim that found none.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(100);

/// The claims of an engine, which come one after another.
#[derive(Default)]
pub(super) struct Claims {
    asked: AtomicU64,
    answered: AtomicU64,
    /// When there was last nothing of a caller that runs little.
    no_others: Mutex<Option<Instant>>,
}

impl Claims {
    fn lock_no_others(&self) -> MutexGuard<'_, Option<Instant>> {
        self.no_others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a claim.
    async fn asked<T>(&self, claim: impl Future<Output = T>) -> T {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = claim.await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

/// Claims what there is room for.
async fn claim(inner: &Arc<Inner>) -> Left {
    let room = inner.slots.available_permits().min(inner.config.claim_batch);
    // Taken before they are needed, so that no more is claimed than can be begun.
    let slots = u32::try_from(room).ok().filter(|room| *room > 0);
    let slots = slots.and_then(|room| Arc::clone(&inner.slots).try_acquire_many_owned(room).ok());
    let Some(mut slots) = slots else {
        return if inner.has_room() { Left::More } else { Left::NoRoom };
    };
    let asked = Instant::now();
    let mut grants = inner.take_grants(room);
    let claimed = match ask(inner, room, &grants).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::warn!(%error, "no tasks could be claimed");
            inner.lock_granted().append(&mut grants);
            return Left::Nothing;
        }
    };
    if !claimed.is_empty() && asked.elapsed() > inner.config.lease_duration / 6 {
        // The leases began long ago.
        inner.renew.notify_one();
    }
    let all_taken = claimed.len() < room;
    for claimed in claimed {
        let (inner, permit) = (Arc::clone(inner), slots.split(1));
        // Counted before more is claimed.
        let share = inner.share(&claimed.principal);
        let slot = permit.map(|permit| inner.slot_of(permit, share));
        let is_its = |grant: &Grant| *grant.task() == claimed.lease.task;
        let grant = grants.iter().position(is_its).map(|index| grants.swap_remove(index));
        tokio::spawn(async move {
            begin(&inner, claimed, None).await;
            // What the run has not taken goes to others.
            drop((grant, slot));
        });
    }
    // Those that were not claimed have ended, or run somewhere.
    drop(grants);
    match all_taken {
        true => Left::Nothing,
        false if inner.has_room() => Left::More,
        false => Left::NoRoom,
    }
}

/// Asks the store for tasks. Where places are scarce, those of callers that have less than their share
/// of them go first: a caller that has many tasks waiting gets no place before one that has few.
async fn ask(inner: &Inner, room: usize, grants: &[Grant]) -> Result<Vec<ClaimedTask>, StoreError> {
    let ask = |claim: Claim| async move {
        let claim = inner.store.claim(&inner.worker, inner.config.lease_duration, &claim);
        inner.claims.asked(claim).await
    };
    let mut claim = Claim::new(room - grants.len());
    claim.wanted = grants.iter().map(|grant| grant.task().clone()).collect();
    claim.max_per_principal = inner.config.per_caller();
    claim.running = inner.shares.running();
    if let Some(share) = inner.scarce_share(&claim) {
        let others = Claim { max_per_principal: share, ..claim.clone() };
        let claimed = ask(others).await?;
        let found = !claimed.is_empty();
        *inner.claims.lock_no_others() = (!found).then(Instant::now);
        if found {
            return Ok(claimed);
        }
    }
    ask(claim).await
}

impl Inner {
    /// Grants whose tasks are to be claimed now.
    fn take_grants(&self, room: usize) -> Vec<Grant> {
        let mut granted = self.lock_granted();
        let count = granted.len().min(room);
        granted.drain(..count).collect()
    }

    /// How many places a caller gets before others do, if places are scarce and a caller has more.
    fn scarce_share(&self, claim: &Claim) -> Option<usize> {
        let running = self.config.max_running;
        let is_scarce = self.slots.available_permits() < running / 2;
        let looked = *self.claims.lock_no_others();
        if !is_scarce || looked.is_some_and(|last| last.elapsed() < LOOK_FOR_OTHERS) {
            return None;
        }
        let share = (running / (claim.running.len() + 1)).max(1);
        let is_terminal = claim.running.values().any(|count| *count >= share);
        (share < claim.max_per_principal && is_terminal).then_some(share)
    }
}

pub(super) async fn begin(inner: &Arc<Inner>, claimed: ClaimedTask, expected: Option<Expected>) {
    if *inner.stopping.borrow() {
        // It is given back with everything else.
        return;
    }
    if claimed.ended.is_some() {
        return Box::pin(clean_up(inner, claimed)).await;
    }
    let lease = claimed.lease.clone();
    let principal = claimed.principal.clone();
    let crashes = claimed.crash_count;
    if claimed.lost && !claimed.cancel_requested && crashes < inner.config.max_crashes {
        let pause = inner.config.pause_after(crashes, chance());
        if !pause.is_zero() {
            return Box::pin(postpone(inner, &claimed, pause)).await;
        }
    }
    inner.saw(&principal, &lease.task, EngineEvent::Claimed { again: claimed.started, crashes });
    let started = if claimed.cancel_requested {
        Err(StartError { outcome: TaskOutcome::Cancelled, keep: false })
    } else if crashes >= inner.config.max_crashes {
        let why = format!("its worker was lost {crashes} times in a row; it is not begun again");
        tracing::error!(task = %lease.task, crashes, "a task ends its workers and is stopped");
        Err(StartError { outcome: TaskOutcome::Error(drive::internal(why)), keep: true })
    } else {
        inner.runner.start(claimed)
    };
    match started {
        Ok(run) => inner.run(lease, principal, run, expected).await,
        Err(StartError { outcome, keep }) => {
            let held = Held { inner, lease: &lease, principal: &principal };
            let over = inner.config.over(outcome, keep);
            Box::pin(held.write_over(Changes::default(), over)).await;
        }
    }
}

/// Leaves a task alone for a while that may be what its workers were lost by.
async fn postpone(inner: &Inner, claimed: &ClaimedTask, pause: Duration) {
    let held = Held { inner, lease: &claimed.lease, principal: &claimed.principal };
    let answers = claimed.journal.entries.values();
    let seen = answers.filter(|entry| matches!(entry, JournalEntry::Answer(_))).count();
    let due = Some(wall_clock().saturating_add(millis(pause)));
    if held.write(Changes::default(), Transition::Park { due, seen }).await.is_held() {
        let task = &claimed.lease.task;
        tracing::warn!(%task, crashes = claimed.crash_count, ?pause, "a task lost its worker again");
        held.saw(EngineEvent::Postponed(pause));
    }
}

/// Any number.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Prolongs the leases, for as long as the engine is used. By itself, so that a store which takes
/// long over something else does not cost them.
pub(super) async fn renewals(engine: Weak<Inner>) {
    let mut renewed = Instant::now();
    let mut strays = Vec::new();
    loop {
        let Some(inner) = engine.upgrade() else { return };
        let lease = inner.config.lease_duration;
        let idle = inner.lock_running().is_empty();
        let held =
            if idle { Some(Instant::now()) } else { renew(&inner, renewed, &mut strays).await };
        renewed = held.unwrap_or(renewed);
        let pause = if held.is_some() { lease / 3 } else { lease / 12 };
        let sooner = Arc::clone(&inner.renew);
        // An engine that nobody uses any more is not kept by this.
        drop(inner);
        let _ = tokio::time::timeout(pause, sooner.notified()).await;
    }
}

/// Prolongs all leases; what is not held any more is given up. Returns from when on they last, or
/// `None` if it is to be tried again soon.
async fn renew(inner: &Inner, renewed: Instant, strays: &mut Vec<Stray>) -> Option<Instant> {
    let began = Instant::now();
    let epochs = |(task, signals): (&TaskId, &Signals)| (task.clone(), signals.epoch);
    let is_held = |(_, signals): &(&TaskId, &Signals)| signals.is_held();
    let running: Vec<_> = inner.lock_running().iter().filter(is_held).map(epochs).collect();
    let lease = inner.config.lease_duration;
    let renewal = inner.store.renew(&inner.worker, lease);
    let held = match tokio::time::timeout(lease / 6, renewal).await {
        Ok(Ok(held)) => held,
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "the store does not answer".to_owned(),
            };
            tracing::warn!(why, "leases could not be renewed");
            if renewed.elapsed() < lease * 3 / 4 {
                return None;
            }
            // Others may claim them any moment: nothing may be done here any more.
            Vec::new()
        }
    };
    let now: HashMap<_, _> = inner.lock_running().iter().map(epochs).collect();
    let is_run = |lease: &Lease| now.get(&lease.task) == Some(&lease.epoch);
    let (held, unknown): (Vec<_>, Vec<_>) = held.into_iter().partition(is_run);
    let held: HashSet<_> = held.into_iter().map(|lease| (lease.task, lease.epoch)).collect();
    for lost in running.iter().filter(|run| !held.contains(run)) {
        // It may have been given back and claimed again meanwhile.
        if let Some(signals) =
            inner.lock_running().get(&lost.0).filter(|signals| signals.epoch == lost.1)
        {
            signals.lost.notify_one();
        }
    }
    // What is just being made is held once its maker hears of it.
    let is_stray = |lease: &Lease| now.get(&lease.task) != Some(&NOT_HELD);
    let still = |lease| Stray::still(lease, strays, &inner.claims);
    *strays = unknown.into_iter().filter(is_stray).map(still).collect();
    give_back(inner, strays).await;
    Some(began)
}

/// A task that we hold and do not run.
struct Stray {
    lease: Lease,
    /// How many claims had been asked for when it was seen first.
    claims: u64,
    /// Since when all of them are answered.
    unclaimed: Option<Instant>,
}

impl Stray {
    fn still(lease: Lease, before: &[Self], claims: &Claims) -> Self {
        let known = before.iter().find(|stray| stray.lease == lease);
        let asked = known.map_or_else(|| claims.asked.load(Ordering::SeqCst), |stray| stray.claims);
        let is_answered = claims.answered.load(Ordering::SeqCst) >= asked;
        let since = known.and_then(|stray| stray.unclaimed);
        Self { lease, claims: asked, unclaimed: since.or_else(|| is_answered.then(Instant::now)) }
    }
}

/// Gives tasks back that were claimed without our being told: nobody else would ever get them while we
/// renew our leases. What a claim is about to bring looks the same until it is begun, however late the
/// store answers: every claim that may have brought it must be answered, and a while be over since.
async fn give_back(inner: &Inner, strays: &[Stray]) {
    let is_old = |since: Instant| since.elapsed() >= inner.config.lease_duration / 3;
    for Stray { lease, .. } in strays.iter().filter(|stray| stray.unclaimed.is_some_and(is_old)) {
        let then = Transition::Park { due: Some(0), seen: 0 };
        let giving_back = async {
            match inner.store.commit(lease, &Changes::default(), &then).await {
                // It may have ended, and be ours to clean up after.
                Err(StoreError::LeaseLost) => {
                    inner.store.finish_cleanup(lease, CleanupState::Due).await
                }
                given => given,
            }
        };
        // What does not succeed is tried with the next renewal.
        if let Ok(Ok(())) = tokio::time::timeout(inner.config.lease_duration / 6, giving_back).await
        {
            tracing::warn!(task = %lease.task, "a task that was not begun is given back");
        }
    }
}
