//! Stores that break one promise each: the contract must see it.
//!
//! All of them are the one in memory with something wrong between it and its user.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use outlive_tasks::{
    JournalEntry, delegate_store,
    store::{
        Changes, Claim, ClaimedTask, CreateOutcome, InputSource, Lease, ListCursor, MemoryStore,
        NewTask, OperatorStore, PageLimit, PurgeOutcome, RetryOutcome, StoreFuture, StoredSegments,
        SweepReport, TaskFilter, TaskId, TaskRecord, TaskStore, TaskSummary, Transition,
        UnixMillis, WorkQueue, WorkerId,
        contract::{Check, ContractBench, checks, operator_checks},
    },
};
use outlive_wire::{InputRequest, RawJson};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Who has lost a task still writes to it.
    NoFence,
    /// What has ended is forgotten by the next sweep.
    EarlyPurge,
    /// An answer is taken, and is not there when the task runs.
    LostAnswer,
    /// A segment takes the place of another one that has its number in another scope.
    ReusedNumber,
    /// A task that was claimed can be claimed by the next worker.
    NoLease,
    /// The end and the withdrawal of the questions are two transactions; the sweep does the second.
    TornEnd,
    /// What a task has emitted is said to be all of it, and it is not.
    EarlyEnd,
    /// What is kept for an operator goes on when it is answered.
    WokenByAnswer,
    /// What has ended is said to be tried again.
    RetriesAll,
    /// What runs is forgotten without being forced to.
    PurgesAll,
    /// What has ended is forgotten whenever it has.
    PurgesMore,
    /// Those that nobody can list are not seen by an operator either.
    Overlooked,
    /// What a task writes has no limit.
    Unlimited,
    /// A claim takes the oldest, whoever they belong to and however many of theirs run.
    Unfair,
}

fn all_checks() -> Vec<Check> {
    checks().into_iter().chain(operator_checks()).collect()
}

/// The checks that do not pass with this flaw.
async fn failing(flaw: Flaw) -> Vec<&'static str> {
    let mut failing = Vec::new();
    for check in all_checks() {
        let store = Arc::new(Broken { flaw: Some(flaw), ..Broken::default() });
        let clock = Arc::clone(&store);
        let bench = ContractBench::operated(store, move |span| clock.inner.advance_clock(span));
        // A task of its own: its panic ends no more than it.
        if tokio::spawn((check.run)(bench)).await.is_err() {
            failing.push(check.name);
        }
    }
    failing
}

#[track_caller]
fn sees(failing: &[&str], promise: &str) {
    assert!(failing.contains(&promise), "`{promise}` is not among {failing:?}");
}

#[tokio::test]
async fn a_store_without_a_fence_is_seen() {
    let failing = failing(Flaw::NoFence).await;
    sees(&failing, "a_former_owner_writes_nothing");
    sees(&failing, "the_same_worker_with_an_older_epoch_writes_nothing");
}

#[tokio::test]
async fn a_store_that_forgets_too_early_is_seen() {
    let failing = failing(Flaw::EarlyPurge).await;
    sees(&failing, "what_has_ended_never_changes");
    sees(&failing, "a_result_that_came_late_can_still_be_read");
}

#[tokio::test]
async fn a_store_that_loses_an_answer_is_seen() {
    let failing = failing(Flaw::LostAnswer).await;
    sees(&failing, "an_answer_is_never_lost_and_the_first_counts");
    sees(&failing, "an_answer_that_comes_before_the_parking_is_not_slept_through");
}

#[tokio::test]
async fn a_store_that_uses_a_number_twice_is_seen() {
    sees(&failing(Flaw::ReusedNumber).await, "segments_keep_their_order_and_number");
}

#[tokio::test]
async fn a_store_that_claims_without_a_lease_is_seen() {
    sees(&failing(Flaw::NoLease).await, "what_is_queued_is_claimed_once");
}

#[tokio::test]
async fn a_store_that_ends_a_task_in_two_steps_is_seen() {
    sees(&failing(Flaw::TornEnd).await, "the_end_withdraws_open_questions");
}

#[tokio::test]
async fn a_store_that_says_too_early_that_all_is_there_is_seen() {
    sees(&failing(Flaw::EarlyEnd).await, "segments_are_read_from_any_number_on");
}

#[tokio::test]
async fn a_store_that_goes_on_with_what_is_kept_is_seen() {
    sees(&failing(Flaw::WokenByAnswer).await, "an_answer_to_what_is_kept_counts_and_wakes_nobody");
}

#[tokio::test]
async fn a_store_that_tries_again_what_has_ended_is_seen() {
    let failing = failing(Flaw::RetriesAll).await;
    sees(&failing, "what_has_ended_is_not_tried_again");
    sees(&failing, "what_is_not_kept_is_not_tried_again");
}

#[tokio::test]
async fn a_store_that_forgets_what_runs_is_seen() {
    let failing = failing(Flaw::PurgesAll).await;
    sees(&failing, "what_has_not_ended_is_forgotten_by_force_only");
    sees(&failing, "what_is_owed_a_clean_up_is_forgotten_by_force_only");
}

#[tokio::test]
async fn a_store_that_forgets_too_much_is_seen() {
    sees(&failing(Flaw::PurgesMore).await, "what_has_ended_before_a_time_is_forgotten");
}

#[tokio::test]
async fn a_store_that_hides_tasks_from_its_operator_is_seen() {
    sees(&failing(Flaw::Overlooked).await, "an_operator_sees_the_tasks_of_all");
}

#[tokio::test]
async fn a_store_that_gives_all_places_to_one_principal_is_seen() {
    let failing = failing(Flaw::Unfair).await;
    sees(&failing, "a_principal_at_its_limit_is_passed_over");
    sees(&failing, "a_claim_takes_no_more_of_a_principal_than_there_is_room_for");
}

#[tokio::test]
async fn a_store_that_takes_more_than_a_principal_may_store_is_seen() {
    let failing = failing(Flaw::Unlimited).await;
    sees(&failing, "entry_beyond_the_bytes_is_refused_and_its_task_goes_on");
    sees(&failing, "outcome_beyond_the_bytes_is_refused_and_a_small_one_is_not");
}

#[tokio::test]
async fn without_a_flaw_nothing_is_seen() {
    // What is between the store and its user does no harm by itself.
    for check in all_checks() {
        let store = Arc::new(Broken::default());
        let clock = Arc::clone(&store);
        (check.run)(ContractBench::operated(store, move |span| clock.inner.advance_clock(span)))
            .await;
    }
}

/// A store with a flaw, or without.
#[derive(Default)]
struct Broken {
    flaw: Option<Flaw>,
    inner: MemoryStore,
    // Nothing here matters but for its flaw.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    principals: HashMap<TaskId, String>,
    /// Who has each task now.
    held: HashMap<TaskId, Lease>,
    ended: HashSet<TaskId>,
    /// What was forgotten too early.
    forgotten: HashSet<TaskId>,
    /// The questions that were open when a task ended.
    left_open: HashMap<TaskId, Vec<(String, InputRequest)>>,
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

delegate_store!(impl KeyValueStore, AuditLog, StoreMonitor for Broken: |store| &store.inner);

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

impl OperatorStore for Broken {
    delegate_store!(inspect: |store| &store.inner);

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
