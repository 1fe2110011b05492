//! Checks of input requests, responses and parking.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, ask, entry, names, promises, recorded};
use crate::store::{CancelOutcome, Changes, Phase, Transition};

promises![
    input_requests_are_listed_in_order,
    first_response_is_stored_and_never_lost,
    response_without_open_request_is_ignored,
    partial_responses_leave_other_requests_open,
    response_is_in_inbox_of_running_worker,
    parked_task_holds_no_worker_until_response,
    response_before_parking_wakes_the_task,
    cancellation_before_parking_wakes_the_task,
    parked_task_is_due_at_its_timer,
    input_request_keeps_wire_key_after_crash,
    reissued_input_request_has_another_wire_key,
    withdrawn_input_request_is_not_open,
    withdrawn_input_request_can_be_reopened,
    reopened_answered_input_request_stays_answered,
    input_request_opened_and_withdrawn_in_one_commit_is_withdrawn,
];

async fn input_requests_are_listed_in_order(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("z", "z"), ("a", "a")])).await;
    bench.write(&lease, ask(&[("m", "m")])).await;
    assert_eq!(names(&bench.view("a").await), ["z", "a", "m"]);
}

async fn first_response_is_stored_and_never_lost(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
    assert_eq!(bench.answer("a", &[("name", json!(2))]).await, Some(0));
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
    assert!(bench.view("a").await.input_requests.is_empty());
    // Also after a crash of the worker that received the response.
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("x").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
}

async fn response_without_open_request_is_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    let answers = [("other", json!(1)), ("key", json!(2))];
    assert_eq!(bench.answer("a", &answers).await, Some(0));
    assert_eq!(bench.answer("nobody", &answers).await, None);
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert!(bench.store.inbox(&lease).await.expect("read succeeds").answers.is_empty());
}

async fn partial_responses_leave_other_requests_open(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    assert_eq!(bench.answer("a", &[("n2", json!(2))]).await, Some(1));
    assert_eq!(names(&bench.view("a").await), ["n1"]);
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "k2").as_deref(), Some("2"));
    assert_eq!(claimed.journal.input_requests, ["k1"], "the first request is still open");
}

async fn response_is_in_inbox_of_running_worker(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!("yes"))]).await, Some(1));
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    let answers = bench.store.inbox(&lease).await.expect("read succeeds").answers;
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].0.as_str(), answers[0].1.get()), ("key", "\"yes\""));
    assert!(bench.claim("w").await.is_empty(), "the running worker keeps the task");
}

async fn parked_task_holds_no_worker_until_response(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    assert!(bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await.is_err());
    bench.advance(LEASE * 10);
    assert!(bench.claim("w").await.is_empty());
    bench.answer("a", &[("name", json!(1))]).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0, "waiting does not count as a crash");
}

async fn response_before_parking_wakes_the_task(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
    bench.park(&lease, Changes::default()).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
    // A response that the worker has seen does not prevent parking.
    bench.write(&claimed.lease, ask(&[("other", "other")])).await;
    let then = Transition::Park { due_at: None, responses_seen: 1 };
    bench.store.commit(&claimed.lease, &Changes::default(), &then).await.expect("commit succeeds");
    assert!(bench.claim("w").await.is_empty());
}

async fn cancellation_before_parking_wakes_the_task(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    let cancelled = bench.store.cancel(OWNER, &lease.task, false, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Requested)));
    bench.park(&lease, Changes::default()).await;
    assert!(bench.claim_one("w").await.cancel_requested, "the next worker sees the cancellation");
}

async fn parked_task_is_due_at_its_timer(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let due = bench.view("a").await.created_at + 60_000;
    bench
        .store
        .commit(
            &lease,
            &Changes::default(),
            &Transition::Park { due_at: Some(due), responses_seen: 0 },
        )
        .await
        .expect("commit succeeds");
    assert!(bench.claim("w").await.is_empty());
    let next =
        bench.store.next_due(&[]).await.expect("next_due succeeds").expect("a task is due later");
    assert!(next <= Duration::from_secs(60) && next > Duration::from_secs(50), "{next:?}");
    bench.advance(Duration::from_secs(61));
    assert_eq!(bench.claim_one("w").await.crash_count, 0);
}

async fn input_request_keeps_wire_key_after_crash(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.journal.input_requests, ["key"]);
    // The next worker opens the same input request again.
    bench.write(&claimed.lease, ask(&[("key", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
}

async fn reissued_input_request_has_another_wire_key(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "key")])).await;
    assert_eq!(bench.answer("a", &[("key", json!("bad"))]).await, Some(1));
    // The response was invalid, so the worker invalidates it and reissues the request under another
    // wire key.
    let mut again = ask(&[("key", "key#2")]);
    again.invalidated.push("key".to_owned());
    bench.write(&lease, again).await;
    assert_eq!(names(&bench.view("a").await), ["key#2"]);
    assert_eq!(bench.answer("a", &[("key", json!("late"))]).await, Some(0));
    bench.advance(LEASE * 2);
    let journal = bench.claim_one("w").await.journal;
    assert_eq!(recorded(&journal, "key"), None);
    assert_eq!(journal.reasked.get("key"), Some(&1));
    assert_eq!(bench.answer("a", &[("key#2", json!("good"))]).await, Some(1));
}

async fn withdrawn_input_request_is_not_open(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    let withdrawn = vec!["n1".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..entry("k", json!(1)) }).await;
    assert_eq!(names(&bench.view("a").await), ["n2"]);
    assert_eq!(bench.answer("a", &[("n1", json!(1))]).await, Some(0));
}

fn withdraw(names: &[&str]) -> Changes {
    let withdrawn = names.iter().map(|name| (*name).to_owned()).collect();
    Changes { withdrawn, ..Changes::default() }
}

async fn withdrawn_input_request_can_be_reopened(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.write(&lease, withdraw(&["name"])).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    // A replayed run opens the request again and waits for its response.
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert!(claimed.journal.input_requests.is_empty());
    bench.park(&claimed.lease, ask(&[("key", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer("a", &[("name", json!("yes"))]).await, Some(1));
    let journal = bench.claim_one("x").await.journal;
    assert_eq!(recorded(&journal, "key").as_deref(), Some("\"yes\""));
    assert_eq!(journal.reasked.get("key"), None, "the request was not reissued");
}

async fn reopened_answered_input_request_stays_answered(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.answer("a", &[("name", json!("first"))]).await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    assert_eq!(bench.answer("a", &[("name", json!("second"))]).await, Some(0));
    bench.write(&lease, withdraw(&["name"])).await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert!(bench.view("a").await.input_requests.is_empty(), "a response is never withdrawn");
    let answers = bench.store.inbox(&lease).await.expect("read succeeds").answers;
    assert_eq!(answers[0].1.get(), "\"first\"");
}

async fn input_request_opened_and_withdrawn_in_one_commit_is_withdrawn(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let both = Changes { withdrawn: withdraw(&["n1"]).withdrawn, ..ask(&[("k1", "n1")]) };
    bench.write(&lease, both.clone()).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    bench.write(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    bench.write(&lease, both).await;
    assert_eq!(names(&bench.view("a").await), ["n2"]);
}
