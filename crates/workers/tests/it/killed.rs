//! Processes that are killed, frozen, or exit: their calls continue in other processes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Place, Served, eventually, lives, pid, signal, text_of};

#[tokio::test]
async fn ten_steps_killed_in_the_fifth_are_eleven_executions() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let begun = Instant::now();
    let task = client.start("ten", json!({"kill": 5})).await;
    assert_eq!(client.completed(&task).await, "ten");
    assert_eq!(place.executions().len(), 11, "{:?}", place.executions());
    assert_eq!(place.count("step 5"), 2);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let metrics = served.worker.metrics();
    assert_eq!((metrics.losses, metrics.starts), (1, 2));
}

#[tokio::test]
async fn input_request_stays_open_while_process_is_replaced() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let old = pid(&mut client).await;
    let task = client.start("deploy", json!({})).await;
    client.until(&task, "input_required").await;
    signal(old, Signal::KILL);
    eventually("the process is replaced", || served.worker.metrics().starts == 2).await;
    assert_eq!(client.get(&task).await["status"], "input_required");
    client.accept(&task, "approve", json!({"yes": true})).await;
    assert_eq!(client.completed(&task).await, "shop:1 is out");
    assert_eq!(place.executions(), ["build", "push"]);
}

#[tokio::test]
async fn step_that_must_not_run_twice_is_ambiguous_after_kill() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    std::fs::write(place.folder.join("executions.kill"), "").unwrap();
    let mut client = served.client();
    let task = client.start("pays", json!({})).await;
    assert_eq!(client.completed(&task).await, "ambiguous");
    assert_eq!(place.executions(), ["charge"]);
    let task = client.start("pays", json!({})).await;
    assert_eq!(client.completed(&task).await, "receipt");
}

#[tokio::test]
async fn call_that_keeps_killing_is_quarantined_and_harms_no_other() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let honest = client.start("deploy", json!({})).await;
    client.until(&honest, "input_required").await;
    let task = client.start("dies", json!({})).await;
    let why = client.until_says(&task, "quarantined").await;
    assert!(why.contains("5 times in a row") && why.contains("signal 9"), "{why}");
    assert_eq!(place.count("dies"), 5);
    client.accept(&honest, "approve", json!({"yes": true})).await;
    assert_eq!(client.completed(&honest).await, "shop:1 is out");
    assert_eq!(place.count("build"), 1);
}

#[tokio::test]
async fn call_that_is_not_durable_fails_unless_it_may_run_again() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let old = pid(&mut client).await;
    let call = client.send("tools/call", json!({"name": "works", "arguments": {}})).await;
    eventually("the call runs", || place.count("works") == 1).await;
    signal(old, Signal::KILL);
    let failed = client.answer(call).await["result"].clone();
    assert_eq!(failed["isError"], true);
    let text = text_of(&failed);
    assert!(text.contains("was killed by signal 9") && text.contains("on_crash"), "{text}");
    assert_eq!(text_of(&client.call("repeats", json!({})).await), "repeated");
    assert_eq!(place.count("repeats"), 2);
}

#[tokio::test]
async fn frozen_process_is_killed_and_its_calls_continue() {
    let place = Place::new();
    let settings = place.settings().ping_timeout(Duration::from_millis(600));
    let served = Served::start(settings).await;
    let mut client = served.client();
    let old = pid(&mut client).await;
    signal(old, Signal::STOP);
    let task = client.start("ten", json!({})).await;
    assert_eq!(client.completed(&task).await, "ten");
    eventually("the frozen process is gone", || !lives(old)).await;
    assert_eq!(place.executions().len(), 10);
}

#[tokio::test]
async fn process_that_exits_is_restarted() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    for exits in 1..=3 {
        let failed = client.call("hostile", json!({"kind": "exit"})).await;
        assert!(text_of(&failed).contains("exited with code 3"), "{failed}");
        // A completed call makes the process useful, so that the next restart is immediate.
        assert_eq!(text_of(&client.call("greet", json!({})).await), "hello you");
        eventually("it is restarted", || served.worker.metrics().starts == 1 + exits).await;
    }
}

#[tokio::test]
async fn second_process_serves_further_calls() {
    let place = Place::new();
    let served = Served::start(place.settings().processes(2).max_concurrent(1)).await;
    eventually("both run", || served.worker.metrics().processes == 2).await;
    let (mut one, mut two) = (served.client(), served.client());
    let call = json!({"name": "works", "arguments": {"seconds": 0.5}});
    let (first, second) =
        (one.send("tools/call", call.clone()).await, two.send("tools/call", call).await);
    eventually("both calls run", || place.count("works") == 2).await;
    assert_eq!(text_of(&one.answer(first).await["result"]), "worked");
    assert_eq!(text_of(&two.answer(second).await["result"]), "worked");
}

#[tokio::test]
async fn shutdown_ends_all_processes() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let process = pid(&mut client).await;
    served.worker.shutdown().await;
    eventually("the process is gone", || !lives(process)).await;
    let marks = std::fs::read_dir(place.folder.join("tool-workers")).unwrap().count();
    assert_eq!(marks, 0, "the process is forgotten");
}

#[tokio::test]
async fn crash_after_each_entry_executes_every_step_once() {
    let place = Place::new();
    let served = Served::start(place.settings().crash_after_each_entry(true)).await;
    let mut client = served.client();
    let task = client.start("ten", json!({})).await;
    assert_eq!(client.completed(&task).await, "ten");
    assert_eq!(place.executions().len(), 10);
    assert_eq!(served.worker.metrics().losses, 10);
}

#[tokio::test]
async fn skipped_time_wakes_timers_at_once() {
    let place = Place::new();
    let served = Served::start(place.settings().skip_time(true)).await;
    let mut client = served.client();
    let begun = Instant::now();
    let task = client.start("naps", json!({})).await;
    assert_eq!(client.completed(&task).await, "awake");
    assert!(begun.elapsed() < Duration::from_millis(800), "{:?}", begun.elapsed());
}
