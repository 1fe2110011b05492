//! Checks of deliveries: the events that write them, and their senders.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::JoinSet;

use super::{
    bench::{
        ContractBench, LEASE, MAX_TTL, OWNER, RETENTION, done, outside, promises, question, worker,
    },
    bridge::{ABANDON, bridged},
    inbox::{approval, by, of_ann, ops, vote},
    quarantine::HOLD,
};
use crate::store::{
    Audience, Changes, CreateOutcome, DELIVERY_RETENTION, Delivery, Departure, Lease,
    NewInputRequest, NewTask, StoreError, Subscription, TaskEvent, TaskId, TaskOutcome, Transition,
};

promises![
    opened_request_is_delivered_from_its_commit,
    settled_request_is_delivered_from_its_commit,
    requests_of_client_and_external_events_are_not_delivered,
    ended_task_is_delivered_for_every_end,
    quarantined_task_is_delivered_each_time,
    delivery_is_written_for_subscribed_events_and_targets,
    rejected_commit_writes_no_delivery,
    repeated_creation_writes_no_second_delivery,
    delivery_has_one_sender,
    due_deliveries_are_leased_in_their_order,
    delivery_is_due_again_after_its_lease,
    sent_delivery_is_deleted,
    failed_delivery_is_due_after_its_delay,
    dead_delivery_is_sent_only_on_request,
    report_of_former_sender_is_ignored,
    next_delivery_is_the_first_of_its_targets,
    delivery_outlives_its_task,
    old_delivery_is_deleted_by_sweep,
];

const SECOND: Duration = Duration::from_secs(1);
const CHAT: &str = "chat";

/// Returns a task of ann whose events are delivered to the target `chat`.
fn notifying(new: NewTask) -> NewTask {
    let all = TaskEvent::ALL.into_iter().map(|event| Subscription::new(event, CHAT));
    new.notify(all.collect())
}

fn requests(asked: Vec<NewInputRequest>) -> Changes {
    Changes { input_requests: asked, ..Changes::default() }
}

impl ContractBench {
    /// Creates a task of ann with deliveries that worker `v` runs.
    async fn start_notifying(&self, id: &str) -> Lease {
        let new = notifying(of_ann(id)).worker(Some((worker("v"), MAX_TTL * 20)));
        match self.store.create(new).await.expect("create succeeds") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("expected a lease: {other:?}"),
        }
    }

    async fn due(&self, target: &str, limit: usize) -> Vec<Delivery> {
        self.for_people().due(target, LEASE, limit).await.expect("operation succeeds")
    }

    async fn due_one(&self) -> Delivery {
        let mut due = self.due(CHAT, 10).await;
        assert_eq!(due.len(), 1, "exactly one delivery is due: {due:?}");
        due.remove(0)
    }

    async fn sent(&self, delivery: &Delivery) {
        self.for_people().sent(&delivery.id).await.expect("operation succeeds");
    }

    async fn fails(&self, delivery: &Delivery, retry_after: Option<Duration>) {
        let (id, attempt) = (&delivery.id, delivery.attempts);
        let failed = self.for_people().failed(id, attempt, retry_after, "connection refused");
        failed.await.expect("operation succeeds");
    }

    async fn failing(&self) -> Vec<Delivery> {
        self.for_people().failing(100).await.expect("read succeeds")
    }

    async fn next_delivery(&self, targets: &[&str]) -> Option<Duration> {
        let targets: Vec<_> = targets.iter().map(|target| (*target).to_owned()).collect();
        self.for_people().next_delivery(&targets).await.expect("read succeeds")
    }

    /// Returns the events of all due deliveries, with their input requests, and deletes these
    /// deliveries.
    async fn events(&self) -> Vec<(TaskEvent, Option<String>)> {
        let due = self.due(CHAT, 100).await;
        for delivery in &due {
            self.sent(delivery).await;
        }
        due.into_iter().map(|delivery| (delivery.event, delivery.input_request)).collect()
    }
}

fn opened(name: &str) -> (TaskEvent, Option<String>) {
    (TaskEvent::InputRequestOpened, Some(name.to_owned()))
}

fn settled(name: &str) -> (TaskEvent, Option<String>) {
    (TaskEvent::InputRequestSettled, Some(name.to_owned()))
}

const ENDED: (TaskEvent, Option<String>) = (TaskEvent::TaskEnded, None);

async fn opened_request_is_delivered_from_its_commit(bench: ContractBench) {
    let before = bench.now().await;
    bench.create(notifying(of_ann("a")).input_requests(vec![approval(by(&["ada"]), 1)])).await;
    let delivery = bench.due_one().await;
    assert_eq!((delivery.task.as_str(), delivery.target.as_str()), ("a", CHAT));
    assert_eq!(delivery.event, TaskEvent::InputRequestOpened);
    assert_eq!(delivery.input_request.as_deref(), Some("#approval"));
    assert!(delivery.at >= before && delivery.at <= bench.now().await, "{delivery:?}");
    assert_eq!((delivery.attempts, &delivery.error), (1, &None));
    bench.sent(&delivery).await;
    let lease = bench.start_notifying("b").await;
    assert!(bench.events().await.is_empty());
    let asked = || requests(vec![question("k", "n").audience(ops())]);
    bench.write(&lease, asked()).await;
    assert_eq!(bench.events().await, [opened("n")]);
    bench.write(&lease, asked()).await;
    assert!(bench.events().await.is_empty(), "the request was open before");
    let withdrawn = vec!["n".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    bench.write(&lease, asked()).await;
    assert_eq!(bench.events().await.last(), Some(&opened("n")), "the request is open again");
}

async fn settled_request_is_delivered_from_its_commit(bench: ContractBench) {
    let lease = bench.start_notifying("a").await;
    let caller = question("k1", "n1").audience(Audience::Caller);
    let form = question("k2", "n2").audience(ops());
    bench.write(&lease, requests(vec![caller, form, approval(by(&["ada", "ben"]), 2)])).await;
    bench.events().await;
    bench.decide("a", &vote("ada", true)).await;
    assert!(bench.events().await.is_empty(), "one more vote is needed");
    bench.decide("a", &vote("ben", true)).await;
    assert_eq!(bench.events().await, [settled("#approval")]);
    assert_eq!(bench.answer("a", &[("n1", json!(1))]).await, Some(1));
    assert_eq!(bench.events().await, [settled("n1")]);
    let withdrawn = vec!["n2".to_owned(), "#approval".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    assert_eq!(bench.events().await, [settled("n2")]);
    bench.end(&lease, done()).await;
    assert_eq!(bench.events().await, [ENDED]);
    let lease = bench.start_notifying("b").await;
    bench.write(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
    bench.events().await;
    bench.end(&lease, done()).await;
    let mut events = bench.events().await;
    events.sort_by_key(|(event, _)| event.as_str());
    assert_eq!(events, [settled("#approval"), ENDED], "the end withdraws the request");
}

async fn requests_of_client_and_external_events_are_not_delivered(bench: ContractBench) {
    let lease = bench.start_notifying("a").await;
    let asked = Changes { input_requests: vec![question("k", "n")], ..Changes::default() };
    bench.write(&lease, asked).await;
    bench.write(&lease, outside("k2", "job")).await;
    bench.answer("a", &[("n", json!(1))]).await;
    bench.answer_outside("a", &[("job", json!(1))]).await;
    assert!(bench.events().await.is_empty());
}

async fn ended_task_is_delivered_for_every_end(bench: ContractBench) {
    let cancel = async |id: &str, at_once| {
        let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        cancelled.expect("cancel succeeds").expect("the task exists")
    };
    let sweep = async || bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    for outcome in [done(), TaskOutcome::Cancelled, TaskOutcome::Expired] {
        let id = format!("{:?}", outcome.kind());
        let lease = bench.start_notifying(&id).await;
        bench.end(&lease, outcome).await;
        assert_eq!(bench.events().await, [ENDED], "{id}");
    }
    bench.create(notifying(of_ann("queued"))).await;
    cancel("queued", false).await;
    assert_eq!(bench.events().await, [ENDED]);
    let lease = bench.start_notifying("running").await;
    cancel("running", false).await;
    assert!(bench.events().await.is_empty(), "the worker is requested to stop");
    cancel("running", true).await;
    assert_eq!(bench.events().await, [ENDED]);
    let again = Transition::End { outcome: done(), retention: RETENTION };
    let again = bench.store.commit(&lease, &Changes::default(), &again).await;
    assert_eq!(again, Err(StoreError::LeaseLost));
    assert!(bench.events().await.is_empty(), "a task ends once");
    bench.create(notifying(bridged("abandoned"))).await;
    bench.leave("abandoned", "v", Departure::Lost).await;
    bench.advance(ABANDON + SECOND);
    sweep().await;
    assert_eq!(bench.events().await, [ENDED]);
    bench.create(notifying(of_ann("expired"))).await;
    bench.advance(MAX_TTL + SECOND);
    sweep().await;
    assert_eq!(bench.events().await, [ENDED]);
    let lease = bench.start_notifying("quarantined").await;
    bench.stop(&lease, Changes::default()).await;
    bench.events().await;
    bench.advance(HOLD + SECOND);
    sweep().await;
    assert_eq!(bench.events().await, [ENDED]);
}

async fn quarantined_task_is_delivered_each_time(bench: ContractBench) {
    let lease = bench.start_notifying("a").await;
    bench.stop(&lease, Changes::default()).await;
    assert_eq!(bench.events().await, [(TaskEvent::TaskQuarantined, None)]);
    bench.retry("a").await;
    assert!(bench.events().await.is_empty());
    let lease = bench.claim_one("w").await.lease;
    bench.stop(&lease, Changes::default()).await;
    assert_eq!(bench.events().await, [(TaskEvent::TaskQuarantined, None)]);
    let lease = bench.start_notifying("b").await;
    bench.store.cancel(OWNER, &lease.task, false, RETENTION).await.expect("cancel succeeds");
    bench.stop(&lease, Changes::default()).await;
    assert!(bench.events().await.is_empty(), "a cancelled task is queued instead");
}

async fn delivery_is_written_for_subscribed_events_and_targets(bench: ContractBench) {
    let to = |event, target: &str| Subscription::new(event, target);
    let notify = vec![
        to(TaskEvent::TaskEnded, CHAT),
        to(TaskEvent::TaskEnded, "ops"),
        to(TaskEvent::TaskQuarantined, "ops"),
    ];
    let asked = vec![approval(by(&["ada"]), 1)];
    bench.create(of_ann("a").notify(notify).input_requests(asked)).await;
    bench.create(of_ann("silent")).await;
    for id in ["a", "silent"] {
        let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), false, RETENTION).await;
        cancelled.expect("cancel succeeds");
    }
    let (chat, ops) = (bench.due_one().await, bench.due("ops", 10).await.remove(0));
    assert_eq!((chat.event, ops.event), (TaskEvent::TaskEnded, TaskEvent::TaskEnded));
    assert_ne!(chat.id, ops.id, "each target has its own delivery");
    assert!(bench.due("ops", 10).await.is_empty() && bench.due("other", 10).await.is_empty());
}

async fn rejected_commit_writes_no_delivery(bench: ContractBench) {
    let lease = bench.start_notifying("a").await;
    bench.store.release(&lease.worker).await.expect("release succeeds");
    let then = Transition::End { outcome: done(), retention: RETENTION };
    let asked = requests(vec![approval(by(&["ada"]), 1)]);
    let refused = bench.store.commit(&lease, &asked, &then).await;
    assert_eq!(refused, Err(StoreError::LeaseLost));
    assert!(bench.events().await.is_empty());
}

async fn repeated_creation_writes_no_second_delivery(bench: ContractBench) {
    let new = || notifying(of_ann("a")).input_requests(vec![approval(by(&["ada"]), 1)]);
    bench.create(new()).await;
    let again = bench.store.create(new()).await.expect("create succeeds");
    assert!(!again.is_new());
    let full = NewTask { id: TaskId::new("b"), quota: 0, ..new() };
    let full = bench.store.create(full).await.expect("create succeeds");
    assert_eq!(full, CreateOutcome::QuotaExceeded);
    assert_eq!(bench.events().await, [opened("#approval")]);
}

async fn delivery_has_one_sender(bench: ContractBench) {
    for id in 0..12 {
        let asked = vec![approval(by(&["ada"]), 1)];
        bench.create(notifying(of_ann(&format!("t{id}"))).input_requests(asked)).await;
    }
    let mut senders = JoinSet::new();
    for _ in 0..8 {
        let store = Arc::clone(bench.for_people());
        senders.spawn(async move { store.due(CHAT, LEASE, 3).await.expect("operation succeeds") });
    }
    let mut leased: Vec<_> = senders.join_all().await.into_iter().flatten().collect();
    leased.extend(bench.due(CHAT, 100).await);
    let mut ids: Vec<_> = leased.iter().map(|delivery| delivery.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), leased.len()), (12, 12), "each delivery is leased once");
}

async fn due_deliveries_are_leased_in_their_order(bench: ContractBench) {
    for id in ["c", "a", "b"] {
        let asked = vec![approval(by(&["ada"]), 1)];
        bench.create(notifying(of_ann(id)).input_requests(asked)).await;
        bench.advance(SECOND);
    }
    let tasks = |due: Vec<Delivery>| {
        due.into_iter().map(|delivery| delivery.task.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tasks(bench.due(CHAT, 2).await), ["c", "a"]);
    assert_eq!(tasks(bench.due(CHAT, 2).await), ["b"]);
}

/// Creates a delivery of the event `task.ended`.
async fn make(bench: &ContractBench, id: &str) {
    let lease = bench.start_notifying(id).await;
    bench.end(&lease, done()).await;
}

async fn delivery_is_due_again_after_its_lease(bench: ContractBench) {
    make(&bench, "a").await;
    let first = bench.due_one().await;
    bench.advance(LEASE - SECOND * 5);
    assert!(bench.due(CHAT, 10).await.is_empty(), "a sender has the delivery");
    bench.advance(SECOND * 6);
    let second = bench.due_one().await;
    assert_eq!((second.id.as_str(), second.attempts), (first.id.as_str(), 2));
    assert_eq!(second.at, first.at);
}

async fn sent_delivery_is_deleted(bench: ContractBench) {
    make(&bench, "a").await;
    let first = bench.due_one().await;
    bench.advance(LEASE + SECOND);
    let second = bench.due_one().await;
    bench.sent(&first).await;
    bench.sent(&first).await;
    bench.fails(&second, Some(SECOND)).await;
    bench.advance(LEASE + SECOND);
    assert!(bench.due(CHAT, 10).await.is_empty() && bench.failing().await.is_empty());
    assert_eq!(bench.next_delivery(&[CHAT]).await, None);
    let again = bench.for_people().send_again(&first.id).await;
    assert_eq!(again, Ok(false));
}

async fn failed_delivery_is_due_after_its_delay(bench: ContractBench) {
    make(&bench, "a").await;
    bench.fails(&bench.due_one().await, Some(Duration::from_secs(300))).await;
    bench.advance(LEASE * 2);
    assert!(bench.due(CHAT, 10).await.is_empty(), "the delay replaces the lease");
    let failing = bench.failing().await;
    assert_eq!((failing.len(), failing[0].attempts), (1, 1));
    assert_eq!(failing[0].error.as_deref(), Some("connection refused"));
    assert!(failing[0].due_at.is_some());
    bench.advance(Duration::from_secs(300));
    let again = bench.due_one().await;
    assert_eq!((again.attempts, again.error.as_deref()), (2, Some("connection refused")));
}

async fn dead_delivery_is_sent_only_on_request(bench: ContractBench) {
    make(&bench, "a").await;
    bench.advance(SECOND);
    make(&bench, "b").await;
    for delivery in bench.due(CHAT, 10).await {
        bench.fails(&delivery, None).await;
    }
    bench.advance(Duration::from_secs(24 * 3600));
    assert!(bench.due(CHAT, 10).await.is_empty());
    assert_eq!(bench.next_delivery(&[CHAT]).await, None);
    let failing = bench.failing().await;
    let dead: Vec<_> = failing.iter().map(|one| (one.task.as_str(), one.due_at)).collect();
    assert_eq!(dead, [("b", None), ("a", None)], "newest event first");
    assert_eq!(bench.for_people().send_again(&failing[1].id).await, Ok(true));
    let again = bench.due_one().await;
    assert_eq!((again.task.as_str(), again.attempts), ("a", 1), "all attempts are left");
    assert_eq!(bench.for_people().send_again("unknown").await, Ok(false));
}

async fn report_of_former_sender_is_ignored(bench: ContractBench) {
    make(&bench, "a").await;
    let first = bench.due_one().await;
    bench.advance(LEASE + SECOND);
    let second = bench.due_one().await;
    bench.fails(&first, None).await;
    assert!(bench.failing().await.is_empty(), "another sender has the delivery");
    bench.fails(&second, Some(SECOND)).await;
    bench.advance(SECOND * 2);
    assert_eq!(bench.due_one().await.attempts, 3);
}

async fn next_delivery_is_the_first_of_its_targets(bench: ContractBench) {
    assert_eq!(bench.next_delivery(&[CHAT]).await, None);
    make(&bench, "a").await;
    assert_eq!(bench.next_delivery(&["ops", CHAT]).await, Some(Duration::ZERO));
    assert_eq!(bench.next_delivery(&["ops"]).await, None);
    assert_eq!(bench.next_delivery(&[]).await, None);
    bench.due_one().await;
    let next = bench.next_delivery(&[CHAT]).await.expect("the lease ends");
    assert!(next <= LEASE && next > LEASE / 2, "{next:?}");
}

async fn delivery_outlives_its_task(bench: ContractBench) {
    make(&bench, "a").await;
    bench.purge("a", false).await;
    assert_eq!(bench.due_one().await.task.as_str(), "a");
    let lease = bench.start_notifying("b").await;
    bench.purge("b", true).await;
    assert!(bench.due(CHAT, 10).await.is_empty(), "an operator deleted the open task {lease:?}");
}

async fn old_delivery_is_deleted_by_sweep(bench: ContractBench) {
    make(&bench, "a").await;
    bench.fails(&bench.due_one().await, None).await;
    make(&bench, "b").await;
    bench.advance(DELIVERY_RETENTION - Duration::from_secs(60));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(bench.failing().await.len(), 1);
    bench.advance(Duration::from_secs(120));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.failing().await.is_empty());
    assert!(bench.due(CHAT, 10).await.is_empty());
}
