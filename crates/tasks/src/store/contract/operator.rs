//! Checks of operators' lists, retries and deletions.

use std::time::Duration;

use serde_json::json;

use super::{
    bench::{
        ContractBench, OWNER, RETENTION, TTL, ask, done, entry, outside, promises, raw, recorded,
        task, worker,
    },
    bridge::bridged,
    end_audit::audited,
    quarantine::{self, HOLD},
};
use crate::{
    JournalEntry, SegmentRecord,
    store::{
        Changes, CreateOutcome, IdempotencyKey, InputRequestState, Lease, ListCursor, NewTask,
        OutcomeKind, Phase, PurgeOutcome, RecordedEntry, RetryOutcome, StoreError, TaskDetail,
        TaskFilter, TaskId, TaskOutcome, TaskSummary, Transition, UnixMillis,
    },
};

promises![
    operator_lists_tasks_of_all_principals,
    operator_sees_unacknowledged_task,
    operator_list_pages_newest_first,
    operator_list_applies_filter,
    inspect_returns_all_data_of_task,
    inspect_keeps_secret_entries_marked,
    operations_on_unknown_task_return_none,
    retried_task_continues_from_its_journal,
    retry_restarts_the_ttl,
    retry_with_open_input_request_restarts_the_ttl,
    retry_of_ended_task_is_rejected,
    retry_of_task_that_is_not_quarantined_is_rejected,
    purge_of_open_task_requires_force,
    purge_of_open_task_appends_no_end_event,
    purge_with_pending_cleanup_requires_force,
    purge_deletes_all_data_of_task,
    purge_ended_deletes_tasks_ended_before_time,
    key_values_with_prefix_are_listed_until_they_expire,
];

const OTHER: &str = "name:bob";

impl ContractBench {
    async fn tasks(&self, filter: TaskFilter) -> Vec<TaskSummary> {
        self.operator().tasks(&filter, None, 100).await.expect("read succeeds")
    }

    pub(super) async fn inspect(&self, id: &str) -> TaskDetail {
        let found = self.operator().inspect(&TaskId::new(id)).await.expect("read succeeds");
        found.unwrap_or_else(|| panic!("task {id} does not exist"))
    }

    pub(super) async fn retry(&self, id: &str) -> Option<RetryOutcome> {
        self.operator().retry(&TaskId::new(id)).await.expect("operation succeeds")
    }

    pub(super) async fn purge(&self, id: &str, force: bool) -> Option<PurgeOutcome> {
        self.operator().purge(&TaskId::new(id), force).await.expect("operation succeeds")
    }

    pub(super) async fn now(&self) -> UnixMillis {
        self.queue("clock").await;
        let now = self.view("clock").await.created_at;
        let gone = self.purge("clock", true).await;
        assert!(matches!(gone, Some(PurgeOutcome::Purged(..))), "{gone:?}");
        now
    }
}

fn ids(tasks: &[TaskSummary]) -> Vec<&str> {
    tasks.iter().map(|task| task.view.id.as_str()).collect()
}

async fn operator_lists_tasks_of_all_principals(bench: ContractBench) {
    bench.start("a", "w").await;
    let unlisted = NewTask { principal: OTHER.to_owned(), listed: false, ..task("b") };
    bench.store.create(unlisted).await.expect("create succeeds");
    let mut tasks = bench.tasks(TaskFilter::default()).await;
    tasks.sort_by(|one, other| one.view.id.cmp(&other.view.id));
    assert_eq!(ids(&tasks), ["a", "b"]);
    let owners: Vec<_> = tasks.iter().map(|task| task.principal.as_str()).collect();
    assert_eq!(owners, [OWNER, OTHER]);
    let [a, b] = &tasks[..] else { panic!("{tasks:?}") };
    assert_eq!((a.owner.clone(), a.epoch, a.started), (Some(worker("w")), 1, true));
    assert_eq!((b.owner.clone(), b.epoch, b.started, b.crash_count), (None, 0, false, 0));
    assert!(a.due_at > b.due_at && b.due_at.is_some(), "{tasks:?}");
    assert!(a.kept.is_none());
}

async fn operator_sees_unacknowledged_task(bench: ContractBench) {
    bench.store.create(bridged("a")).await.expect("create succeeds");
    bench.queue("b").await;
    let tasks = bench.tasks(TaskFilter::default()).await;
    let acknowledged = |id| tasks.iter().find(|task| task.view.id.as_str() == id);
    assert_eq!(acknowledged("a").map(|task| task.view.acknowledged), Some(false));
    assert_eq!(acknowledged("b").map(|task| task.view.acknowledged), Some(true));
    assert!(!bench.inspect("a").await.task.view.acknowledged);
    let purged = bench.purge("a", true).await;
    assert!(matches!(purged, Some(PurgeOutcome::Purged(..))), "{purged:?}");
    assert_eq!(bench.attend("a", "v").await, None, "the call is deleted with its task");
}

async fn operator_list_pages_newest_first(bench: ContractBench) {
    for count in 0..7 {
        bench.queue(&format!("t{count}")).await;
        if count != 3 {
            // Two tasks have the same creation time and are ordered by ID.
            bench.advance(Duration::from_millis(10));
        }
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = bench
            .operator()
            .tasks(&TaskFilter::default(), after.as_ref(), 3)
            .await
            .expect("read succeeds");
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(ListCursor { created: last.view.created_at, id: last.view.id.clone() });
        seen.extend(page);
    }
    let places: Vec<_> = seen.iter().map(|task| (task.view.created_at, &task.view.id)).collect();
    assert!(places.is_sorted_by(|newer, older| newer > older), "{places:?}");
    assert_eq!(seen.len(), 7);
}

async fn operator_list_applies_filter(bench: ContractBench) {
    bench.make_kept("kept").await;
    bench.advance(Duration::from_secs(5));
    let other = NewTask { principal: OTHER.to_owned(), tool: "report".to_owned(), ..task("other") };
    bench.store.create(other).await.expect("create succeeds");
    let lease = bench.start("ended", "w").await;
    bench.end(&lease, done()).await;
    let failed = TaskOutcome::Result(raw(&json!({"content": [], "isError": true})));
    for (id, outcome) in [("failed", failed), ("cancelled", TaskOutcome::Cancelled)] {
        let lease = bench.start(id, "w").await;
        bench.end(&lease, outcome).await;
    }
    let created = bench.view("ended").await.created_at;
    let all = TaskFilter::default();
    for (filter, expected) in [
        (TaskFilter { phase: Some(Phase::Quarantined), ..all.clone() }, vec!["kept"]),
        (TaskFilter { outcome: Some(OutcomeKind::Completed), ..all.clone() }, vec!["ended"]),
        (TaskFilter { outcome: Some(OutcomeKind::Failed), ..all.clone() }, vec!["failed"]),
        (TaskFilter { outcome: Some(OutcomeKind::Cancelled), ..all.clone() }, vec!["cancelled"]),
        (TaskFilter { outcome: Some(OutcomeKind::Expired), ..all.clone() }, vec![]),
        (TaskFilter { phase: Some(Phase::Parked), ..all.clone() }, vec![]),
        (TaskFilter { tool: Some("report".to_owned()), ..all.clone() }, vec!["other"]),
        (TaskFilter { principal: Some(OTHER.to_owned()), ..all.clone() }, vec!["other"]),
        (TaskFilter { before: Some(created - 1_000), ..all.clone() }, vec!["kept"]),
        (
            TaskFilter {
                phase: Some(Phase::Quarantined),
                principal: Some(OTHER.to_owned()),
                ..all.clone()
            },
            vec![],
        ),
    ] {
        assert_eq!(ids(&bench.tasks(filter.clone()).await), expected, "{filter:?}");
    }
}

async fn inspect_returns_all_data_of_task(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    let segment = |ordinal| SegmentRecord {
        scope: String::new(),
        ordinal,
        block: raw(&json!({"type": "text", "text": "x"})),
    };
    let asked = ask(&[("k1", "n1"), ("k2", "n2"), ("k3", "n3")]);
    let changes = Changes { segments: vec![segment(0), segment(1)], ..asked };
    bench.write(&lease, changes).await;
    bench.write(&lease, outside("k4", "n4")).await;
    bench.write(&lease, entry("step", json!({"ü": 1}))).await;
    bench.answer("t", &[("n2", json!("yes"))]).await;
    let withdrawn = Changes { withdrawn: vec!["n3".to_owned()], ..Changes::default() };
    bench.park(&lease, withdrawn).await;
    let shown = bench.inspect("t").await;
    assert_eq!(shown.task.principal, OWNER);
    assert_eq!(shown.task.view.phase, Phase::Queued, "a response waits for the task");
    let request: serde_json::Value = serde_json::from_str(shown.request.get()).expect("JSON");
    assert_eq!(request, json!({"name": "deploy", "text": "ü\n"}));
    assert_eq!(shown.segments, 2);
    let keys: Vec<_> = shown.entries.keys().map(String::as_str).collect();
    assert_eq!(keys, ["k2", "step"]);
    assert!(matches!(shown.entries["k2"], JournalEntry::Answer(_)));
    let questions: Vec<_> = shown
        .input_requests
        .iter()
        .map(|asked| {
            (asked.key.as_str(), asked.name.as_str(), asked.state, asked.request.is_some())
        })
        .collect();
    assert_eq!(
        questions,
        [
            ("k1", "n1", InputRequestState::Open, true),
            ("k2", "n2", InputRequestState::Answered, true),
            ("k3", "n3", InputRequestState::Withdrawn, true),
            ("k4", "n4", InputRequestState::Open, false),
        ]
    );
}

async fn inspect_keeps_secret_entries_marked(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    let secret = JournalEntry::Secret(raw(&json!("hunter2")));
    let changes =
        Changes { entries: vec![RecordedEntry::new("token", secret)], ..Changes::default() };
    bench.write(&lease, changes).await;
    let shown = bench.inspect("t").await;
    assert!(matches!(shown.entries["token"], JournalEntry::Secret(_)), "{:?}", shown.entries);
}

async fn operations_on_unknown_task_return_none(bench: ContractBench) {
    bench.queue("t").await;
    let unknown = TaskId::new("x");
    assert!(bench.operator().inspect(&unknown).await.expect("read succeeds").is_none());
    assert_eq!(bench.retry("x").await, None);
    assert_eq!(bench.purge("x", true).await, None);
}

async fn retried_task_continues_from_its_journal(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.write(&lease, entry("k", json!(7))).await;
    bench.advance(super::bench::LEASE + Duration::from_secs(1));
    let lost = bench.claim_one("v").await;
    assert_eq!(lost.crash_count, 1);
    bench.stop(&lost.lease, quarantine::message("kept")).await;
    let shown = bench.inspect("t").await.task;
    assert!(matches!(shown.kept, Some(TaskOutcome::Error(_))), "{shown:?}");
    assert_eq!(bench.retry("t").await, Some(RetryOutcome::Queued(OWNER.to_owned())));
    let view = bench.view("t").await;
    assert_eq!((view.phase, view.status_message), (Phase::Queued, None));
    assert!(bench.inspect("t").await.task.kept.is_none());
    let again = bench.claim_one("w").await;
    assert_eq!((again.crash_count, again.started, again.lost), (0, true, false));
    assert_eq!(recorded(&again.journal, "k").as_deref(), Some("7"));
    let late = bench.store.commit(&lost.lease, &Changes::default(), &Transition::Continue).await;
    assert_eq!(late, Err(StoreError::LeaseLost), "the former worker has lost the lease");
    bench.end(&again.lease, done()).await;
    let census = bench.store.stats().await.expect("stats succeed");
    assert_eq!((census.quarantined, census.ended), (0, 1));
}

/// Returns whether a task exists and has not ended.
async fn is_alive(bench: &ContractBench, id: &str) -> bool {
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    bench.view(id).await.phase != Phase::Ended
}

async fn retry_restarts_the_ttl(bench: ContractBench) {
    bench.make_kept("t").await;
    // A task that is not quarantined would have expired after this time.
    bench.advance(HOLD - Duration::from_secs(60));
    bench.retry("t").await;
    bench.advance(TTL - Duration::from_secs(30));
    assert!(is_alive(&bench, "t").await);
    bench.advance(Duration::from_secs(31));
    assert!(!is_alive(&bench, "t").await, "the TTL is not longer than before");
}

async fn retry_with_open_input_request_restarts_the_ttl(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, ask(&[("k", "n")])).await;
    bench.advance(HOLD - Duration::from_secs(60));
    bench.retry("t").await;
    bench.advance(TTL + Duration::from_secs(1));
    assert!(is_alive(&bench, "t").await, "an open input request extends the TTL");
    let claimed = bench.claim_one("w").await;
    bench.answer("t", &[("n", json!(1))]).await;
    assert!(is_alive(&bench, "t").await, "the response restarts the TTL");
    bench.write(&claimed.lease, ask(&[("k2", "n2")])).await;
    assert!(is_alive(&bench, "t").await, "the next input request extends it again");
}

async fn retry_of_ended_task_is_rejected(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.end(&lease, quarantine::failed()).await;
    let before = bench.view("t").await;
    assert_eq!(bench.retry("t").await, Some(RetryOutcome::NotQuarantined(Phase::Ended)));
    let after = bench.view("t").await;
    assert_eq!((after.phase, after.updated_at), (Phase::Ended, before.updated_at));
    assert!(bench.claim("w").await.is_empty());
}

async fn retry_of_task_that_is_not_quarantined_is_rejected(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    assert_eq!(bench.retry("t").await, Some(RetryOutcome::NotQuarantined(Phase::Running)));
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert_eq!(bench.retry("t").await, Some(RetryOutcome::NotQuarantined(Phase::Parked)));
    assert!(bench.claim("w").await.is_empty(), "the task is still parked");
}

async fn purge_of_open_task_requires_force(bench: ContractBench) {
    let lease = bench.start("running", "w").await;
    bench.make_kept("kept").await;
    assert_eq!(bench.purge("running", false).await, Some(PurgeOutcome::NotEnded(Phase::Running)));
    assert_eq!(bench.purge("kept", false).await, Some(PurgeOutcome::NotEnded(Phase::Quarantined)));
    bench.write(&lease, entry("k", json!(1))).await;
    let gone = PurgeOutcome::Purged(OWNER.to_owned(), Phase::Running);
    assert_eq!(bench.purge("running", true).await, Some(gone));
    assert!(bench.is_gone("running").await);
    let written = bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost), "the worker has lost the lease");
    assert!(
        bench
            .store
            .renew(&worker("w"), super::bench::LEASE)
            .await
            .expect("renewal succeeds")
            .is_empty()
    );
}

async fn purge_of_open_task_appends_no_end_event(bench: ContractBench) {
    bench.store.create(audited(task("t"))).await.expect("create succeeds");
    let gone = PurgeOutcome::Purged(OWNER.to_owned(), Phase::Queued);
    assert_eq!(bench.purge("t", true).await, Some(gone));
    let events = bench.store.read(None, 0, 10).await.expect("read succeeds");
    assert!(events.is_empty(), "{events:?}");
}

async fn purge_with_pending_cleanup_requires_force(bench: ContractBench) {
    let new =
        NewTask { clean_up: true, worker: Some((worker("w"), super::bench::LEASE)), ..task("t") };
    bench.store.create(new).await.expect("create succeeds");
    let lease = Lease { task: TaskId::new("t"), worker: worker("w"), epoch: 1 };
    bench.end(&lease, TaskOutcome::Cancelled).await;
    assert_eq!(bench.purge("t", false).await, Some(PurgeOutcome::CleanupPending));
    let before = bench.view("t").await.updated_at + 1;
    let swept = bench.operator().purge_ended(before, 100).await.expect("operation succeeds");
    assert!(swept.is_empty(), "{swept:?}");
    let gone = PurgeOutcome::Purged(OWNER.to_owned(), Phase::Ended);
    assert_eq!(bench.purge("t", true).await, Some(gone));
    assert!(bench.claim("w").await.is_empty());
}

async fn purge_deletes_all_data_of_task(bench: ContractBench) {
    let once = IdempotencyKey { key: "once".to_owned(), fingerprint: "d".to_owned() };
    let new = || NewTask { idempotency: Some(once.clone()), quota: 1, ..task("t") };
    bench.store.create(new()).await.expect("create succeeds");
    let lease = bench.claim_one("w").await.lease;
    let changes =
        Changes { input_requests: ask(&[("k", "n")]).input_requests, ..entry("step", json!(1)) };
    bench.write(&lease, changes).await;
    assert!(bench.purge("t", true).await.is_some());
    let census = bench.store.stats().await.expect("stats succeed");
    assert_eq!((census.running, census.queued, census.ended), (0, 0, 0));
    assert_eq!(bench.store.find(OWNER, &once).await, Ok(None));
    let again = bench.store.create(new()).await.expect("create succeeds");
    assert!(
        matches!(again, CreateOutcome::Created { .. }),
        "the quota and the key are free: {again:?}"
    );
    let again = bench.claim_one("w").await;
    assert!(again.journal.entries.is_empty(), "{:?}", again.journal);
    assert!(bench.view("t").await.input_requests.is_empty());
}

async fn purge_ended_deletes_tasks_ended_before_time(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        let lease = bench.start(id, "w").await;
        bench.end(&lease, done()).await;
    }
    bench.start("running", "w").await;
    bench.make_kept("kept").await;
    bench.advance(Duration::from_secs(60));
    let now = bench.now().await;
    let lease = bench.start("young", "w").await;
    bench.end(&lease, done()).await;
    let mut gone = Vec::new();
    for expected in [2, 1, 0] {
        let page = bench.operator().purge_ended(now, 2).await.expect("operation succeeds");
        assert_eq!(page.len(), expected, "{page:?}");
        gone.extend(page);
    }
    gone.sort();
    let ended = ["a", "b", "c"].map(|id| (OWNER.to_owned(), TaskId::new(id)));
    assert_eq!(gone, ended);
    let mut left = bench.tasks(TaskFilter::default()).await;
    left.sort_by(|one, other| one.view.id.cmp(&other.view.id));
    assert_eq!(ids(&left), ["kept", "running", "young"]);
    let census = bench.store.stats().await.expect("stats succeed");
    assert_eq!((census.ended, census.running, census.quarantined), (1, 1, 1));
}

async fn key_values_with_prefix_are_listed_until_they_expire(bench: ContractBench) {
    let minute = Duration::from_secs(60);
    for (key, ttl) in
        [("a/2", minute), ("a/1", minute * 2), ("a/3", minute * 2), ("a%", minute), ("b/1", minute)]
    {
        bench.store.put(key, raw(&json!(key)), ttl, None).await.expect("put succeeds");
    }
    let listed = async |prefix: &str, limit| {
        let found = bench.operator().key_values(prefix, limit).await.expect("read succeeds");
        let shown = found.into_iter().map(|(key, value)| format!("{key} = {}", value.get()));
        shown.collect::<Vec<_>>()
    };
    let [first, second, third] = [1, 2, 3].map(|number| format!("a/{number} = \"a/{number}\""));
    assert_eq!(listed("a/", 10).await, [first.clone(), second.clone(), third.clone()]);
    assert_eq!(listed("a/", 2).await, [first.clone(), second]);
    assert_eq!(listed("a%", 10).await, ["a% = \"a%\""], "a prefix is not a pattern");
    assert_eq!(listed("", 10).await.len(), 5);
    bench.advance(minute);
    assert_eq!(listed("a/", 10).await, [first, third]);
}
