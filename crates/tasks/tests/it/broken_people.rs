//! Stores that break one promise to people each, which the contract must detect.
//!
//! Each is a memory store behind a wrapper with one flaw.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use outlive_tasks::{
    delegate_store,
    store::{
        Audience, AuditEvent, AuditLog, AuditRecord, Changes, CreateOutcome, Decision,
        DecisionOutcome, DecisionStore, Delivery, DeliveryQueue, InboxCursor, InboxItem,
        InboxReader, JournalCursor, JournalItem, Lease, ListCursor, MemoryStore, MetricRow,
        MetricStore, NewInputRequest, NewTask, SettledResponse, StoreFuture, SweepReport,
        TaskEvent, TaskId, TaskIndex, TaskPage, TaskQuery, TaskStore, Transition, UnixMillis,
        WorkQueue,
        contract::{Check, ContractBench, checks, people_checks},
    },
};

/// Flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// An input request is missing in the first read of an inbox.
    LateInbox,
    /// An input request stays in an inbox that has contained it.
    StaleInbox,
    /// A second vote of a person is counted.
    CountsTwice,
    /// A decision replaces an earlier one.
    LastDecision,
    /// The timeout of an input request has no effect.
    NoTimeout,
    /// A vote on a withdrawn input request settles it.
    LateVote,
    /// A vote counts for every digest.
    AnyDigest,
    /// The person of a task is not stored, so own votes count.
    OwnVotes,
    /// Clients respond to input requests for people.
    ClientDecides,
    /// The audit event of a vote is lost.
    LostAudit,
    /// Votes have no byte limit.
    Unlimited,
    /// A denial is missing in the first search for it.
    LateDenial,
    /// An inbox counts the input requests of all people.
    CountsAll,
    /// An inbox of one principal counts the input requests of all principals.
    CountsForeign,
    /// Tags have no byte limit.
    FreeTags,
    /// A page contains the tasks of all persons.
    ForeignTasks,
    /// A page continues after a number of tasks instead of a task.
    Offset,
    /// Tasks without an index entry have tags.
    TagsAll,
    /// Journal entries have no time.
    NoTime,
    /// The end of a task by a sweep is not delivered.
    SilentSweep,
    /// A delivery can be leased by the next sender.
    TwoSenders,
    /// A sender without a lease can stop a delivery.
    NoFence,
    /// Only one worker is counted.
    OneWorker,
    /// The end of a task by a sweep has no audit event.
    LostEnd,
    /// The end of a task has two audit events.
    TwoEnds,
    /// A rejected commit writes an audit event.
    EndOfRejected,
}

fn all_checks() -> Vec<Check> {
    checks().into_iter().chain(people_checks()).collect()
}

fn bench(flaw: Option<Flaw>) -> ContractBench {
    let store = Arc::new(Broken { flaw, ..Broken::default() });
    let clock = Arc::clone(&store);
    ContractBench::people(store, move |span| clock.inner.advance_clock(span))
}

/// Asserts that these checks fail with a flaw.
async fn detects(flaw: Flaw, promises: &[&str]) {
    let mut failing = Vec::new();
    for check in all_checks() {
        // A separate task, because a failing check panics.
        if tokio::spawn((check.run)(bench(Some(flaw)))).await.is_err() {
            failing.push(check.name);
        }
    }
    for promise in promises {
        assert!(failing.contains(promise), "`{promise}` does not fail, only {failing:?}");
    }
}

#[tokio::test]
async fn contract_for_people_passes_on_wrapped_store_without_flaw() {
    // The wrapper itself must not break the contract.
    for check in all_checks() {
        (check.run)(bench(None)).await;
    }
}

#[tokio::test]
async fn contract_detects_late_and_stale_inbox() {
    let promises = [
        "request_is_in_inbox_from_creation_until_decision",
        "request_of_worker_is_in_inbox_from_commit_until_withdrawal",
    ];
    detects(Flaw::LateInbox, &promises).await;
    detects(Flaw::StaleInbox, &promises).await;
    detects(Flaw::StaleInbox, &["request_is_in_inbox_until_task_ends_or_is_deleted"]).await;
}

#[tokio::test]
async fn contract_detects_two_votes_of_a_person() {
    detects(Flaw::CountsTwice, &["vote_counts_once_per_person"]).await;
}

#[tokio::test]
async fn contract_detects_replaced_decision() {
    let promises = [
        "one_of_concurrent_decisions_settles_request",
        "decision_after_settlement_changes_nothing",
    ];
    detects(Flaw::LastDecision, &promises).await;
}

#[tokio::test]
async fn contract_detects_vote_after_timeout_or_end() {
    detects(Flaw::NoTimeout, &["vote_after_timeout_is_expired"]).await;
    let promises =
        ["vote_after_end_of_task_is_withdrawn", "vote_on_withdrawn_request_is_withdrawn"];
    detects(Flaw::LateVote, &promises).await;
}

#[tokio::test]
async fn contract_detects_vote_for_other_digest() {
    detects(Flaw::AnyDigest, &["vote_for_other_digest_is_rejected"]).await;
}

#[tokio::test]
async fn contract_detects_own_vote() {
    detects(Flaw::OwnVotes, &["own_call_is_not_approved_by_its_person"]).await;
}

#[tokio::test]
async fn contract_detects_response_of_client_for_people() {
    let promise = "client_tool_link_and_external_event_do_not_respond_for_people";
    detects(Flaw::ClientDecides, &[promise, "request_for_people_is_invisible_to_client"]).await;
}

#[tokio::test]
async fn contract_detects_lost_audit_event_of_vote() {
    detects(Flaw::LostAudit, &["vote_and_its_audit_event_are_one_transaction"]).await;
}

#[tokio::test]
async fn contract_detects_missing_byte_limit_of_votes() {
    detects(Flaw::Unlimited, &["vote_above_byte_limit_is_rejected"]).await;
}

#[tokio::test]
async fn contract_detects_late_denial() {
    let promises = [
        "response_is_found_by_denial_key_from_its_commit",
        "response_of_client_is_found_by_denial_key",
    ];
    detects(Flaw::LateDenial, &promises).await;
}

#[tokio::test]
async fn contract_detects_wrong_count_of_inbox() {
    detects(Flaw::CountsAll, &["inbox_is_counted_up_to_limit"]).await;
    detects(Flaw::CountsForeign, &["inbox_of_one_principal_contains_only_its_tasks"]).await;
}

#[tokio::test]
async fn contract_detects_missing_byte_limit_of_tags() {
    detects(Flaw::FreeTags, &["tag_above_byte_limit_is_rejected"]).await;
}

#[tokio::test]
async fn contract_detects_tasks_of_another_person() {
    let promises =
        ["page_of_person_contains_no_task_of_another_person", "page_applies_all_conditions"];
    detects(Flaw::ForeignTasks, &promises).await;
}

#[tokio::test]
async fn contract_detects_page_by_offset() {
    detects(Flaw::Offset, &["page_stays_the_same_while_tasks_are_created"]).await;
}

#[tokio::test]
async fn contract_detects_tags_without_index() {
    let promises = [
        "tags_of_task_without_index_are_ignored",
        "page_by_tool_person_or_tag_skips_tasks_without_index",
    ];
    detects(Flaw::TagsAll, &promises).await;
}

#[tokio::test]
async fn contract_detects_wrong_time_of_step() {
    let promises = ["time_of_step_is_time_of_its_commit", "vote_has_time_of_its_commit"];
    detects(Flaw::NoTime, &promises).await;
}

#[tokio::test]
async fn contract_detects_missing_delivery() {
    detects(Flaw::SilentSweep, &["ended_task_is_delivered_for_every_end"]).await;
}

#[tokio::test]
async fn contract_detects_second_sender() {
    let promises = ["delivery_has_one_sender", "delivery_is_due_again_after_its_lease"];
    detects(Flaw::TwoSenders, &promises).await;
    detects(Flaw::NoFence, &["report_of_former_sender_is_ignored"]).await;
}

#[tokio::test]
async fn contract_detects_lost_metrics() {
    detects(Flaw::OneWorker, &["metrics_of_workers_are_summed"]).await;
}

#[tokio::test]
async fn contract_detects_lost_and_superfluous_end_events() {
    detects(Flaw::LostEnd, &["swept_task_appends_one_end_event"]).await;
    let promises =
        ["commit_that_ends_task_appends_one_end_event", "cancelled_task_appends_one_end_event"];
    detects(Flaw::TwoEnds, &promises).await;
    detects(Flaw::EndOfRejected, &["rejected_commit_appends_no_end_event"]).await;
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
    /// Input requests that an inbox has contained.
    read: Vec<(InboxReader, InboxItem)>,
    /// Input requests that an inbox should have contained.
    missed: HashSet<(TaskId, String)>,
    /// Denial key and time of responses that a search should have found.
    late: HashSet<(String, UnixMillis)>,
    /// Number of tasks before each cursor.
    offsets: HashMap<(UnixMillis, TaskId), usize>,
}

impl Broken {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    fn flawed_requests(&self, requests: &mut [NewInputRequest]) {
        for asked in requests {
            if self.has(Flaw::NoTimeout) {
                asked.due = None;
            }
            if self.has(Flaw::ClientDecides) && asked.audience.is_people() {
                asked.audience = Audience::Caller;
            }
        }
    }
}

delegate_store!(impl BridgeStore, InputStore, KeyValueStore, ResultStore for Broken: |store| &store.inner);
delegate_store!(impl StoreMonitor, OperatorStore for Broken: |store| &store.inner);

impl AuditLog for Broken {
    delegate_store!(append: |store| &store.inner);

    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        Box::pin(async move {
            let mut log = self.inner.read(task, after, limit).await?;
            match self.flaw {
                Some(Flaw::LostEnd) => log.retain(|record| {
                    let AuditEvent { action, reason, .. } = &record.event;
                    action != "ended" || reason.as_deref() != Some("expired")
                }),
                Some(Flaw::TwoEnds) => {
                    let ends = log.iter().filter(|record| record.event.action == "ended");
                    let again: Vec<_> = ends.cloned().collect();
                    log.extend(again);
                }
                _ => {}
            }
            Ok(log)
        })
    }
}

impl TaskStore for Broken {
    delegate_store!(find, get, list, read_segments, respond, cancel: |store| &store.inner);

    fn create(&self, mut task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        self.flawed_requests(&mut task.input_requests);
        if self.has(Flaw::OwnVotes) {
            task.person = None;
        }
        task.indexed |= self.has(Flaw::TagsAll);
        if self.has(Flaw::FreeTags) {
            task.max_bytes = u64::MAX;
        }
        self.inner.create(task)
    }
}

impl WorkQueue for Broken {
    delegate_store!(claim, renew, release, inbox, finish_cleanup: |store| &store.inner);
    delegate_store!(next_due, subscribe: |store| &store.inner);

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut changes = changes.clone();
            self.flawed_requests(&mut changes.input_requests);
            changes.charge = changes.charge.filter(|_| !self.has(Flaw::FreeTags));
            let committed = self.inner.commit(lease, &changes, then).await;
            if self.has(Flaw::EndOfRejected) && committed.is_err() {
                let event = AuditEvent::new(lease.task.as_str(), "", "ended");
                self.inner.append(vec![event], Duration::MAX, u64::MAX).await?;
            }
            committed
        })
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        Box::pin(async move {
            let swept = self.inner.sweep(limit, retention).await?;
            if self.has(Flaw::SilentSweep) {
                for delivery in self.inner.due("chat", Duration::ZERO, 100).await? {
                    if delivery.event == TaskEvent::TaskEnded {
                        self.inner.sent(&delivery.id).await?;
                    }
                }
            }
            Ok(swept)
        })
    }
}

impl TaskIndex for Broken {
    delegate_store!(count, task, timeline: |store| &store.inner);

    fn page<'a>(
        &'a self,
        query: &'a TaskQuery,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, TaskPage> {
        Box::pin(async move {
            let mut query = query.clone();
            query.person = query.person.filter(|_| !self.has(Flaw::ForeignTasks));
            if !self.has(Flaw::Offset) {
                return self.inner.page(&query, after, limit).await;
            }
            let place = |cursor: &ListCursor| (cursor.created, cursor.id.clone());
            let skipped = after.and_then(|after| self.known().offsets.get(&place(after)).copied());
            let skipped = skipped.unwrap_or_default();
            let mut page = self.inner.page(&query, None, skipped + limit).await?;
            if let Some(next) = &page.next {
                self.known().offsets.insert(place(next), skipped + limit);
            }
            page.tasks.drain(..skipped.min(page.tasks.len()));
            Ok(page)
        })
    }

    fn journal<'a>(
        &'a self,
        task: &'a TaskId,
        after: Option<&'a JournalCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalItem>> {
        Box::pin(async move {
            let mut journal = self.inner.journal(task, after, limit).await?;
            if self.has(Flaw::NoTime) {
                journal.iter_mut().for_each(|item| item.recorded_at = 0);
            }
            Ok(journal)
        })
    }
}

impl DecisionStore for Broken {
    delegate_store!(voted_by, input_request: |store| &store.inner);

    fn count_open<'a>(&'a self, reader: &'a InboxReader, limit: usize) -> StoreFuture<'a, usize> {
        Box::pin(async move {
            let reader = reader.clone();
            match self.flaw {
                Some(Flaw::CountsAll) => self.inner.count_open(&reader.all(true), limit).await,
                Some(Flaw::CountsForeign) => {
                    self.inner.count_open(&reader.principal(None), limit).await
                }
                _ => self.inner.count_open(&reader, limit).await,
            }
        })
    }

    fn settled_since<'a>(
        &'a self,
        denial: &'a str,
        since: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SettledResponse>> {
        Box::pin(async move {
            let mut settled = self.inner.settled_since(denial, since, limit).await?;
            if self.has(Flaw::LateDenial) {
                let missed = &mut self.known().late;
                settled.retain(|one| !missed.insert((denial.to_owned(), one.settled_at)));
            }
            Ok(settled)
        })
    }

    fn open_for<'a>(
        &'a self,
        reader: &'a InboxReader,
        after: Option<&'a InboxCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxItem>> {
        Box::pin(async move {
            let mut open = self.inner.open_for(reader, after, limit).await?;
            if self.has(Flaw::LateInbox) {
                let missed = &mut self.known().missed;
                open.retain(|item| !missed.insert((item.task.clone(), item.name.clone())));
            }
            if self.has(Flaw::StaleInbox) {
                let read = &mut self.known().read;
                read.extend(open.iter().map(|item| (reader.clone(), item.clone())));
                let of_reader = read.iter().filter(|(of, _)| of == reader);
                let is_new = |item: &InboxItem| !open.iter().any(|one| one.task == item.task);
                let stale = of_reader.map(|(_, item)| item.clone()).filter(is_new);
                let stale: Vec<_> = stale.collect();
                open.extend(stale);
            }
            Ok(open)
        })
    }

    fn decide<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
        decision: &'a Decision,
    ) -> StoreFuture<'a, DecisionOutcome> {
        Box::pin(async move {
            let mut decision = decision.clone();
            let detail = self.inner.input_request(task, name).await?;
            let binding = detail.and_then(|detail| detail.item.binding);
            match self.flaw {
                Some(Flaw::AnyDigest) => decision.digest = binding.map(|bound| bound.digest),
                Some(Flaw::LostAudit) => decision.audit = None,
                Some(Flaw::Unlimited) => decision.max_bytes = u64::MAX,
                _ => {}
            }
            let outcome = self.inner.decide(task, name, &decision).await?;
            Ok(match (self.flaw, outcome) {
                (Some(Flaw::CountsTwice), DecisionOutcome::AlreadyVoted)
                | (Some(Flaw::LastDecision), DecisionOutcome::AlreadySettled)
                | (Some(Flaw::LateVote), DecisionOutcome::Withdrawn) => DecisionOutcome::Settled,
                (_, outcome) => outcome,
            })
        })
    }
}

impl DeliveryQueue for Broken {
    delegate_store!(sent, next_delivery, failing, send_again: |store| &store.inner);

    fn due<'a>(
        &'a self,
        target: &'a str,
        lease: Duration,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        let lease = if self.has(Flaw::TwoSenders) { Duration::ZERO } else { lease };
        self.inner.due(target, lease, limit)
    }

    fn failed<'a>(
        &'a self,
        delivery: &'a str,
        attempt: u32,
        retry_after: Option<Duration>,
        error: &'a str,
    ) -> StoreFuture<'a, ()> {
        // No check has more than two attempts at the same time.
        let attempt = if self.has(Flaw::NoFence) { attempt.max(2) } else { attempt };
        self.inner.failed(delivery, attempt, retry_after, error)
    }
}

impl MetricStore for Broken {
    delegate_store!(metrics: |store| &store.inner);

    fn add_metrics<'a>(&'a self, rows: &'a [MetricRow]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut rows = rows.to_vec();
            let is_first =
                |row: &MetricRow| row.worker.as_ref().is_some_and(|by| by.as_str() == "v");
            rows.retain(|row| !self.has(Flaw::OneWorker) || is_first(row));
            self.inner.add_metrics(&rows).await
        })
    }
}
