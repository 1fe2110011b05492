//! What is asked of something outside: it waits like a question, and no client sees it.

use serde_json::json;

use super::bench::{ContractBench, LEASE, ask, names, outside, promises, recorded};
use crate::store::{Changes, Phase};

promises![
    what_is_asked_outside_is_not_shown_to_the_client,
    a_client_does_not_answer_for_something_outside,
    nothing_outside_answers_for_the_client,
    a_task_that_waits_for_something_outside_holds_no_worker,
    an_answer_from_outside_that_comes_before_the_parking_is_not_slept_through,
    what_is_asked_outside_is_still_asked_after_a_crash,
];

async fn what_is_asked_outside_is_not_shown_to_the_client(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("k1", "job")).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    bench.write(&lease, ask(&[("k2", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    let listed = bench.store.list(super::bench::OWNER, "modern", None, 10).await.expect("a list");
    assert_eq!(names(&listed[0]), ["name"]);
}

async fn a_client_does_not_answer_for_something_outside(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    assert_eq!(bench.answer("a", &[("job", json!("forged"))]).await, Some(0));
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    assert_eq!(bench.answer_outside("a", &[("job", json!("true"))]).await, Some(1));
    assert_eq!(bench.answer_outside("a", &[("job", json!("late"))]).await, Some(0));
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("\"true\""));
}

async fn nothing_outside_answers_for_the_client(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer_outside("a", &[("name", json!("forged"))]).await, Some(0));
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer_outside("nobody", &[("name", json!(1))]).await, None);
}

async fn a_task_that_waits_for_something_outside_holds_no_worker(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    bench.advance(LEASE * 10);
    assert!(bench.claim("w").await.is_empty());
    bench.answer_outside("a", &[("job", json!(1))]).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0, "waiting is no crash");
    assert!(claimed.journal.input_requests.is_empty());
}

async fn an_answer_from_outside_that_comes_before_the_parking_is_not_slept_through(
    bench: ContractBench,
) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("key", "job")).await;
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
    let heard = bench.store.inbox(&lease).await.expect("a look");
    assert_eq!(heard.answers.len(), 1);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(recorded(&bench.claim_one("w").await.journal, "key").as_deref(), Some("1"));
}

async fn what_is_asked_outside_is_still_asked_after_a_crash(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("key", "job")).await;
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.journal.input_requests, ["key"]);
    // The new worker comes to the same job, and it is the same.
    bench.write(&claimed.lease, outside("key", "job")).await;
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
}
