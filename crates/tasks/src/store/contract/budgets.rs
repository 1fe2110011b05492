//! Checks of the stored bytes of each principal, and of their limits.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    bench::{
        ContractBench, MAX_TTL, OWNER, RETENTION, TTL, ask, done, entry, names, promises, raw,
        task, worker,
    },
    quarantine::{HOLD, failed},
};
use crate::{
    SegmentRecord,
    store::{
        Changes, Charge, CreateOutcome, InputSource, NewTask, OUTCOME_RESERVE, PageLimit, Phase,
        StoreError, TaskId, TaskOutcome, Transition,
    },
};

promises![
    stored_bytes_grow_with_tasks_of_principal,
    stored_bytes_of_ended_task_count_until_deletion,
    stored_bytes_of_repeated_commit_count_once,
    create_above_byte_limit_is_rejected,
    create_existing_task_at_byte_limit_succeeds,
    entry_above_byte_limit_is_rejected_and_task_continues,
    segment_above_byte_limit_is_rejected,
    input_request_above_byte_limit_is_rejected,
    response_above_byte_limit_is_rejected_and_can_be_retried,
    outcome_above_byte_limit_is_rejected_unless_small,
    quarantine_above_byte_limit_is_rejected_and_lease_stays,
    commit_without_new_bytes_succeeds_at_byte_limit,
    principal_at_byte_limit_does_not_block_other_principals,
    tags_count_until_deletion_of_their_task,
    tag_above_byte_limit_is_rejected,
    key_value_entry_counts_until_deletion,
    key_value_entry_above_byte_limit_is_rejected,
    ready_on_working_store_succeeds,
];

const EVE: &str = "name:eve";
const HOUR: Duration = Duration::from_secs(3600);
const KIB: usize = 1_024;

impl ContractBench {
    async fn bytes(&self, principal: &str) -> u64 {
        self.store.stored_bytes(principal).await.expect("read succeeds")
    }

    async fn charge(&self, key: &str, note: &Value, max_bytes: u64) -> Result<(), StoreError> {
        let charge = Charge { principal: OWNER.to_owned(), max_bytes };
        self.store.put(key, raw(note), HOUR, Some(&charge)).await
    }
}

fn long(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

async fn stored_bytes_grow_with_tasks_of_principal(bench: ContractBench) {
    assert_eq!(bench.bytes(OWNER).await, 0);
    let new = NewTask { request: raw(&long(10 * KIB)), ..task("a") };
    bench.store.create(new).await.expect("create succeeds");
    let made = bench.bytes(OWNER).await;
    assert!((10 * KIB as u64..20 * KIB as u64).contains(&made), "{made}");
    let lease = bench.claim_one("w").await.lease;
    assert_eq!(bench.bytes(OWNER).await, made, "a claim adds no bytes");
    bench.write(&lease, entry("k", long(20 * KIB))).await;
    let recorded = bench.bytes(OWNER).await;
    assert!(recorded >= made + 20 * KIB as u64, "{recorded}");
    let block = raw(&long(30 * KIB));
    let segments = vec![SegmentRecord { scope: String::new(), ordinal: 0, block }];
    bench.write(&lease, Changes { segments, ..Changes::default() }).await;
    let emitted = bench.bytes(OWNER).await;
    assert!(emitted >= recorded + 30 * KIB as u64, "{emitted}");
    bench.write(&lease, ask(&[("q", "n")])).await;
    bench.answer("a", &[("n", long(40 * KIB))]).await;
    let answered = bench.bytes(OWNER).await;
    assert!(answered >= emitted + 40 * KIB as u64, "{answered}");
    bench.write(&lease, Changes { invalidated: vec!["q".to_owned()], ..Changes::default() }).await;
    let forgotten = bench.bytes(OWNER).await;
    assert!(forgotten <= answered - 40 * KIB as u64, "{forgotten}");
    bench.end(&lease, TaskOutcome::Result(raw(&long(50 * KIB)))).await;
    let ended = bench.bytes(OWNER).await;
    assert!(ended >= forgotten + 50 * KIB as u64, "{ended}");
    assert_eq!(bench.bytes(EVE).await, 0, "other principals are not charged");
    // The total of all principals may be updated only by the next sweep.
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(bench.store.stats().await.expect("stats succeed").bytes, ended);
}

async fn stored_bytes_of_ended_task_count_until_deletion(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    bench.end(&lease, done()).await;
    bench.queue("b").await;
    let before = bench.bytes(OWNER).await;
    bench.store.cancel(OWNER, &TaskId::new("b"), true, RETENTION).await.expect("cancel succeeds");
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.bytes(OWNER).await >= before, "both tasks are still readable");
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert!(bench.is_gone("a").await && bench.is_gone("b").await);
    assert_eq!(bench.bytes(OWNER).await, 0);
    assert_eq!(bench.store.stats().await.expect("stats succeed").bytes, 0);
}

async fn stored_bytes_of_repeated_commit_count_once(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let before = bench.bytes(OWNER).await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let message = Some("half way".to_owned());
    bench.write(&lease, Changes { status_message: message, ..entry("k", long(KIB)) }).await;
    assert_eq!(bench.bytes(OWNER).await, before);
}

async fn create_above_byte_limit_is_rejected(bench: ContractBench) {
    let max_bytes = 32 * KIB as u64;
    let new = |id: &str| NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task(id) };
    for id in ["a", "b"] {
        assert!(bench.store.create(new(id)).await.expect("operation succeeds").is_new());
    }
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new("c")).await, Ok(CreateOutcome::BytesExceeded));
    assert!(bench.is_gone("c").await);
    assert_eq!(bench.bytes(OWNER).await, before);
    // Ended tasks count like open ones.
    bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await.expect("cancel succeeds");
    assert_eq!(bench.store.create(new("c")).await, Ok(CreateOutcome::BytesExceeded));
    let eve = NewTask { principal: EVE.to_owned(), ..new("e") };
    assert!(
        bench.store.create(eve).await.expect("operation succeeds").is_new(),
        "other principals are not affected"
    );
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..4 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert!(
        bench.store.create(new("c")).await.expect("operation succeeds").is_new(),
        "deleted tasks free their bytes"
    );
}

async fn create_existing_task_at_byte_limit_succeeds(bench: ContractBench) {
    let new = || NewTask { request: raw(&long(10 * KIB)), max_bytes: 16 * KIB as u64, ..task("a") };
    assert!(bench.store.create(new()).await.expect("operation succeeds").is_new());
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new()).await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    assert_eq!(bench.bytes(OWNER).await, before);
}

/// Returns changes that are charged to the owner with this limit.
fn charged(changes: Changes, max_bytes: u64) -> Changes {
    let charge = Charge { principal: OWNER.to_owned(), max_bytes };
    Changes { charge: Some(charge), ..changes }
}

fn block(ordinal: u32, bytes: usize) -> Changes {
    let segments = vec![SegmentRecord { scope: String::new(), ordinal, block: raw(&long(bytes)) }];
    Changes { segments, ..Changes::default() }
}

async fn entry_above_byte_limit_is_rejected_and_task_continues(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let max_bytes = bench.bytes(OWNER).await + 16 * KIB as u64;
    bench.write(&lease, charged(entry("k", long(10 * KIB)), max_bytes)).await;
    let before = bench.bytes(OWNER).await;
    let too_much = charged(entry("l", long(10 * KIB)), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    let words = Changes { status_message: Some("half way".to_owned()), ..too_much };
    let refused = bench.store.commit(&lease, &words, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded), "the commit is atomic");
    assert_eq!(bench.bytes(OWNER).await, before);
    assert_eq!(bench.view("a").await.status_message, None);
    bench.write(&lease, charged(entry("l", long(2 * KIB)), max_bytes)).await;
    bench.write(&lease, entry("m", long(10 * KIB))).await;
    assert!(bench.bytes(OWNER).await > max_bytes, "changes without a charge have no limit");
    bench.store.release(&lease.worker).await.expect("release succeeds");
    let journal = bench.claim_one("w").await.journal;
    assert_eq!(journal.entries.keys().collect::<Vec<_>>(), ["k", "l", "m"]);
}

async fn segment_above_byte_limit_is_rejected(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let max_bytes = bench.bytes(OWNER).await + 16 * KIB as u64;
    bench.write(&lease, charged(block(0, 10 * KIB), max_bytes)).await;
    let before = bench.bytes(OWNER).await;
    let too_much = charged(block(1, 10 * KIB), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(bench.bytes(OWNER).await, before);
    bench.write(&lease, charged(block(1, KIB), max_bytes)).await;
    let limit = PageLimit { segments: 10, bytes: usize::MAX };
    let emitted =
        bench.store.read_segments(OWNER, &lease.task, 0, limit).await.expect("read succeeds");
    assert_eq!(emitted.expect("task exists").blocks.len(), 2);
}

async fn input_request_above_byte_limit_is_rejected(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let before = bench.bytes(OWNER).await;
    let long = "n".repeat(10 * KIB);
    let max_bytes = before + 16 * KIB as u64;
    bench.write(&lease, charged(ask(&[("q", &long)]), max_bytes)).await;
    let asked = bench.bytes(OWNER).await;
    assert!(asked >= before + 10 * KIB as u64, "the input request counts: {asked}");
    let other = "o".repeat(10 * KIB);
    let too_much = charged(ask(&[("r", &other)]), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(names(&bench.view("a").await), [long.as_str()]);
    // Reopened under the same wire key, the request replaces its own bytes.
    bench.write(&lease, Changes { withdrawn: vec![long.clone()], ..Changes::default() }).await;
    bench.write(&lease, charged(ask(&[("q", &long)]), max_bytes)).await;
    assert_eq!(bench.bytes(OWNER).await, asked);
    bench.end(&lease, done()).await;
    bench.advance(RETENTION + TTL + MAX_TTL);
    for _ in 0..3 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert_eq!(bench.bytes(OWNER).await, 0, "input requests are deleted with their task");
}

async fn response_above_byte_limit_is_rejected_and_can_be_retried(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, ask(&[("q", "n")])).await;
    let max_bytes = bench.bytes(OWNER).await + 16 * KIB as u64;
    let id = TaskId::new("a");
    let answer = |bytes| vec![("n".to_owned(), raw(&long(bytes)))];
    let refused =
        bench.store.respond(OWNER, &id, InputSource::Client, answer(20 * KIB), max_bytes).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(names(&bench.view("a").await), ["n"], "the request is still open");
    let unknown = vec![("x".to_owned(), raw(&long(20 * KIB)))];
    let ignored = bench.store.respond(OWNER, &id, InputSource::Client, unknown, max_bytes).await;
    assert_eq!(ignored, Ok(Some(0)), "an ignored response adds no bytes");
    let taken = bench.store.respond(OWNER, &id, InputSource::Client, answer(KIB), max_bytes).await;
    assert_eq!(taken, Ok(Some(1)));
}

async fn outcome_above_byte_limit_is_rejected_unless_small(bench: ContractBench) {
    for (id, others) in [("a", None), ("b", Some("half way"))] {
        let lease = bench.start(id, "w").await;
        let max_bytes = bench.bytes(OWNER).await + 8 * KIB as u64;
        let message = others.map(str::to_owned);
        let changes = charged(Changes { status_message: message, ..Changes::default() }, max_bytes);
        let outcome = |bytes| TaskOutcome::Result(raw(&long(bytes)));
        let then = |bytes| Transition::End { outcome: outcome(bytes), retention: RETENTION };
        let refused = bench.store.commit(&lease, &changes, &then(10 * KIB)).await;
        assert_eq!(refused, Err(StoreError::BytesExceeded));
        assert!(bench.view(id).await.outcome.is_none(), "the task has not ended");
        let full = charged(changes, 0);
        let refused = bench.store.commit(&lease, &full, &then(OUTCOME_RESERVE)).await;
        assert_eq!(refused, Err(StoreError::BytesExceeded));
        bench
            .store
            .commit(&lease, &full, &then(OUTCOME_RESERVE - 64))
            .await
            .expect("commit succeeds");
        assert!(bench.view(id).await.outcome.is_some());
    }
}

async fn quarantine_above_byte_limit_is_rejected_and_lease_stays(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let max_bytes = bench.bytes(OWNER).await + KIB as u64;
    let then = Transition::Quarantine { outcome: failed(), ttl: HOLD };
    let too_much = charged(entry("k", long(10 * KIB)), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &then).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    bench.store.commit(&lease, &too_much.without_growth(), &then).await.expect("commit succeeds");
    assert_eq!(bench.view("a").await.phase, Phase::Quarantined);
}

async fn commit_without_new_bytes_succeeds_at_byte_limit(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    bench.write(&lease, block(0, KIB)).await;
    bench.write(&lease, ask(&[("q", "n")])).await;
    let before = bench.bytes(OWNER).await;
    // Repeats a commit whose result the worker did not receive.
    bench.write(&lease, charged(entry("k", long(KIB)), 0)).await;
    bench.write(&lease, charged(block(0, KIB), 0)).await;
    bench.write(&lease, charged(ask(&[("q", "n")]), 0)).await;
    let forgotten = Changes { invalidated: vec!["k".to_owned()], ..entry("k", long(KIB)) };
    bench.write(&lease, charged(forgotten, 0)).await;
    bench.write(&lease, charged(Changes::default(), 0)).await;
    assert_eq!(bench.bytes(OWNER).await, before);
    bench.park(&lease, charged(Changes::default(), 0)).await;
}

fn tags(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn tags_count_until_deletion_of_their_task(bench: ContractBench) {
    let worker = || Some((worker("w"), HOUR));
    let create = async |new: NewTask| match bench.store.create(new).await {
        Ok(CreateOutcome::Created { lease: Some(lease), .. }) => lease,
        other => panic!("expected a lease: {other:?}"),
    };
    let plain = create(task("a").worker(worker())).await;
    let bytes_of_task = bench.bytes(OWNER).await;
    // Of a task without an index entry, no tag is stored.
    let ignored = create(task("b").worker(worker()).tags(tags(&["order=1"]))).await;
    bench.write(&ignored, Changes { tags: tags(&["order=2"]), ..Changes::default() }).await;
    assert_eq!(bench.bytes(OWNER).await, 2 * bytes_of_task);
    let texts = ["order=1", "order=1", "kunde=ü"];
    let tagged = create(task("c").worker(worker()).indexed(true).tags(tags(&texts))).await;
    let created = bench.bytes(OWNER).await;
    let counted = created - 3 * bytes_of_task;
    assert!((14..KIB as u64).contains(&counted), "{counted}");
    let tag = |number: u32| format!("step={number}");
    bench.write(&tagged, Changes { tags: vec![tag(1)], ..Changes::default() }).await;
    let each = bench.bytes(OWNER).await - created;
    assert!((6..KIB as u64).contains(&each), "{each}");
    // Repeated tags and those above eight are not stored.
    let more = std::iter::once("order=1".to_owned()).chain((1..20).map(tag)).collect();
    bench.write(&tagged, Changes { tags: more, ..Changes::default() }).await;
    let all = bench.bytes(OWNER).await;
    assert_eq!(all, created + 6 * each);
    bench.write(&tagged, Changes { tags: vec![tag(100)], ..Changes::default() }).await;
    assert_eq!(bench.bytes(OWNER).await, all);
    for lease in [plain, ignored, tagged] {
        bench.end(&lease, done()).await;
    }
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..3 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert_eq!(bench.bytes(OWNER).await, 0, "tags are deleted with their task");
}

async fn tag_above_byte_limit_is_rejected(bench: ContractBench) {
    let long = "n".repeat(10 * KIB);
    let new = |id: &str| task(id).indexed(true).max_bytes(8 * KIB as u64);
    let tagged = bench.store.create(new("a").tags(vec![long.clone()])).await;
    assert_eq!(tagged, Ok(CreateOutcome::BytesExceeded));
    let created = bench.store.create(new("a").worker(Some((worker("w"), HOUR)))).await;
    let Ok(CreateOutcome::Created { lease: Some(lease), .. }) = created else {
        panic!("{created:?}")
    };
    let before = bench.bytes(OWNER).await;
    let changes =
        |tag: &str, most| charged(Changes { tags: tags(&[tag]), ..Changes::default() }, most);
    let too_much = changes(&long, 8 * KIB as u64);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(bench.bytes(OWNER).await, before);
    bench.write(&lease, changes("order=1", 8 * KIB as u64)).await;
    // A tag that the task has adds no bytes.
    bench.write(&lease, changes("order=1", 0)).await;
}

async fn principal_at_byte_limit_does_not_block_other_principals(bench: ContractBench) {
    let mut leases = Vec::new();
    for (id, principal) in [("a", OWNER), ("b", EVE), ("c", OWNER), ("d", EVE)] {
        let worker = Some((worker("w"), HOUR));
        let new = NewTask { principal: principal.to_owned(), worker, ..task(id) };
        let created = bench.store.create(new).await.expect("create succeeds");
        let CreateOutcome::Created { lease: Some(lease), .. } = created else {
            panic!("{created:?}")
        };
        leases.push((lease, principal));
    }
    let end =
        Transition::End { outcome: TaskOutcome::Result(raw(&long(4 * KIB))), retention: RETENTION };
    for then in [Transition::Continue, end] {
        let writes = leases.iter().map(|(lease, principal)| {
            let max_bytes = if *principal == EVE { 0 } else { u64::MAX };
            let charge = Charge { principal: (*principal).to_owned(), max_bytes };
            let entries = match then {
                Transition::Continue => entry("k", long(KIB)).entries,
                _ => Vec::new(),
            };
            let changes = Changes { entries, charge: Some(charge), ..Changes::default() };
            let (store, then, lease) = (Arc::clone(&bench.store), then.clone(), lease.clone());
            // Concurrent, so that a store may combine the commits.
            tokio::spawn(async move { store.commit(&lease, &changes, &then).await })
        });
        let mut written = Vec::new();
        for write in writes.collect::<Vec<_>>() {
            written.push(write.await.expect("commit succeeds"));
        }
        let full = Err(StoreError::BytesExceeded);
        assert_eq!(written, [Ok(()), full.clone(), Ok(()), full]);
    }
    assert!(bench.view("a").await.outcome.is_some() && bench.view("c").await.outcome.is_some());
}

async fn key_value_entry_counts_until_deletion(bench: ContractBench) {
    bench.charge("k", &long(10 * KIB), u64::MAX).await.expect("put succeeds");
    let stored = bench.bytes(OWNER).await;
    assert!((10 * KIB as u64..12 * KIB as u64).contains(&stored), "{stored}");
    bench.charge("k", &long(KIB), u64::MAX).await.expect("put succeeds");
    let replaced = bench.bytes(OWNER).await;
    assert_eq!(replaced, stored - 9 * KIB as u64);
    bench.store.put_if_absent("other", raw(&long(KIB)), HOUR, None).await.expect("put succeeds");
    assert_eq!(bench.bytes(OWNER).await, replaced, "an entry without a charge adds no bytes");
    bench.store.delete("k").await.expect("delete succeeds");
    assert_eq!(bench.bytes(OWNER).await, 0);
    let charge = Charge { principal: OWNER.to_owned(), max_bytes: u64::MAX };
    for _ in 0..2 {
        let kept = bench.store.put_if_absent("k", raw(&long(KIB)), HOUR, Some(&charge)).await;
        kept.expect("put succeeds");
        assert_eq!(bench.bytes(OWNER).await, replaced);
    }
    bench.advance(HOUR + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert_eq!(bench.bytes(OWNER).await, 0);
}

async fn key_value_entry_above_byte_limit_is_rejected(bench: ContractBench) {
    let max_bytes = 16 * KIB as u64;
    bench.charge("k", &long(10 * KIB), max_bytes).await.expect("put succeeds");
    let refused = bench.charge("l", &long(10 * KIB), max_bytes).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert!(bench.store.get_value("l").await.expect("read succeeds").is_none());
    bench.charge("k", &long(12 * KIB), max_bytes).await.expect("put succeeds");
    assert_eq!(bench.charge("k", &long(20 * KIB), max_bytes).await, Err(StoreError::BytesExceeded));
    let kept =
        bench.store.get_value("k").await.expect("read succeeds").expect("existing value stays");
    assert_eq!(kept.get().len(), 12 * KIB + 2);
    let new = NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task("a") };
    assert_eq!(
        bench.store.create(new).await,
        Ok(CreateOutcome::BytesExceeded),
        "tasks and entries share one limit"
    );
}

async fn ready_on_working_store_succeeds(bench: ContractBench) {
    bench.store.ready().await.expect("ready succeeds");
}
