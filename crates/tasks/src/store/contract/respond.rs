//! Questions, answers, and waiting for them without a worker.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, ask, entry, names, promises, recorded};
use crate::store::{CancelOutcome, Changes, Phase, Transition};

promises![
    questions_are_seen_in_their_order,
    an_answer_is_never_lost_and_the_first_counts,
    answers_to_what_is_not_open_are_ignored,
    some_answers_leave_the_others_open,
    an_answer_is_read_by_the_worker_that_runs,
    a_parked_task_holds_no_worker_until_it_is_answered,
    an_answer_that_comes_before_the_parking_is_not_slept_through,
    a_cancellation_that_comes_before_the_parking_is_not_slept_through,
    a_parked_task_is_due_at_its_time,
    a_question_keeps_its_name_over_a_crash,
    a_question_that_is_asked_again_has_another_name,
    a_withdrawn_question_is_not_open,
    a_withdrawn_question_that_is_asked_again_is_open,
    an_answered_question_that_is_asked_again_stays_answered,
    what_is_asked_and_withdrawn_in_one_write_is_withdrawn,
];

async fn questions_are_seen_in_their_order(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("z", "z"), ("a", "a")])).await;
    bench.write(&lease, ask(&[("m", "m")])).await;
    assert_eq!(names(&bench.view("a").await), ["z", "a", "m"]);
}

async fn an_answer_is_never_lost_and_the_first_counts(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
    assert_eq!(bench.answer("a", &[("name", json!(2))]).await, Some(0));
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
    assert!(bench.view("a").await.input_requests.is_empty());
    // Also when the worker that got it is lost.
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("x").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
}

async fn answers_to_what_is_not_open_are_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    let answers = [("other", json!(1)), ("key", json!(2))];
    assert_eq!(bench.answer("a", &answers).await, Some(0));
    assert_eq!(bench.answer("nobody", &answers).await, None);
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert!(bench.store.inbox(&lease).await.expect("a look").answers.is_empty());
}

async fn some_answers_leave_the_others_open(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    assert_eq!(bench.answer("a", &[("n2", json!(2))]).await, Some(1));
    assert_eq!(names(&bench.view("a").await), ["n1"]);
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "k2").as_deref(), Some("2"));
    assert_eq!(claimed.journal.input_requests, ["k1"], "what is still open");
}

async fn an_answer_is_read_by_the_worker_that_runs(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!("yes"))]).await, Some(1));
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    let answers = bench.store.inbox(&lease).await.expect("a look").answers;
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].0.as_str(), answers[0].1.get()), ("key", "\"yes\""));
    assert!(bench.claim("w").await.is_empty(), "its worker goes on with it");
}

async fn a_parked_task_holds_no_worker_until_it_is_answered(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.view("a").await.phase, Phase::Parked);
    assert!(bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await.is_err());
    bench.advance(LEASE * 10);
    assert!(bench.claim("w").await.is_empty());
    bench.answer("a", &[("name", json!(1))]).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0, "waiting is no crash");
}

async fn an_answer_that_comes_before_the_parking_is_not_slept_through(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
    bench.park(&lease, Changes::default()).await;
    let claimed = bench.claim_one("w").await;
    assert_eq!(recorded(&claimed.journal, "key").as_deref(), Some("1"));
    // What has been seen is no reason to look again, whatever is still open.
    bench.write(&claimed.lease, ask(&[("other", "other")])).await;
    let then = Transition::Park { due_at: None, responses_seen: 1 };
    bench.store.commit(&claimed.lease, &Changes::default(), &then).await.expect("a write");
    assert!(bench.claim("w").await.is_empty());
}

async fn a_cancellation_that_comes_before_the_parking_is_not_slept_through(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    let cancelled = bench.store.cancel(OWNER, &lease.task, false, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Requested)));
    bench.park(&lease, Changes::default()).await;
    assert!(bench.claim_one("w").await.cancel_requested, "whoever has it next ends it");
}

async fn a_parked_task_is_due_at_its_time(bench: ContractBench) {
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
        .expect("a write");
    assert!(bench.claim("w").await.is_empty());
    let next = bench.store.next_due(&[]).await.expect("a time").expect("its time");
    assert!(next <= Duration::from_secs(60) && next > Duration::from_secs(50), "{next:?}");
    bench.advance(Duration::from_secs(61));
    assert_eq!(bench.claim_one("w").await.crash_count, 0);
}

async fn a_question_keeps_its_name_over_a_crash(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.journal.input_requests, ["key"]);
    // The new worker comes to the same question, and it is the same.
    bench.write(&claimed.lease, ask(&[("key", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer("a", &[("name", json!(1))]).await, Some(1));
}

async fn a_question_that_is_asked_again_has_another_name(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "key")])).await;
    assert_eq!(bench.answer("a", &[("key", json!("bad"))]).await, Some(1));
    // Its answer did not fit: the worker forgets it and asks under another name.
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

async fn a_withdrawn_question_is_not_open(bench: ContractBench) {
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

async fn a_withdrawn_question_that_is_asked_again_is_open(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.write(&lease, withdraw(&["name"])).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    // A run that begins again comes to it again, and waits for its answer.
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert!(claimed.journal.input_requests.is_empty());
    bench.park(&claimed.lease, ask(&[("key", "name")])).await;
    assert_eq!(names(&bench.view("a").await), ["name"]);
    assert_eq!(bench.answer("a", &[("name", json!("yes"))]).await, Some(1));
    let journal = bench.claim_one("x").await.journal;
    assert_eq!(recorded(&journal, "key").as_deref(), Some("\"yes\""));
    assert_eq!(journal.reasked.get("key"), None, "it has one name");
}

async fn an_answered_question_that_is_asked_again_stays_answered(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    bench.answer("a", &[("name", json!("first"))]).await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    assert_eq!(bench.answer("a", &[("name", json!("second"))]).await, Some(0));
    bench.write(&lease, withdraw(&["name"])).await;
    bench.write(&lease, ask(&[("key", "name")])).await;
    assert!(bench.view("a").await.input_requests.is_empty(), "an answer is not withdrawn");
    let answers = bench.store.inbox(&lease).await.expect("a look").answers;
    assert_eq!(answers[0].1.get(), "\"first\"");
}

async fn what_is_asked_and_withdrawn_in_one_write_is_withdrawn(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let both = Changes { withdrawn: withdraw(&["n1"]).withdrawn, ..ask(&[("k1", "n1")]) };
    bench.write(&lease, both.clone()).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    bench.write(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    bench.write(&lease, both).await;
    assert_eq!(names(&bench.view("a").await), ["n2"]);
}
