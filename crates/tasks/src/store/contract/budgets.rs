//! How many bytes each principal has stored, and what happens when they are used up.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::bench::{
    ContractBench, MAX_TTL, OWNER, RETENTION, TTL, ask, done, entry, names, promises, raw, task,
    worker,
};
use crate::{
    SegmentRecord,
    store::{
        Changes, Charge, CreateOutcome, InputSource, NewTask, OUTCOME_RESERVE, PageLimit,
        StoreError, TaskId, TaskOutcome, Transition,
    },
};

promises![
    bytes_of_a_principal_grow_with_its_tasks,
    bytes_of_ended_tasks_count_until_they_are_forgotten,
    bytes_of_a_write_done_twice_count_once,
    task_beyond_the_bytes_of_its_principal_is_refused,
    task_made_before_needs_no_bytes,
    entry_beyond_the_bytes_is_refused_and_its_task_goes_on,
    block_beyond_the_bytes_is_refused,
    question_beyond_the_bytes_is_refused,
    answer_beyond_the_bytes_is_refused_and_can_be_given_later,
    outcome_beyond_the_bytes_is_refused_and_a_small_one_is_not,
    write_that_stores_nothing_needs_no_bytes,
    tasks_of_others_are_written_when_one_has_no_bytes_left,
    key_value_entry_counts_until_it_is_gone,
    key_value_entry_beyond_the_bytes_is_refused,
    store_answers_that_it_is_ready,
];

const EVE: &str = "name:eve";
const HOUR: Duration = Duration::from_secs(3600);
const KIB: usize = 1_024;

impl ContractBench {
    async fn bytes(&self, principal: &str) -> u64 {
        self.store.stored_bytes(principal).await.expect("a look")
    }

    async fn charge(&self, key: &str, note: &Value, max_bytes: u64) -> Result<(), StoreError> {
        let charge = Charge { principal: OWNER.to_owned(), max_bytes };
        self.store.put(key, raw(note), HOUR, Some(&charge)).await
    }
}

fn long(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

async fn bytes_of_a_principal_grow_with_its_tasks(bench: ContractBench) {
    assert_eq!(bench.bytes(OWNER).await, 0);
    let new = NewTask { request: raw(&long(10 * KIB)), ..task("a") };
    bench.store.create(new).await.expect("a task is made");
    let made = bench.bytes(OWNER).await;
    assert!((10 * KIB as u64..20 * KIB as u64).contains(&made), "{made}");
    let lease = bench.claim_one("w").await.lease;
    assert_eq!(bench.bytes(OWNER).await, made, "a claim stores nothing");
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
    assert_eq!(bench.bytes(EVE).await, 0, "others have nothing of it");
    // All together they may be counted by the next sweep.
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(bench.store.stats().await.expect("a census").bytes, ended);
}

async fn bytes_of_ended_tasks_count_until_they_are_forgotten(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    bench.end(&lease, done()).await;
    bench.queue("b").await;
    let before = bench.bytes(OWNER).await;
    bench.store.cancel(OWNER, &TaskId::new("b"), true, RETENTION).await.expect("a cancel");
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert!(bench.bytes(OWNER).await >= before, "both can still be read");
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert!(bench.is_gone("a").await && bench.is_gone("b").await);
    assert_eq!(bench.bytes(OWNER).await, 0);
    assert_eq!(bench.store.stats().await.expect("a census").bytes, 0);
}

async fn bytes_of_a_write_done_twice_count_once(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let before = bench.bytes(OWNER).await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let message = Some("half way".to_owned());
    bench.write(&lease, Changes { status_message: message, ..entry("k", long(KIB)) }).await;
    assert_eq!(bench.bytes(OWNER).await, before);
}

async fn task_beyond_the_bytes_of_its_principal_is_refused(bench: ContractBench) {
    let max_bytes = 32 * KIB as u64;
    let new = |id: &str| NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task(id) };
    for id in ["a", "b"] {
        assert!(bench.store.create(new(id)).await.expect("an answer").is_new());
    }
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new("c")).await, Ok(CreateOutcome::BytesExceeded));
    assert!(bench.is_gone("c").await);
    assert_eq!(bench.bytes(OWNER).await, before);
    // An ended task counts as an open one does.
    bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await.expect("a cancel");
    assert_eq!(bench.store.create(new("c")).await, Ok(CreateOutcome::BytesExceeded));
    let eve = NewTask { principal: EVE.to_owned(), ..new("e") };
    assert!(bench.store.create(eve).await.expect("an answer").is_new(), "others notice nothing");
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..4 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert!(bench.store.create(new("c")).await.expect("an answer").is_new(), "there is room again");
}

async fn task_made_before_needs_no_bytes(bench: ContractBench) {
    let new = || NewTask { request: raw(&long(10 * KIB)), max_bytes: 16 * KIB as u64, ..task("a") };
    assert!(bench.store.create(new()).await.expect("an answer").is_new());
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new()).await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    assert_eq!(bench.bytes(OWNER).await, before);
}

/// What is charged to the owner, which may have so many bytes.
fn charged(changes: Changes, max_bytes: u64) -> Changes {
    let charge = Charge { principal: OWNER.to_owned(), max_bytes };
    Changes { charge: Some(charge), ..changes }
}

fn block(ordinal: u32, bytes: usize) -> Changes {
    let segments = vec![SegmentRecord { scope: String::new(), ordinal, block: raw(&long(bytes)) }];
    Changes { segments, ..Changes::default() }
}

async fn entry_beyond_the_bytes_is_refused_and_its_task_goes_on(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let max_bytes = bench.bytes(OWNER).await + 16 * KIB as u64;
    bench.write(&lease, charged(entry("k", long(10 * KIB)), max_bytes)).await;
    let before = bench.bytes(OWNER).await;
    let too_much = charged(entry("l", long(10 * KIB)), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    let words = Changes { status_message: Some("half way".to_owned()), ..too_much };
    let refused = bench.store.commit(&lease, &words, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded), "all of it or nothing");
    assert_eq!(bench.bytes(OWNER).await, before);
    assert_eq!(bench.view("a").await.status_message, None);
    bench.write(&lease, charged(entry("l", long(2 * KIB)), max_bytes)).await;
    bench.write(&lease, entry("m", long(10 * KIB))).await;
    assert!(bench.bytes(OWNER).await > max_bytes, "nobody limits what is not charged");
    bench.store.release(&lease.worker).await.expect("a release");
    let journal = bench.claim_one("w").await.journal;
    assert_eq!(journal.entries.keys().collect::<Vec<_>>(), ["k", "l", "m"]);
}

async fn block_beyond_the_bytes_is_refused(bench: ContractBench) {
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
    let emitted = bench.store.read_segments(OWNER, &lease.task, 0, limit).await.expect("a look");
    assert_eq!(emitted.expect("a task").blocks.len(), 2);
}

async fn question_beyond_the_bytes_is_refused(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let before = bench.bytes(OWNER).await;
    let long = "n".repeat(10 * KIB);
    let max_bytes = before + 16 * KIB as u64;
    bench.write(&lease, charged(ask(&[("q", &long)]), max_bytes)).await;
    let asked = bench.bytes(OWNER).await;
    assert!(asked >= before + 10 * KIB as u64, "what is asked counts: {asked}");
    let other = "o".repeat(10 * KIB);
    let too_much = charged(ask(&[("r", &other)]), max_bytes);
    let refused = bench.store.commit(&lease, &too_much, &Transition::Continue).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(names(&bench.view("a").await), [long.as_str()]);
    // Asked again under the same name it takes its own place.
    bench.write(&lease, Changes { withdrawn: vec![long.clone()], ..Changes::default() }).await;
    bench.write(&lease, charged(ask(&[("q", &long)]), max_bytes)).await;
    assert_eq!(bench.bytes(OWNER).await, asked);
    bench.end(&lease, done()).await;
    bench.advance(RETENTION + TTL + MAX_TTL);
    for _ in 0..3 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert_eq!(bench.bytes(OWNER).await, 0, "what was asked is gone with its task");
}

async fn answer_beyond_the_bytes_is_refused_and_can_be_given_later(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, ask(&[("q", "n")])).await;
    let max_bytes = bench.bytes(OWNER).await + 16 * KIB as u64;
    let id = TaskId::new("a");
    let answer = |bytes| vec![("n".to_owned(), raw(&long(bytes)))];
    let refused =
        bench.store.respond(OWNER, &id, InputSource::Client, answer(20 * KIB), max_bytes).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert_eq!(names(&bench.view("a").await), ["n"], "it is still asked");
    let unknown = vec![("x".to_owned(), raw(&long(20 * KIB)))];
    let ignored = bench.store.respond(OWNER, &id, InputSource::Client, unknown, max_bytes).await;
    assert_eq!(ignored, Ok(Some(0)), "what is not taken needs no room");
    let taken = bench.store.respond(OWNER, &id, InputSource::Client, answer(KIB), max_bytes).await;
    assert_eq!(taken, Ok(Some(1)));
}

async fn outcome_beyond_the_bytes_is_refused_and_a_small_one_is_not(bench: ContractBench) {
    for (id, others) in [("a", None), ("b", Some("half way"))] {
        let lease = bench.start(id, "w").await;
        let max_bytes = bench.bytes(OWNER).await + 8 * KIB as u64;
        let message = others.map(str::to_owned);
        let changes = charged(Changes { status_message: message, ..Changes::default() }, max_bytes);
        let outcome = |bytes| TaskOutcome::Result(raw(&long(bytes)));
        let then = |bytes| Transition::End { outcome: outcome(bytes), retention: RETENTION };
        let refused = bench.store.commit(&lease, &changes, &then(10 * KIB)).await;
        assert_eq!(refused, Err(StoreError::BytesExceeded));
        assert!(bench.view(id).await.outcome.is_none(), "it has not ended");
        let full = charged(changes, 0);
        let refused = bench.store.commit(&lease, &full, &then(OUTCOME_RESERVE)).await;
        assert_eq!(refused, Err(StoreError::BytesExceeded));
        bench.store.commit(&lease, &full, &then(OUTCOME_RESERVE - 64)).await.expect("an end");
        assert!(bench.view(id).await.outcome.is_some());
    }
}

async fn write_that_stores_nothing_needs_no_bytes(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    bench.write(&lease, block(0, KIB)).await;
    bench.write(&lease, ask(&[("q", "n")])).await;
    let before = bench.bytes(OWNER).await;
    // Written twice, because nobody knew whether it had been written.
    bench.write(&lease, charged(entry("k", long(KIB)), 0)).await;
    bench.write(&lease, charged(block(0, KIB), 0)).await;
    bench.write(&lease, charged(ask(&[("q", "n")]), 0)).await;
    let forgotten = Changes { invalidated: vec!["k".to_owned()], ..entry("k", long(KIB)) };
    bench.write(&lease, charged(forgotten, 0)).await;
    bench.write(&lease, charged(Changes::default(), 0)).await;
    assert_eq!(bench.bytes(OWNER).await, before);
    bench.park(&lease, charged(Changes::default(), 0)).await;
}

async fn tasks_of_others_are_written_when_one_has_no_bytes_left(bench: ContractBench) {
    let mut leases = Vec::new();
    for (id, principal) in [("a", OWNER), ("b", EVE), ("c", OWNER), ("d", EVE)] {
        let worker = Some((worker("w"), HOUR));
        let new = NewTask { principal: principal.to_owned(), worker, ..task(id) };
        let created = bench.store.create(new).await.expect("a task is made");
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
            // At once, so that a store may write them together.
            tokio::spawn(async move { store.commit(&lease, &changes, &then).await })
        });
        let mut written = Vec::new();
        for write in writes.collect::<Vec<_>>() {
            written.push(write.await.expect("a write"));
        }
        let full = Err(StoreError::BytesExceeded);
        assert_eq!(written, [Ok(()), full.clone(), Ok(()), full]);
    }
    assert!(bench.view("a").await.outcome.is_some() && bench.view("c").await.outcome.is_some());
}

async fn key_value_entry_counts_until_it_is_gone(bench: ContractBench) {
    bench.charge("k", &long(10 * KIB), u64::MAX).await.expect("an entry is stored");
    let stored = bench.bytes(OWNER).await;
    assert!((10 * KIB as u64..12 * KIB as u64).contains(&stored), "{stored}");
    bench.charge("k", &long(KIB), u64::MAX).await.expect("an entry is replaced");
    let replaced = bench.bytes(OWNER).await;
    assert_eq!(replaced, stored - 9 * KIB as u64);
    bench
        .store
        .put_if_absent("other", raw(&long(KIB)), HOUR, None)
        .await
        .expect("an entry is stored");
    assert_eq!(bench.bytes(OWNER).await, replaced, "nobody is charged for it");
    bench.store.delete("k").await.expect("an entry is forgotten");
    assert_eq!(bench.bytes(OWNER).await, 0);
    let charge = Charge { principal: OWNER.to_owned(), max_bytes: u64::MAX };
    for _ in 0..2 {
        let kept = bench.store.put_if_absent("k", raw(&long(KIB)), HOUR, Some(&charge)).await;
        kept.expect("an entry is stored");
        assert_eq!(bench.bytes(OWNER).await, replaced);
    }
    bench.advance(HOUR + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert_eq!(bench.bytes(OWNER).await, 0);
}

async fn key_value_entry_beyond_the_bytes_is_refused(bench: ContractBench) {
    let max_bytes = 16 * KIB as u64;
    bench.charge("k", &long(10 * KIB), max_bytes).await.expect("an entry is stored");
    let refused = bench.charge("l", &long(10 * KIB), max_bytes).await;
    assert_eq!(refused, Err(StoreError::BytesExceeded));
    assert!(bench.store.get_value("l").await.expect("a look").is_none());
    bench.charge("k", &long(12 * KIB), max_bytes).await.expect("it takes the place of the other");
    assert_eq!(bench.charge("k", &long(20 * KIB), max_bytes).await, Err(StoreError::BytesExceeded));
    let kept = bench.store.get_value("k").await.expect("a look").expect("what is there stays");
    assert_eq!(kept.get().len(), 12 * KIB + 2);
    let new = NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task("a") };
    assert_eq!(
        bench.store.create(new).await,
        Ok(CreateOutcome::BytesExceeded),
        "tasks share the bytes"
    );
}

async fn store_answers_that_it_is_ready(bench: ContractBench) {
    bench.store.ready().await.expect("it is there");
}
