//! Stores that break one promise each, which the contract must detect.
//!
//! Each is a memory store behind a wrapper with one flaw.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use outlive_tasks::{
    JournalEntry, delegate_store,
    store::{
        BridgeStore, Changes, Claim, ClaimedTask, CreateOutcome, Departure, InputSource, Joined,
        Lease, ListCursor, MemoryStore, NewTask, OpenInput, OperatorStore, PageLimit, PurgeOutcome,
        RetryOutcome, StoreFuture, StoredSegments, SweepReport, TaskFilter, TaskId, TaskRecord,
        TaskStore, TaskSummary, Transition, UnixMillis, WorkQueue, WorkerId,
        contract::{Check, ContractBench, checks, operator_checks},
    },
};
use outlive_wire::RawJson;

/// Flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A worker that has lost its lease can still commit.
    NoFence,
    /// The next sweep deletes every ended task.
    EarlyPurge,
    /// A response is accepted, and missing when the task runs.
    LostAnswer,
    /// A segment replaces another that has the same number in another scope.
    ReusedNumber,
    /// A claimed task can be claimed by the next worker.
    NoLease,
    /// The end of a task and the withdrawal of its input requests are two transactions; the sweep
    /// executes the second.
    TornEnd,
    /// A page of segments reports the end of the task too early.
    EarlyEnd,
    /// A response wakes a quarantined task.
    WokenByAnswer,
    /// The retry of an ended task reports success.
    RetriesAll,
    /// A purge deletes a running task without `force`.
    PurgesAll,
    /// A purge deletes ended tasks regardless of the time of their end.
    PurgesMore,
    /// Operators do not see unlisted tasks.
    Overlooked,
    /// Commits have no byte limit.
    Unlimited,
    /// A claim ignores the limits per principal.
    Unfair,
    /// A call joins a run that another call waits for.
    JoinsAttended,
    /// A join does not tell that the client of a run returns.
    HidesReturning,
    /// A run can be joined before the client of a round returns.
    NoReturn,
    /// Every departure acknowledges the task.
    Acknowledges,
    /// The delivery of a result is not stored.
    NeverDelivered,
    /// A response of a tool is accepted for every audience.
    AnyAudience,
}

fn all_checks() -> Vec<Check> {
    checks().into_iter().chain(operator_checks()).collect()
}

/// Returns the names of the checks that fail with this flaw.
async fn failing(flaw: Flaw) -> Vec<&'static str> {
    let mut failing = Vec::new();
    for check in all_checks() {
        let store = Arc::new(Broken { flaw: Some(flaw), ..Broken::default() });
        let clock = Arc::clone(&store);
        let bench = ContractBench::operated(store, move |span| clock.inner.advance_clock(span));
        // A separate task, because a failing check panics.
        if tokio::spawn((check.run)(bench)).await.is_err() {
            failing.push(check.name);
        }
    }
    failing
}

#[track_caller]
fn sees(failing: &[&str], promise: &str) {
    assert!(failing.contains(&promise), "`{promise}` does not fail, only {failing:?}");
}

#[tokio::test]
async fn contract_detects_missing_fence() {
    let failing = failing(Flaw::NoFence).await;
    sees(&failing, "former_worker_cannot_commit");
    sees(&failing, "same_worker_with_older_epoch_cannot_commit");
}

#[tokio::test]
async fn contract_detects_early_deletion() {
    let failing = failing(Flaw::EarlyPurge).await;
    sees(&failing, "ended_task_never_changes");
    sees(&failing, "late_result_stays_readable_for_retention");
}

#[tokio::test]
async fn contract_detects_lost_response() {
    let failing = failing(Flaw::LostAnswer).await;
    sees(&failing, "first_response_is_stored_and_never_lost");
    sees(&failing, "response_before_parking_wakes_the_task");
}

#[tokio::test]
async fn contract_detects_reused_segment_number() {
    sees(&failing(Flaw::ReusedNumber).await, "segments_keep_order_and_number");
}

#[tokio::test]
async fn contract_detects_claim_without_lease() {
    sees(&failing(Flaw::NoLease).await, "queued_task_is_claimed_by_one_worker");
}

#[tokio::test]
async fn contract_detects_end_in_two_transactions() {
    sees(&failing(Flaw::TornEnd).await, "end_withdraws_open_input_requests");
}

#[tokio::test]
async fn contract_detects_early_end_of_segments() {
    sees(&failing(Flaw::EarlyEnd).await, "segments_are_readable_after_any_number");
}

#[tokio::test]
async fn contract_detects_quarantined_task_woken_by_response() {
    sees(
        &failing(Flaw::WokenByAnswer).await,
        "response_to_quarantined_task_is_stored_without_waking_it",
    );
}

#[tokio::test]
async fn contract_detects_ignored_audience() {
    let failing = failing(Flaw::AnyAudience).await;
    sees(&failing, "tool_and_link_responses_to_caller_requests_are_ignored");
    sees(&failing, "reclaimed_task_keeps_audience_of_open_request");
}

#[tokio::test]
async fn contract_detects_retry_of_ended_task() {
    let failing = failing(Flaw::RetriesAll).await;
    sees(&failing, "retry_of_ended_task_is_rejected");
    sees(&failing, "retry_of_task_that_is_not_quarantined_is_rejected");
}

#[tokio::test]
async fn contract_detects_purge_of_running_task() {
    let failing = failing(Flaw::PurgesAll).await;
    sees(&failing, "purge_of_open_task_requires_force");
    sees(&failing, "purge_with_pending_cleanup_requires_force");
}

#[tokio::test]
async fn contract_detects_excessive_purge() {
    sees(&failing(Flaw::PurgesMore).await, "purge_ended_deletes_tasks_ended_before_time");
}

#[tokio::test]
async fn contract_detects_join_of_attended_run() {
    let failing = failing(Flaw::JoinsAttended).await;
    sees(&failing, "attended_run_is_not_joined");
    sees(&failing, "concurrent_joins_attend_one_run");
}

#[tokio::test]
async fn contract_detects_join_during_round() {
    sees(&failing(Flaw::NoReturn).await, "run_after_round_is_joined_after_return_timeout");
}

#[tokio::test]
async fn contract_detects_join_that_hides_returning_client() {
    let failing = failing(Flaw::HidesReturning).await;
    sees(&failing, "join_tells_when_run_after_round_can_be_joined");
}

#[tokio::test]
async fn contract_detects_early_acknowledgement() {
    let failing = failing(Flaw::Acknowledges).await;
    sees(&failing, "bridged_task_is_listed_after_first_pending_result");
    sees(&failing, "lost_task_is_cancelled_after_abandon_timeout");
}

#[tokio::test]
async fn contract_detects_lost_delivery() {
    let failing = failing(Flaw::NeverDelivered).await;
    sees(&failing, "ended_run_is_joined_until_delivery");
    sees(&failing, "evict_deletes_first_delivered_tasks_until_bytes_are_free");
}

#[tokio::test]
async fn contract_detects_tasks_hidden_from_operator() {
    sees(&failing(Flaw::Overlooked).await, "operator_lists_tasks_of_all_principals");
}

#[tokio::test]
async fn contract_detects_unfair_claim() {
    let failing = failing(Flaw::Unfair).await;
    sees(&failing, "claim_skips_principal_at_its_limit");
    sees(&failing, "claim_respects_limit_per_principal");
}

#[tokio::test]
async fn contract_detects_missing_byte_limit() {
    let failing = failing(Flaw::Unlimited).await;
    sees(&failing, "entry_above_byte_limit_is_rejected_and_task_continues");
    sees(&failing, "outcome_above_byte_limit_is_rejected_unless_small");
}

#[tokio::test]
async fn contract_passes_on_wrapped_store_without_flaw() {
    // The wrapper itself must not break the contract.
    for check in all_checks() {
        let store = Arc::new(Broken::default());
        let clock = Arc::clone(&store);
        (check.run)(ContractBench::operated(store, move |span| clock.inner.advance_clock(span)))
            .await;
    }
}

/// A store with at most one flaw.
#[derive(Default)]
struct Broken {
    flaw: Option<Flaw>,
    inner: MemoryStore,
    // Used only by the flaws.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    principals: HashMap<TaskId, String>,
    /// Current lease of each task.
    held: HashMap<TaskId, Lease>,
    ended: HashSet<TaskId>,
    /// Tasks that were deleted too early.
    forgotten: HashSet<TaskId>,
    /// Input requests that were open at the end of a task.
    left_open: HashMap<TaskId, Vec<OpenInput>>,
}

impl Broken {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    fn is_forgotten(&self, task: &TaskId) -> bool {
        self.known().forgotten.contains(task)
    }
}

delegate_store!(impl InputStore, KeyValueStore, ResultStore for Broken: |store| &store.inner);
delegate_store!(impl AuditLog, StoreMonitor for Broken: |store| &store.inner);

impl TaskStore for Broken {
    delegate_store!(find, list, cancel: |store| &store.inner);

    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        Box::pin(async move {
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let created = self.inner.create(task).await?;
            if let CreateOutcome::Created { lease, .. } = &created {
                let mut known = self.known();
                known.held.extend(lease.clone().map(|lease| (id.clone(), lease)));
                known.forgotten.remove(&id);
                known.principals.insert(id, principal);
            }
            Ok(created)
        })
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        Box::pin(async move {
            if self.is_forgotten(task) {
                return Ok(None);
            }
            let mut view = self.inner.get(principal, task).await?;
            if let (Some(view), Some(open)) = (&mut view, self.known().left_open.get(task)) {
                view.input_requests.clone_from(open);
            }
            Ok(view)
        })
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        Box::pin(async move {
            let mut emitted = self.inner.read_segments(principal, task, after, limit).await?;
            if let (Some(Flaw::EarlyEnd), Some(emitted)) = (self.flaw, &mut emitted) {
                emitted.ended = emitted.last > 0;
            }
            Ok(emitted)
        })
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        Box::pin(async move {
            let is_tool = from == InputSource::Tool && self.has(Flaw::AnyAudience);
            let from = if is_tool { InputSource::Client } else { from };
            let taken = self.inner.respond(principal, task, from, answers, max_bytes).await?;
            if self.has(Flaw::WokenByAnswer) {
                self.inner.retry(task).await?;
            }
            Ok(taken)
        })
    }
}

impl WorkQueue for Broken {
    delegate_store!(renew, release, inbox, finish_cleanup: |store| &store.inner);
    delegate_store!(next_due, subscribe: |store| &store.inner);

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        Box::pin(async move {
            let lease = if self.has(Flaw::NoLease) { Duration::ZERO } else { lease };
            let mut claim = claim.clone();
            if self.has(Flaw::Unfair) {
                claim.running.clear();
                claim.max_per_principal = usize::MAX;
            }
            let mut claimed = self.inner.claim(worker, lease, &claim).await?;
            for task in &mut claimed {
                self.known().held.insert(task.lease.task.clone(), task.lease.clone());
                if self.has(Flaw::LostAnswer) {
                    task.journal
                        .entries
                        .retain(|_, entry| !matches!(entry, JournalEntry::Answer(_)));
                }
                if self.has(Flaw::ReusedNumber) {
                    let mut numbers = HashMap::new();
                    for segment in task.journal.segments.drain(..) {
                        numbers.insert(segment.ordinal, segment);
                    }
                    task.journal.segments.extend(numbers.into_values());
                }
            }
            Ok(claimed)
        })
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (task, ends) = (lease.task.clone(), matches!(then, Transition::End { .. }));
            let held = self.known().held.get(&task).cloned();
            let lease = held.filter(|_| self.has(Flaw::NoFence)).unwrap_or_else(|| lease.clone());
            let principal = self.known().principals.get(&task).cloned().unwrap_or_default();
            let before = self.inner.get(&principal, &task).await?;
            let mut changes = changes.clone();
            changes.charge = changes.charge.filter(|_| !self.has(Flaw::Unlimited));
            self.inner.commit(&lease, &changes, then).await?;
            if ends {
                self.known().ended.insert(task.clone());
            }
            if let Some(before) = before.filter(|_| ends && self.has(Flaw::TornEnd)) {
                self.known().left_open.insert(task, before.input_requests);
            }
            Ok(())
        })
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        let mut known = self.known();
        known.left_open.clear();
        if self.has(Flaw::EarlyPurge) {
            let ended = std::mem::take(&mut known.ended);
            known.forgotten.extend(ended);
        }
        drop(known);
        self.inner.sweep(limit, retention)
    }
}

impl BridgeStore for Broken {
    delegate_store!(attend, open_calls, evict: |store| &store.inner);

    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined> {
        Box::pin(async move {
            if !self.has(Flaw::JoinsAttended) {
                return match self.inner.join(principal, scope, fingerprint, worker).await? {
                    Joined::Returning(_) if self.has(Flaw::HidesReturning) => Ok(Joined::Nothing),
                    joined => Ok(joined),
                };
            }
            let oldest = self.inner.open_calls(principal, scope, 100).await?.pop();
            let Some(oldest) = oldest else { return Ok(Joined::Nothing) };
            let attended = self.inner.attend(principal, &oldest.task, worker).await?;
            Ok(attended.map_or(Joined::Nothing, Joined::Run))
        })
    }

    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()> {
        let how = match (self.flaw, how) {
            (Some(Flaw::NoReturn), Departure::Round { .. }) => Departure::Lost,
            (Some(Flaw::Acknowledges), _) => Departure::PendingResult,
            (_, how) => how,
        };
        self.inner.leave(principal, task, worker, how)
    }

    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()> {
        match self.has(Flaw::NeverDelivered) {
            true => Box::pin(async { Ok(()) }),
            false => self.inner.deliver(principal, task, retention),
        }
    }
}

impl OperatorStore for Broken {
    delegate_store!(inspect, key_values: |store| &store.inner);

    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>> {
        Box::pin(async move {
            let mut tasks = self.inner.tasks(filter, after, limit).await?;
            if self.has(Flaw::Overlooked) {
                let listed = self.inner.list("name:ada", "modern", None, 100).await?;
                tasks.retain(|task| listed.iter().any(|view| view.id == task.view.id));
            }
            Ok(tasks)
        })
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>> {
        Box::pin(async move {
            let retried = self.inner.retry(task).await?;
            Ok(match retried {
                Some(RetryOutcome::NotQuarantined(_)) if self.has(Flaw::RetriesAll) => {
                    Some(RetryOutcome::Queued("name:ada".to_owned()))
                }
                retried => retried,
            })
        })
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>> {
        self.inner.purge(task, force || self.has(Flaw::PurgesAll))
    }

    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>> {
        let more = if self.has(Flaw::PurgesMore) { UnixMillis::MAX } else { before };
        self.inner.purge_ended(more, limit)
    }
}
