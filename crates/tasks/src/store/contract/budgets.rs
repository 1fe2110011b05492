//! How many bytes each principal has stored, and what happens when they are used up.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, OWNER, RETENTION, TTL, ask, done, entry, promises, raw, task, worker};
use crate::{
    Segment,
    store::{Changes, Charge, Created, NewTask, StoreError, TaskId, TaskOutcome, Then},
};

promises![
    bytes_of_a_principal_grow_with_its_tasks,
    bytes_of_ended_tasks_count_until_they_are_forgotten,
    bytes_of_a_write_done_twice_count_once,
    task_beyond_the_bytes_of_its_principal_is_refused,
    task_made_before_needs_no_bytes,
    running_task_beyond_the_bytes_goes_on_to_its_end,
    key_value_entry_counts_until_it_is_gone,
    key_value_entry_beyond_the_bytes_is_refused,
    store_answers_that_it_is_ready,
];

const EVE: &str = "name:eve";
const HOUR: Duration = Duration::from_secs(3600);
const KIB: usize = 1_024;

impl Bench {
    async fn bytes(&self, principal: &str) -> u64 {
        self.store.stored_bytes(principal).await.expect("a look")
    }

    async fn charge(&self, key: &str, note: &Value, max_bytes: u64) -> Result<(), StoreError> {
        let charge = Charge { principal: OWNER.to_owned(), max_bytes };
        self.store.replace(key, raw(note), HOUR, Some(&charge)).await
    }
}

fn long(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

async fn bytes_of_a_principal_grow_with_its_tasks(bench: Bench) {
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
    let segments = vec![Segment { scope: String::new(), ordinal: 0, block }];
    bench.write(&lease, Changes { segments, ..Changes::default() }).await;
    let emitted = bench.bytes(OWNER).await;
    assert!(emitted >= recorded + 30 * KIB as u64, "{emitted}");
    bench.write(&lease, ask(&[("q", "n")])).await;
    bench.answer("a", &[("n", long(40 * KIB))]).await;
    let answered = bench.bytes(OWNER).await;
    assert!(answered >= emitted + 40 * KIB as u64, "{answered}");
    bench.write(&lease, Changes { forgotten: vec!["q".to_owned()], ..Changes::default() }).await;
    let forgotten = bench.bytes(OWNER).await;
    assert!(forgotten <= answered - 40 * KIB as u64, "{forgotten}");
    bench.end(&lease, TaskOutcome::Result(raw(&long(50 * KIB)))).await;
    let ended = bench.bytes(OWNER).await;
    assert!(ended >= forgotten + 50 * KIB as u64, "{ended}");
    assert_eq!(bench.bytes(EVE).await, 0, "others have nothing of it");
    // All together they may be counted by the next sweep.
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(bench.store.census().await.expect("a census").bytes, ended);
}

async fn bytes_of_ended_tasks_count_until_they_are_forgotten(bench: Bench) {
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
    assert_eq!(bench.store.census().await.expect("a census").bytes, 0);
}

async fn bytes_of_a_write_done_twice_count_once(bench: Bench) {
    let lease = bench.start("a", "w").await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let before = bench.bytes(OWNER).await;
    bench.write(&lease, entry("k", long(KIB))).await;
    let message = Some("half way".to_owned());
    bench.write(&lease, Changes { message, ..entry("k", long(KIB)) }).await;
    assert_eq!(bench.bytes(OWNER).await, before);
}

async fn task_beyond_the_bytes_of_its_principal_is_refused(bench: Bench) {
    let max_bytes = 32 * KIB as u64;
    let new = |id: &str| NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task(id) };
    for id in ["a", "b"] {
        assert!(bench.store.create(new(id)).await.expect("an answer").is_new());
    }
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new("c")).await, Ok(Created::OverBytes));
    assert!(bench.is_gone("c").await);
    assert_eq!(bench.bytes(OWNER).await, before);
    // An ended task counts as an open one does.
    bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await.expect("a cancel");
    assert_eq!(bench.store.create(new("c")).await, Ok(Created::OverBytes));
    let eve = NewTask { principal: EVE.to_owned(), ..new("e") };
    assert!(bench.store.create(eve).await.expect("an answer").is_new(), "others notice nothing");
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..4 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert!(bench.store.create(new("c")).await.expect("an answer").is_new(), "there is room again");
}

async fn task_made_before_needs_no_bytes(bench: Bench) {
    let new = || NewTask { request: raw(&long(10 * KIB)), max_bytes: 16 * KIB as u64, ..task("a") };
    assert!(bench.store.create(new()).await.expect("an answer").is_new());
    let before = bench.bytes(OWNER).await;
    assert_eq!(bench.store.create(new()).await, Ok(Created::Before(TaskId::new("a"))));
    assert_eq!(bench.bytes(OWNER).await, before);
}

async fn running_task_beyond_the_bytes_goes_on_to_its_end(bench: Bench) {
    let new = NewTask { max_bytes: 4 * KIB as u64, worker: Some((worker("w"), HOUR)), ..task("a") };
    let created = bench.store.create(new).await.expect("a task is made");
    let Created::New { lease: Some(lease), .. } = created else { panic!("{created:?}") };
    bench.write(&lease, entry("k", long(10 * KIB))).await;
    let then = Then::End { outcome: done(), retention: RETENTION };
    bench.store.write(&lease, &Changes::default(), &then).await.expect("what runs is not refused");
    assert!(bench.view("a").await.outcome.is_some());
}

async fn key_value_entry_counts_until_it_is_gone(bench: Bench) {
    bench.charge("k", &long(10 * KIB), u64::MAX).await.expect("an entry is stored");
    let stored = bench.bytes(OWNER).await;
    assert!((10 * KIB as u64..12 * KIB as u64).contains(&stored), "{stored}");
    bench.charge("k", &long(KIB), u64::MAX).await.expect("an entry is replaced");
    let replaced = bench.bytes(OWNER).await;
    assert_eq!(replaced, stored - 9 * KIB as u64);
    bench.store.keep("other", raw(&long(KIB)), HOUR, None).await.expect("an entry is stored");
    assert_eq!(bench.bytes(OWNER).await, replaced, "nobody is charged for it");
    bench.store.forget("k").await.expect("an entry is forgotten");
    assert_eq!(bench.bytes(OWNER).await, 0);
    let charge = Charge { principal: OWNER.to_owned(), max_bytes: u64::MAX };
    for _ in 0..2 {
        let kept = bench.store.keep("k", raw(&long(KIB)), HOUR, Some(&charge)).await;
        kept.expect("an entry is stored");
        assert_eq!(bench.bytes(OWNER).await, replaced);
    }
    bench.advance(HOUR + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert_eq!(bench.bytes(OWNER).await, 0);
}

async fn key_value_entry_beyond_the_bytes_is_refused(bench: Bench) {
    let max_bytes = 16 * KIB as u64;
    bench.charge("k", &long(10 * KIB), max_bytes).await.expect("an entry is stored");
    let refused = bench.charge("l", &long(10 * KIB), max_bytes).await;
    assert_eq!(refused, Err(StoreError::OverBytes));
    assert!(bench.store.kept("l").await.expect("a look").is_none());
    bench.charge("k", &long(12 * KIB), max_bytes).await.expect("it takes the place of the other");
    assert_eq!(bench.charge("k", &long(20 * KIB), max_bytes).await, Err(StoreError::OverBytes));
    let kept = bench.store.kept("k").await.expect("a look").expect("what is there stays");
    assert_eq!(kept.get().len(), 12 * KIB + 2);
    let new = NewTask { request: raw(&long(10 * KIB)), max_bytes, ..task("a") };
    assert_eq!(bench.store.create(new).await, Ok(Created::OverBytes), "tasks share the bytes");
}

async fn store_answers_that_it_is_ready(bench: Bench) {
    bench.store.ready().await.expect("it is there");
}
