//! Checks of external events, which clients cannot see or resolve.

use serde_json::json;

use super::bench::{ContractBench, LEASE, ask, names, outside, promises, recorded};
use crate::store::{Changes, Phase};

promises![
    external_event_is_invisible_to_client,
    client_response_to_external_event_is_ignored,
    external_response_to_client_request_is_ignored,
    task_parked_for_external_event_holds_no_worker,
    external_response_before_parking_wakes_the_task,
    external_event_stays_open_after_a_crash,
];

async fn external_event_is_invisible_to_client(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("k1", "job")).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    bench.write(&lease, ask(&[("k2", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    let listed =
        bench.store.list(super::bench::OWNER, "modern", None, 10).await.expect("list succeeds");
    assert_eq!(names(&listed[0]), ["name"]);
}

async fn client_response_to_external_event_is_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    assert_eq!(bench.answer("a", &[("job", json!("forged"))]).await, Some(0));
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    assert_eq!(bench.answer_outside("a", &[("job", json!("true"))]).await, Some(1));
    assert_eq!(bench.answer_outside("a", &[("job", json!("late"))]).await, Some(0));
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("\"true\""));
}

async fn external_response_to_client_request_is_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer_outside("a", &[("name", json!("forged"))]).await, Some(0));
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer_outside("nobody", &[("name", json!(1))]).await, None);
}

async fn task_parked_for_external_event_holds_no_worker(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    bench.advance(LEASE * 10);
    assert!(bench.claim("w").await.is_empty());
    bench.answer_outside("a", &[("job", json!(1))]).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0, "waiting does not count as a crash");
    assert!(claimed.journal.input_requests.is_empty());
}

async fn external_response_before_parking_wakes_the_task(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("key", "job")).await;
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
    let heard = bench.store.inbox(&lease).await.expect("read succeeds");
    assert_eq!(heard.answers.len(), 1);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(recorded(&bench.claim_one("w").await.journal, "key").as_deref(), Some("1"));
}

async fn external_event_stays_open_after_a_crash(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, outside("key", "job")).await;
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.journal.input_requests, ["key"]);
    // The next worker opens the same external event again.
    bench.write(&claimed.lease, outside("key", "job")).await;
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
}
