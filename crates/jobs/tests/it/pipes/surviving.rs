//! Requests of gateways that are killed: each is executed once, and the next gateway gets its
//! result.

use outlive_jobs::{AttachState, PipeEvent, SlotState};
use rustix::process::Signal;
use serde_json::json;

use super::{gateway::Gateway, support::Place};
use crate::support::lives;

const KILLS: usize = 10;

#[tokio::test]
async fn request_survives_many_killed_gateways_with_one_execution() {
    let place = Place::new();
    Gateway::start(&place, "retained").kill();
    let process = place.process();
    for _ in 0..KILLS {
        // A gateway that is killed while it waits for the response.
        let mut gateway = place.find().await;
        let attached = gateway.attach(1).await;
        assert_eq!(attached.state, AttachState::Open);
        assert_eq!(gateway.message().await["method"], "progress");
    }
    place.write("go");
    let mut last = place.find().await;
    last.attach(1).await;
    assert_eq!(last.response(1).await, "slow result");
    assert_eq!(place.read("executions"), "1\n");
    assert_eq!(place.process(), process);
    // The response stays available until the task has stored it.
    drop(last);
    let mut last = place.find().await;
    assert_eq!(last.attach(1).await.state, AttachState::Responded);
    assert_eq!(last.response(1).await, "slow result");
    last.sender.done(1);
    assert_eq!(last.attach(1).await.state, AttachState::Gone);
    assert_eq!(last.attach(2).await.state, AttachState::Unknown);
}

#[tokio::test]
async fn response_that_arrives_without_gateway_is_delivered_to_next() {
    let place = Place::new();
    Gateway::start(&place, "retained").kill();
    place.write("go");
    let slots = place.hello_with(|hello| hello.slots[0].has_response).await.slots;
    assert_eq!(slots[0].label.as_deref(), Some("task"));
    assert!(!slots[0].is_owned);
    let mut next = place.find().await;
    assert_eq!(next.attach(1).await.state, AttachState::Responded);
    assert_eq!(next.response(1).await, "slow result");
    assert_eq!(place.read("executions"), "1\n");
}

#[tokio::test]
async fn large_responses_without_gateway_overflow_into_file() {
    let place = Place::new();
    let gateway = place.start().await;
    let bytes = 3 << 20;
    for id in 1..=5 {
        gateway.request_retained(id, "long", json!({"bytes": bytes})).await;
    }
    place.hello_with(|hello| hello.slots.len() == 5).await;
    drop(gateway);
    let are_complete =
        |slots: &[SlotState]| slots.iter().filter(|slot| slot.has_response).count() == 5;
    place.hello_with(|hello| are_complete(&hello.slots)).await;
    let mut next = place.find().await;
    for id in 1..=5 {
        next.attach(id).await;
        assert_eq!(next.response(id).await.as_str().unwrap().len(), bytes);
    }
    let overflow = || std::fs::metadata(place.file("overflow")).unwrap().len();
    assert!(overflow() > 2 * bytes as u64, "{}", overflow());
    for id in 1..=5 {
        next.sender.done(id);
    }
    crate::support::until(|| overflow() == 0).await;
}

#[tokio::test]
async fn open_input_request_is_carried_to_next_gateway_and_answered_once() {
    let place = Place::new();
    Gateway::start(&place, "asked").kill();
    let mut next = place.find().await;
    let attached = next.attach(1).await;
    assert_eq!((attached.state, attached.carried), (AttachState::Open, 5));
    assert_eq!(attached.inputs[0].input, "\"form\"");
    assert_eq!(attached.inputs[0].number, 5);
    let request = next.message().await;
    assert_eq!((&request["method"], &request["id"]), (&json!("ask"), &json!("form")));
    for number in 1..=2 {
        let response = json!({"id": "form", "result": number}).to_string();
        next.sender.respond(response.into()).await;
    }
    next.request(2, "echo", json!({})).await;
    next.response(2).await;
    assert_eq!(place.read("heard").lines().count(), 1, "{}", place.read("heard"));
    assert!(place.read("heard").contains(r#""result":1"#));
}

#[tokio::test]
async fn request_that_is_not_retained_is_cancelled_when_its_gateway_is_killed() {
    let place = Place::new();
    Gateway::start(&place, "plain").kill();
    place.wait_for("heard", r#""requestId":1"#).await;
    let mut next = place.find().await;
    assert_eq!(next.attach(1).await.state, AttachState::Gone);
    assert!(lives(&place.process().to_string()), "the process remains for the next gateway");
}

#[tokio::test]
async fn former_owner_that_continues_after_stop_cannot_use_the_request() {
    let place = Place::new();
    let mut old = Gateway::start(&place, "retained");
    old.signal(Signal::STOP);
    let mut new = place.find().await;
    assert_eq!(new.attach(1).await.state, AttachState::Open);
    place.write("use");
    old.signal(Signal::CONT);
    old.wait_for("used");
    // Whatever the old gateway sent was handled before this response.
    new.request(2, "echo", json!({})).await;
    new.response(2).await;
    assert!(!place.read("heard").contains("old gateway"), "{}", place.read("heard"));
    place.write("go");
    assert_eq!(new.response(1).await, "slow result");
    old.kill();
}

#[tokio::test]
async fn request_id_in_use_is_not_written_again() {
    let place = Place::new();
    let mut gateway = place.start().await;
    gateway.request_retained(1, "slow", json!({})).await;
    place.wait_for("executions", "1").await;
    gateway.request(1, "slow", json!({})).await;
    gateway.request(2, "echo", json!({})).await;
    gateway.response(2).await;
    assert_eq!(place.read("executions"), "1\n");
}

#[tokio::test]
async fn response_of_process_that_exits_without_gateway_is_delivered() {
    let place = Place::new();
    let gateway = place.start().await;
    gateway.request_retained(1, "respond-and-exit", json!({})).await;
    place.hello_with(|hello| hello.slots.len() == 1).await;
    drop(gateway);
    place.hello_with(|hello| hello.exit.is_some()).await;
    let mut next = place.find().await;
    assert_eq!(next.attach(1).await.state, AttachState::Responded);
    let mut result = None;
    while let Some(event) = next.event().await {
        match event {
            PipeEvent::Message(message) => result = Some(message),
            PipeEvent::Exit(_) if result.is_some() => break,
            _ => {}
        }
        if result.is_some() {
            break;
        }
    }
    let result: serde_json::Value = serde_json::from_slice(&result.unwrap()).unwrap();
    assert_eq!(result["result"], "last");
    next.sender.done(1);
    let folder = place.file("exit.json");
    crate::support::until(|| folder.exists()).await;
}
