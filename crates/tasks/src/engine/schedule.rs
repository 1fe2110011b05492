//! Scheduler of an engine: claims due tasks, renews leases, sweeps.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    claims::Claims,
    start::{run_span, start},
    state::{EngineState, NO_EPOCH, Signals},
};
use crate::{
    capacity::Grant,
    store::{Changes, Claim, ClaimedTask, CleanupState, Lease, StoreError, TaskId, Transition},
};

/// Claims and sweeps until the engine is dropped or drained.
pub(super) async fn claims(engine: Weak<EngineState>) {
    let mut swept: Option<Instant> = None;
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if *engine.stopping.borrow() {
            return;
        }
        let config = &engine.config;
        let left = claim(&engine).await;
        if swept.is_none_or(|swept| swept.elapsed() >= config.sweep_interval) {
            // A sweep that left expired rows continues before the loop waits.
            let more = sweep(&engine).await;
            swept = (!more).then(Instant::now);
        }
        let due = match left {
            _ if swept.is_none() => continue,
            Remaining::Nothing => {
                let full = engine.shares.full(config.per_caller());
                engine.store.next_due(&full).await.ok().flatten()
            }
            Remaining::More => continue,
            Remaining::NoSlot => None,
        };
        let pause = due
            .unwrap_or(config.poll_interval)
            .clamp(Duration::from_millis(1), config.poll_interval);
        let _ = tokio::time::timeout(pause, engine.due.notified()).await;
    }
}

/// Expires tasks and deletes old rows. Returns whether more rows may be due.
pub(super) async fn sweep(engine: &EngineState) -> bool {
    let config = &engine.config;
    match (engine.store.sweep(config.claim_batch, config.retention).await, &engine.observer) {
        (Ok(swept), observer) => {
            observer.iter().for_each(|observer| observer.swept(&swept));
            swept.more
        }
        (Err(error), _) => {
            tracing::warn!(%error, "sweep failed");
            false
        }
    }
}

/// State of the due tasks after a claim.
enum Remaining {
    /// No task is due.
    Nothing,
    /// More tasks may be due, and a slot is free.
    More,
    /// More tasks may be due, but no slot is free until a run ends.
    NoSlot,
}

/// Interval between two claims for callers with few running tasks, after a claim that returned
/// none.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(100);

/// Claims tasks for the free slots.
async fn claim(engine: &Arc<EngineState>) -> Remaining {
    let free = engine.slots.available_permits().min(engine.config.claim_batch);
    // Slots are acquired before the claim, so that every claimed task can start.
    let slots = u32::try_from(free).ok().filter(|free| *free > 0);
    let slots = slots.and_then(|free| Arc::clone(&engine.slots).try_acquire_many_owned(free).ok());
    let Some(mut slots) = slots else {
        return if engine.has_free_slot() { Remaining::More } else { Remaining::NoSlot };
    };
    let sent = Instant::now();
    let mut grants = engine.take_grants(free);
    let claimed = match ask(engine, free, &grants).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::warn!(%error, "could not claim tasks");
            engine.lock_granted().append(&mut grants);
            return Remaining::Nothing;
        }
    };
    if !claimed.is_empty() && sent.elapsed() > engine.config.lease_duration / 6 {
        // The leases started when the store executed the claim, so most of their time may be gone.
        engine.renew.notify_one();
    }
    let all_taken = claimed.len() < free;
    for claimed in claimed {
        let (engine, permit) = (Arc::clone(engine), slots.split(1));
        // Counted before the next claim.
        let share = engine.share(&claimed.principal);
        let slot = permit.map(|permit| engine.slot_with(permit, share));
        let is_its = |grant: &Grant| *grant.task() == claimed.lease.task;
        let grant = grants.iter().position(is_its).map(|index| grants.swap_remove(index));
        tokio::spawn(async move {
            let span = run_span(&engine, &claimed.lease.task, &claimed.tool);
            start(&engine, claimed, None, span).await;
            // A permit that the run has not taken is released.
            drop((grant, slot));
        });
    }
    // Tasks whose grants were not used have ended, or run on another replica.
    drop(grants);
    match all_taken {
        true => Remaining::Nothing,
        false if engine.has_free_slot() => Remaining::More,
        false => Remaining::NoSlot,
    }
}

/// Sends a claim to the store. If few slots are free, callers that run less than their share come
/// first. A caller with many due tasks then cannot delay a caller with few.
async fn ask(
    engine: &EngineState,
    free: usize,
    grants: &[Grant],
) -> Result<Vec<ClaimedTask>, StoreError> {
    let ask = |claim: Claim| async move {
        let claim = engine.store.claim(&engine.worker_id, engine.config.lease_duration, &claim);
        engine.claims.count(claim).await
    };
    let mut claim = Claim::new(free - grants.len());
    claim.wanted = grants.iter().map(|grant| grant.task().clone()).collect();
    claim.max_per_principal = engine.config.per_caller();
    claim.running = engine.shares.running();
    if let Some(share) = engine.scarce_share(&claim) {
        let others = Claim { max_per_principal: share, ..claim.clone() };
        let claimed = ask(others).await?;
        let found = !claimed.is_empty();
        engine.claims.found_others(found);
        if found {
            return Ok(claimed);
        }
    }
    ask(claim).await
}

impl EngineState {
    /// Takes the grants whose tasks are claimed next.
    fn take_grants(&self, free: usize) -> Vec<Grant> {
        let mut granted = self.lock_granted();
        let count = granted.len().min(free);
        granted.drain(..count).collect()
    }

    /// Returns the share of slots per caller if few slots are free and a caller exceeds its share.
    fn scarce_share(&self, claim: &Claim) -> Option<usize> {
        let running = self.config.max_running;
        let is_scarce = self.slots.available_permits() < running / 2;
        if !is_scarce || self.claims.found_none_within(LOOK_FOR_OTHERS) {
            return None;
        }
        let share = (running / (claim.running.len() + 1)).max(1);
        let is_terminal = claim.running.values().any(|count| *count >= share);
        (share < claim.max_per_principal && is_terminal).then_some(share)
    }
}

/// Sends heartbeats until the engine is dropped. Runs concurrently to the claims, so that a slow
/// claim or sweep does not let leases expire.
pub(super) async fn renewals(engine: Weak<EngineState>) {
    let mut renewed = Instant::now();
    let mut orphans = Vec::new();
    loop {
        let Some(engine) = engine.upgrade() else { return };
        let lease = engine.config.lease_duration;
        let idle = engine.lock_running().is_empty();
        let held =
            if idle { Some(Instant::now()) } else { renew(&engine, renewed, &mut orphans).await };
        renewed = held.unwrap_or(renewed);
        let pause = if held.is_some() { lease / 3 } else { lease / 12 };
        let sooner = Arc::clone(&engine.renew);
        // The wait must not keep an engine alive that is otherwise unused.
        drop(engine);
        let _ = tokio::time::timeout(pause, sooner.notified()).await;
    }
}

/// Renews all leases and signals lost ones. Returns the start time of the renewed leases, or `None`
/// if the renewal must be retried soon.
async fn renew(
    engine: &EngineState,
    renewed: Instant,
    orphans: &mut Vec<Orphan>,
) -> Option<Instant> {
    let began = Instant::now();
    let epochs = |(task, signals): (&TaskId, &Signals)| (task.clone(), signals.epoch);
    let is_leased = |(_, signals): &(&TaskId, &Signals)| signals.is_leased();
    let running: Vec<_> = engine.lock_running().iter().filter(is_leased).map(epochs).collect();
    let lease = engine.config.lease_duration;
    let renewal = engine.store.renew(&engine.worker_id, lease);
    let held = match tokio::time::timeout(lease / 6, renewal).await {
        Ok(Ok(held)) => held,
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "the store did not respond in time".to_owned(),
            };
            tracing::warn!(error = why, "could not renew leases");
            if renewed.elapsed() < lease * 3 / 4 {
                return None;
            }
            // Other workers may claim the tasks at any moment, so all runs must stop.
            Vec::new()
        }
    };
    let now: HashMap<_, _> = engine.lock_running().iter().map(epochs).collect();
    let is_run = |lease: &Lease| now.get(&lease.task) == Some(&lease.epoch);
    let (held, unknown): (Vec<_>, Vec<_>) = held.into_iter().partition(is_run);
    let held: HashSet<_> = held.into_iter().map(|lease| (lease.task, lease.epoch)).collect();
    for lost in running.iter().filter(|run| !held.contains(run)) {
        // The task may have been released and claimed again in the meantime.
        if let Some(signals) =
            engine.lock_running().get(&lost.0).filter(|signals| signals.epoch == lost.1)
        {
            signals.lost.notify_one();
        }
    }
    // A task whose creation is in progress is registered without an epoch.
    let is_orphan = |lease: &Lease| now.get(&lease.task) != Some(&NO_EPOCH);
    let still = |lease| Orphan::still(lease, orphans, &engine.claims);
    *orphans = unknown.into_iter().filter(is_orphan).map(still).collect();
    release_orphans(engine, orphans).await;
    Some(began)
}

/// A lease of this worker whose task does not run in this process.
struct Orphan {
    lease: Lease,
    /// Number of claims that had been sent when the lease was first seen.
    claims: u64,
    /// When the store had answered all of those claims.
    unclaimed: Option<Instant>,
}

impl Orphan {
    fn still(lease: Lease, before: &[Self], claims: &Claims) -> Self {
        let known = before.iter().find(|orphan| orphan.lease == lease);
        let sent = known.map_or_else(|| claims.sent(), |orphan| orphan.claims);
        let is_answered = claims.are_answered(sent);
        let since = known.and_then(|orphan| orphan.unclaimed);
        Self { lease, claims: sent, unclaimed: since.or_else(|| is_answered.then(Instant::now)) }
    }
}

/// Releases tasks of claims whose response was lost. No other worker can claim such a task while
/// this worker renews its leases. A claim in progress looks the same, so the engine first waits for
/// the responses to all earlier claims, and then for a third of a lease.
async fn release_orphans(engine: &EngineState, orphans: &[Orphan]) {
    let is_old = |since: Instant| since.elapsed() >= engine.config.lease_duration / 3;
    for Orphan { lease, .. } in orphans.iter().filter(|orphan| orphan.unclaimed.is_some_and(is_old))
    {
        let then = Transition::Park { due_at: Some(0), responses_seen: 0 };
        let released = async {
            match engine.store.commit(lease, &Changes::default(), &then).await {
                // The task may have ended, and this worker may have the lease on its cleanup.
                Err(StoreError::LeaseLost) => {
                    engine.store.finish_cleanup(lease, CleanupState::Due).await
                }
                given => given,
            }
        };
        // The next renewal retries a failed release.
        if let Ok(Ok(())) = tokio::time::timeout(engine.config.lease_duration / 6, released).await {
            tracing::warn!(
                task_id = lease.task.prefix(),
                "released a claimed task that was not started"
            );
        }
    }
}
