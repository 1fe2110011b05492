//! Concurrent input responses, and input responses to tasks that continued.

use outlive::store::{AuditLog, TaskStore};
use serde_json::{Value, json};

use super::super::{
    stage::{Stage, acknowledged, answer, asked, parked, send, until_asked, update},
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{Op, after, before},
    pipe::{Pipe, text},
};

//
#[tokio::test(start_paused = true)]
async fn first_of_two_input_responses_wins_and_both_are_acknowledged() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "deploy", json!({})).await;
    until_asked(&mut one, &id, &["approve"]).await;
    let answering = points.hold(before(Op::Answer));
    let late = send(&mut one, "tasks/update", update(&id, &[("approve", false)])).await;
    answering.arrived().await;
    answer(&mut two, &id, &[("approve", true)]).await;
    answering.open(1);
    acknowledged(&one.answer(late).await);
    let done = until(&mut one, &id, "completed").await;
    assert_eq!(text(&done["result"]), "shop:1: true");
    parked().await;
    // The audit log records the ignored response.
    let audit = stage.store.read(None, 0, 100).await.unwrap();
    let updates: Vec<_> = audit
        .iter()
        .filter(|audit| audit.event.action == "updated")
        .map(|audit| audit.event.reason.clone().unwrap())
        .collect();
    assert_eq!(updates, ["1 input responses stored", "0 input responses stored"]);
}

//
#[tokio::test(start_paused = true)]
async fn responses_to_two_input_requests_count_in_either_order() {
    for order in [[0, 1], [1, 0]] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
        let id = start(&mut one, "both", json!({})).await;
        until_asked(&mut one, &id, &["a", "b"]).await;
        let mut listener = listen(&server, &id).await;
        let gates = [points.hold(before(Op::Answer)), points.hold(before(Op::Answer).nth(2))];
        let first = send(&mut one, "tasks/update", update(&id, &[("a", true)])).await;
        gates[0].arrived().await;
        let second = send(&mut two, "tasks/update", update(&id, &[("b", false)])).await;
        gates[1].arrived().await;
        for turn in order {
            gates[turn].open(1);
            match turn {
                0 => acknowledged(&one.answer(first).await),
                _ => acknowledged(&two.answer(second).await),
            }
        }
        let done = until(&mut one, &id, "completed").await;
        assert_eq!(text(&done["result"]), "true false");
        // The status leaves `input_required` once.
        let mut statuses = vec![listener.read().await["params"]["status"].clone()];
        while statuses.last().unwrap() != "completed" {
            statuses.push(listener.read().await["params"]["status"].clone());
        }
        statuses.dedup();
        let left = statuses.windows(2).filter(|two| two[0] == "input_required").count();
        assert_eq!(left, 1, "{statuses:?}");
    }
}

/// Opens a subscription to a task, and reads its first notification.
async fn listen(server: &outlive::server::Server, id: &str) -> Pipe {
    let mut listener = Pipe::open(server);
    let params = json!({"notifications": {"taskIds": [id]}});
    send(&mut listener, "subscriptions/listen", params).await;
    listener.read().await;
    listener
}

//
#[tokio::test(start_paused = true)]
async fn input_response_after_end_is_acknowledged_and_ignored() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let mut ended = Vec::new();
    let done = start(&mut pipe, "deploy", json!({})).await;
    until_asked(&mut pipe, &done, &["approve"]).await;
    answer(&mut pipe, &done, &[("approve", true)]).await;
    until(&mut pipe, &done, "completed").await;
    ended.push(done);
    let refused = start(&mut pipe, "refuse", json!({})).await;
    until(&mut pipe, &refused, "failed").await;
    ended.push(refused);
    let cancelled = start(&mut pipe, "both", json!({})).await;
    until_asked(&mut pipe, &cancelled, &["a", "b"]).await;
    parked().await;
    modern(&mut pipe, "tasks/cancel", json!({"taskId": cancelled})).await;
    ended.push(cancelled);
    for id in &ended {
        let before = get(&mut pipe, id).await;
        answer(&mut pipe, id, &[("approve", false), ("a", true), ("b", true)]).await;
        parked().await;
        assert_eq!(get(&mut pipe, id).await, before);
    }
}

//
#[tokio::test(start_paused = true)]
async fn late_response_to_withdrawn_input_request_is_ignored() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "moves_on", json!({})).await;
    until_asked(&mut one, &id, &["first"]).await;
    let answering = points.hold(before(Op::Answer));
    let late = send(&mut one, "tasks/update", update(&id, &[("first", true)])).await;
    answering.arrived().await;
    stage.gate.open(100);
    until_asked(&mut two, &id, &["second"]).await;
    answering.open(1);
    acknowledged(&one.answer(late).await);
    assert_eq!(asked(&get(&mut one, &id).await), ["second"]);
    answer(&mut one, &id, &[("second", false)]).await;
    let done = until(&mut one, &id, "completed").await;
    assert_eq!(text(&done["result"]), "None false");
}

//
#[tokio::test(start_paused = true)]
async fn late_response_to_repeated_input_request_is_ignored() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "deploy", json!({})).await;
    until_asked(&mut one, &id, &["approve"]).await;
    let answering = points.hold(before(Op::Answer));
    let late = send(&mut one, "tasks/update", update(&id, &[("approve", true)])).await;
    answering.arrived().await;
    let wrong = json!({"approve": {"action": "accept", "content": {"yes": "maybe"}}});
    let wrong = json!({"taskId": id, "inputResponses": wrong});
    acknowledged(&modern(&mut two, "tasks/update", wrong).await);
    until_asked(&mut two, &id, &["approve#2"]).await;
    answering.open(1);
    acknowledged(&one.answer(late).await);
    parked().await;
    assert_eq!(asked(&get(&mut one, &id).await), ["approve#2"]);
    answer(&mut one, &id, &[("approve#2", false)]).await;
    assert_eq!(text(&until(&mut one, &id, "completed").await["result"]), "shop:1: false");
}

//
#[tokio::test(start_paused = true)]
async fn key_used_for_two_input_requests_fails_with_key() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "twice", json!({})).await;
    let asking = until_asked(&mut pipe, &id, &["k"]).await;
    assert_eq!(
        asking["inputRequests"]["k"]["params"]["message"], "One?",
        "the first input request has the key"
    );
    answer(&mut pipe, &id, &[("k", true)]).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert!(text(&done["result"]).contains("`k`"), "the error names the key: {done}");
}

//
#[tokio::test(start_paused = true)]
async fn input_request_losing_to_end_is_never_shown() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    // The gate is open before the input request is stored.
    stage.gate.open(1);
    let mut pipe = Pipe::open(&server);
    let ending = points.hold(before(Op::End));
    let id = start(&mut pipe, "hurried", json!({})).await;
    ending.arrived().await;
    assert!(asked(&get(&mut pipe, &id).await).is_empty());
    ending.open(1);
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "without you");
    assert!(asked(&done).is_empty());
    answer(&mut pipe, &id, &[("sure", true)]).await;
    assert_eq!(get(&mut pipe, &id).await, done);
}

//
#[tokio::test(start_paused = true)]
async fn end_of_task_closes_input_requests_atomically() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "hurried", json!({})).await;
    until_asked(&mut one, &id, &["sure"]).await;
    let ending = points.hold(before(Op::End));
    stage.gate.open(100);
    ending.arrived().await;
    assert_eq!(asked(&get(&mut one, &id).await), ["sure"], "the end is not stored yet");
    let answering = points.hold(before(Op::Answer));
    let late = send(&mut two, "tasks/update", update(&id, &[("sure", true)])).await;
    answering.arrived().await;
    ending.open(1);
    let done = until(&mut one, &id, "completed").await;
    assert_eq!(text(&done["result"]), "without you");
    assert!(asked(&done).is_empty());
    answering.open(1);
    acknowledged(&two.answer(late).await);
    assert_eq!(get(&mut one, &id).await, done);
}

//
#[tokio::test(start_paused = true)]
async fn client_reading_after_its_response_sees_it_applied() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "both", json!({})).await;
    until_asked(&mut one, &id, &["a", "b"]).await;
    let gates = [points.hold(before(Op::Answer)), points.hold(after(Op::Answer))];
    let update = send(&mut one, "tasks/update", update(&id, &[("a", true)])).await;
    gates[0].arrived().await;
    assert_eq!(asked(&get(&mut two, &id).await), ["a", "b"], "the response is not stored yet");
    gates[0].open(1);
    gates[1].arrived().await;
    assert_eq!(
        asked(&get(&mut two, &id).await),
        ["b"],
        "the response is stored but not acknowledged"
    );
    gates[1].open(1);
    acknowledged(&one.answer(update).await);
    assert_eq!(asked(&get(&mut one, &id).await), ["b"]);
}

//
#[tokio::test(start_paused = true)]
async fn late_notification_has_older_timestamp() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "both", json!({})).await;
    until_asked(&mut pipe, &id, &["a", "b"]).await;
    parked().await;
    let mut listener = listen(&server, &id).await;
    listener.read().await;
    // The subscriber has read the task, but gets the notification later.
    let telling = points.hold(after(Op::View));
    let answer_a = vec![("a".to_owned(), crate::support::pipe::raw(&agreed()))];
    let owner = outlive::server::Principal::LOCAL;
    let task = outlive::store::TaskId::new(id.as_str());
    let from = outlive::store::InputSource::Client;
    stage.store.respond(owner.key(), &task, from, answer_a, u64::MAX).await.unwrap();
    telling.arrived().await;
    answer(&mut pipe, &id, &[("b", false)]).await;
    let done = until(&mut pipe, &id, "completed").await;
    telling.open(1);
    let told = listener.read().await;
    assert_ne!(told["params"]["status"], "completed", "{told}");
    assert!(at(&told["params"]) < at(&done), "{told} is older than {done}");
    let mut last = told;
    while last["params"]["status"] != "completed" {
        let next = listener.read().await;
        assert!(at(&last["params"]) < at(&next["params"]), "{last} {next}");
        last = next;
    }
    assert_eq!(at(&last["params"]), at(&done));
}

fn agreed() -> Value {
    json!({"action": "accept", "content": {"yes": true}})
}

/// Time of the last change. All times have the same format, so they compare as strings.
fn at(task: &Value) -> String {
    task["lastUpdatedAt"].as_str().unwrap().to_owned()
}

//
#[tokio::test(start_paused = true)]
async fn task_states_have_distinct_timestamps() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    let mut seen: Vec<Value> = Vec::new();
    let mut look = async |pipe: &mut Pipe| {
        let task = get(pipe, &id).await;
        match seen.last() {
            Some(last) if *last == task => {}
            Some(last) => {
                assert!(at(last) < at(&task), "{last} {task}");
                seen.push(task);
            }
            None => seen.push(task),
        }
        seen.len()
    };
    for turn in 1..=5 {
        look(&mut pipe).await;
        let name = if turn == 1 { "approve".to_owned() } else { format!("approve#{turn}") };
        until_asked(&mut pipe, &id, &[&name]).await;
        look(&mut pipe).await;
        let wrong = json!({name: {"action": "accept", "content": {"yes": "maybe"}}});
        let wrong = json!({"taskId": id, "inputResponses": wrong});
        acknowledged(&modern(&mut pipe, "tasks/update", wrong).await);
    }
    assert!(look(&mut pipe).await >= 6);
}
