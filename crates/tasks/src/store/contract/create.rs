//! Checks of the creation and the reading of tasks.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, OWNER, RETENTION, TTL, done, promises, raw, task, value};
use crate::{
    JournalSnapshot, SegmentRecord,
    store::{CreateOutcome, IdempotencyKey, InputSource, ListCursor, NewTask, Phase, TaskId},
};

promises![
    created_task_is_readable,
    task_is_invisible_to_other_principals,
    journal_of_new_task_is_claimed_with_it,
    create_with_same_id_returns_existing_task,
    wire_keys_from_before_promotion_are_not_reused,
    create_with_same_idempotency_key_returns_existing_task,
    create_with_same_key_and_other_request_is_rejected,
    idempotency_key_belongs_to_one_principal,
    idempotency_key_exists_as_long_as_its_task,
    create_above_quota_of_open_tasks_is_rejected,
    list_is_ordered_and_continues_after_cursor,
    unlisted_task_is_readable_by_id,
    list_of_dialect_contains_only_its_tasks,
];

async fn created_task_is_readable(bench: ContractBench) {
    bench.queue("a").await;
    let view = bench.view("a").await;
    assert_eq!(view.id, TaskId::new("a"));
    assert_eq!(view.tool, "deploy");
    assert_eq!(view.origin, "modern");
    assert_eq!(view.phase, Phase::Queued);
    assert_eq!(view.ttl, Some(TTL.as_millis() as u64));
    assert!(
        view.outcome.is_none() && view.input_requests.is_empty() && view.status_message.is_none()
    );
    assert_eq!(view.created_at, view.updated_at);
    let created = bench.store.create(super::bench::task("c")).await.expect("created");
    let CreateOutcome::Created { lease: None, at } = created else { panic!("{created:?}") };
    assert_eq!(at, bench.view("c").await.created_at);
    bench.start("b", "w").await;
    assert_eq!(bench.view("b").await.phase, Phase::Running);
}

async fn task_is_invisible_to_other_principals(bench: ContractBench) {
    bench.queue("a").await;
    let (store, id, other) = (&bench.store, TaskId::new("a"), "name:eve");
    assert!(store.get(other, &id).await.expect("read succeeds").is_none());
    assert!(store.list(other, "modern", None, 10).await.expect("list succeeds").is_empty());
    let answer = vec![("q".to_owned(), raw(&json!({})))];
    let answered = store.respond(other, &id, InputSource::Client, answer, u64::MAX).await;
    assert_eq!(answered.expect("operation succeeds"), None);
    assert_eq!(store.cancel(other, &id, true, TTL).await.expect("cancel succeeds"), None);
    assert_eq!(bench.view("a").await.phase, Phase::Queued, "the task is unchanged");
}

async fn journal_of_new_task_is_claimed_with_it(bench: ContractBench) {
    let mut journal = JournalSnapshot::default();
    journal.entries.insert("build".to_owned(), value(&json!("image:1")));
    let block = raw(&json!({"type": "text", "text": "a"}));
    journal.segments.push(SegmentRecord { scope: String::new(), ordinal: 0, block });
    bench.store.create(NewTask { journal, ..task("a") }).await.expect("create succeeds");
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.request.get(), task("a").request.get(), "the request is unchanged");
    assert_eq!(super::bench::recorded(&claimed.journal, "build").as_deref(), Some("\"image:1\""));
    assert_eq!(claimed.journal.segments.len(), 1);
}

async fn create_with_same_id_returns_existing_task(bench: ContractBench) {
    bench.queue("a").await;
    // A caller that did not receive the result repeats the creation.
    let again = bench.store.create(task("a")).await;
    assert_eq!(again, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    let other = NewTask { principal: "name:eve".to_owned(), ..task("a") };
    assert!(bench.store.create(other).await.is_err(), "another principal cannot use the ID");
    assert_eq!(bench.view("a").await.phase, Phase::Queued);
}

async fn wire_keys_from_before_promotion_are_not_reused(bench: ContractBench) {
    let mut journal = JournalSnapshot::default();
    journal.reasked.insert("k".to_owned(), 1);
    bench.store.create(NewTask { journal, ..task("a") }).await.expect("create succeeds");
    assert_eq!(bench.claim_one("w").await.journal.reasked.get("k"), Some(&1));
}

fn once(id: &str, key: &str, digest: &str) -> NewTask {
    let once = IdempotencyKey { key: key.to_owned(), fingerprint: digest.to_owned() };
    NewTask { idempotency: Some(once), ..task(id) }
}

async fn create_with_same_idempotency_key_returns_existing_task(bench: ContractBench) {
    let create = |id: &str| bench.store.create(once(id, "k", "d"));
    assert!(create("a").await.is_ok_and(|created| created.is_new()));
    assert_eq!(create("b").await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    assert!(bench.is_gone("b").await);
    // Also after the end, for as long as the task is readable.
    let claimed = bench.claim_one("w").await;
    bench.end(&claimed.lease, done()).await;
    assert_eq!(create("c").await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
}

async fn create_with_same_key_and_other_request_is_rejected(bench: ContractBench) {
    assert!(bench.store.create(once("a", "k", "d")).await.is_ok_and(|created| created.is_new()));
    assert_eq!(bench.store.create(once("b", "k", "other")).await, Ok(CreateOutcome::KeyConflict));
    assert!(
        bench.store.create(once("c", "other", "d")).await.is_ok_and(|created| created.is_new())
    );
}

async fn idempotency_key_belongs_to_one_principal(bench: ContractBench) {
    assert!(bench.store.create(once("a", "k", "d")).await.is_ok_and(|created| created.is_new()));
    let other = NewTask { principal: "name:eve".to_owned(), ..once("b", "k", "d") };
    assert!(bench.store.create(other).await.is_ok_and(|created| created.is_new()));
}

async fn idempotency_key_exists_as_long_as_its_task(bench: ContractBench) {
    let made = async |principal: &str, key: &str, digest: &str| {
        let once = IdempotencyKey { key: key.to_owned(), fingerprint: digest.to_owned() };
        bench.store.find(principal, &once).await.expect("read succeeds")
    };
    assert_eq!(made(OWNER, "k", "d").await, None);
    bench.store.create(once("a", "k", "d")).await.expect("create succeeds");
    assert_eq!(made(OWNER, "k", "d").await, Some(CreateOutcome::Existing(TaskId::new("a"))));
    assert_eq!(made(OWNER, "k", "other").await, Some(CreateOutcome::KeyConflict));
    assert_eq!(made(OWNER, "other", "d").await, None);
    assert_eq!(made("name:eve", "k", "d").await, None);
    let claimed = bench.claim_one("w").await;
    bench.end(&claimed.lease, done()).await;
    assert_eq!(made(OWNER, "k", "d").await, Some(CreateOutcome::Existing(TaskId::new("a"))));
    bench.advance(RETENTION.max(TTL) + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(made(OWNER, "k", "d").await, None);
}

async fn create_above_quota_of_open_tasks_is_rejected(bench: ContractBench) {
    let create = |id: &str| bench.store.create(NewTask { quota: 2, ..task(id) });
    assert!(create("a").await.is_ok_and(|created| created.is_new()));
    assert!(create("b").await.is_ok_and(|created| created.is_new()));
    assert_eq!(create("c").await, Ok(CreateOutcome::QuotaExceeded));
    assert!(bench.is_gone("c").await);
    let other = NewTask { principal: "name:eve".to_owned(), quota: 2, ..task("d") };
    assert!(bench.store.create(other).await.is_ok_and(|created| created.is_new()));
    let claimed = bench.claim("w").await;
    let mine = claimed
        .iter()
        .find(|claimed| claimed.principal == OWNER)
        .expect("the owner's task is claimed");
    bench.end(&mine.lease, done()).await;
    assert!(create("e").await.is_ok_and(|created| created.is_new()));
}

async fn list_is_ordered_and_continues_after_cursor(bench: ContractBench) {
    for id in ["c", "a", "b", "e", "d"] {
        bench.queue(id).await;
    }
    let mut seen = Vec::new();
    let mut after: Option<ListCursor> = None;
    loop {
        let page =
            bench.store.list(OWNER, "modern", after.as_ref(), 2).await.expect("list succeeds");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(ListCursor { created: last.created_at, id: last.id.clone() });
        seen.extend(page.iter().map(|view| (view.created_at, view.id.clone())));
    }
    let mut sorted = seen.clone();
    sorted.sort();
    assert_eq!(seen, sorted, "oldest first, then by ID");
    assert_eq!(seen.len(), 5, "each task occurs once");
}

async fn unlisted_task_is_readable_by_id(bench: ContractBench) {
    bench.queue("a").await;
    let unlisted = NewTask { listed: false, ..super::bench::task("b") };
    assert!(bench.store.create(unlisted).await.is_ok_and(|created| created.is_new()));
    let page = bench.store.list(OWNER, "modern", None, 10).await.expect("list succeeds");
    assert_eq!(page.iter().map(|view| view.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(bench.view("b").await.phase, Phase::Queued);
    assert_eq!(bench.claim("w").await.len(), 2);
}

async fn list_of_dialect_contains_only_its_tasks(bench: ContractBench) {
    const OTHER: &str = "name:eve";
    for (id, origin) in [("a", "modern"), ("b", "legacy"), ("c", "modern"), ("d", "legacy")] {
        let task = NewTask { origin: origin.to_owned(), ..task(id) };
        assert!(bench.store.create(task).await.is_ok_and(|created| created.is_new()));
    }
    // With an idempotency key, because stores may create such a task with another statement.
    let once = IdempotencyKey { key: "k".to_owned(), fingerprint: "d".to_owned() };
    let keyed = NewTask { origin: "legacy".to_owned(), idempotency: Some(once), ..task("e") };
    assert!(bench.store.create(keyed).await.is_ok_and(|created| created.is_new()));
    let foreign = NewTask { principal: OTHER.to_owned(), ..task("f") };
    assert!(bench.store.create(foreign).await.is_ok_and(|created| created.is_new()));
    let listed = async |principal: &str, origin: &str| {
        let page = bench.store.list(principal, origin, None, 10).await.expect("list succeeds");
        assert!(page.iter().all(|view| view.origin == origin));
        let mut ids: Vec<_> = page.iter().map(|view| view.id.as_str().to_owned()).collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(listed(OWNER, "modern").await, "a c");
    assert_eq!(listed(OWNER, "legacy").await, "b d e");
    assert_eq!(listed(OWNER, "streaming").await, "");
    assert_eq!(listed(OTHER, "modern").await, "f");
    assert_eq!(listed(OTHER, "legacy").await, "");
}
