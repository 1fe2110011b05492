//! The end of processes, supervisors and gateways. No process remains.

use std::{fs, time::Duration};

use outlive_jobs::{AttachState, How, PipeEvent, PipeSpec};
use serde_json::json;

use super::{
    gateway::Gateway,
    support::{GUARD, Place},
};
use crate::support::{ID, kill, lives, until};

async fn wait_for_end(place: &Place, process: i32, supervisor: i32) {
    let (process, supervisor) = (process.to_string(), supervisor.to_string());
    let waiting = until(|| !lives(&process) && !lives(&supervisor));
    tokio::time::timeout(GUARD, waiting).await.expect("both processes end");
    let sockets = fs::read_dir(place.data.join("pipes/.ctl")).unwrap().count();
    assert!(sockets <= 1, "a supervisor that ends removes its socket");
}

#[tokio::test]
async fn unused_process_ends_when_its_gateway_was_killed() {
    let place = Place::new();
    let gateway = Gateway::start(&place, "idle");
    let (process, supervisor) = (place.process(), place.supervisor());
    gateway.kill();
    // An observer does not keep it running.
    let observer = place.pipes.observe(ID).await.unwrap().unwrap();
    wait_for_end(&place, process, supervisor).await;
    drop(observer);
    assert!(place.read("heard").contains("end of input"), "the process could end by itself");
    assert!(place.pipes.find(ID).await.unwrap().is_none());
    place.pipes.remove(ID).await.unwrap();
    assert!(place.pipes.list().unwrap().is_empty());
}

#[tokio::test]
async fn process_ends_on_request_unless_another_gateway_or_call_needs_it() {
    let place = Place::new();
    let mut gateway = place.start().await;
    let other = place.find().await;
    gateway.sender.end(false);
    while !matches!(gateway.event().await, Some(PipeEvent::Kept)) {}
    drop(other);
    gateway.request_retained(1, "slow", json!({})).await;
    place.wait_for("executions", "1").await;
    gateway.sender.end(false);
    while !matches!(gateway.event().await, Some(PipeEvent::Kept)) {}
    let (process, supervisor) = (place.process(), place.supervisor());
    gateway.sender.done(1);
    gateway.sender.end(false);
    loop {
        match gateway.event().await.unwrap() {
            PipeEvent::Exit(how) => break assert_eq!(how, How::Ended),
            PipeEvent::Kept => panic!("nothing needs it"),
            _ => {}
        }
    }
    wait_for_end(&place, process, supervisor).await;
}

#[tokio::test]
async fn exit_of_process_is_reported_with_code_after_its_last_line() {
    let place = Place::new();
    let mut gateway = place.start().await;
    let (process, supervisor) = (place.process(), place.supervisor());
    gateway.request(1, "exit", json!({})).await;
    let mut last = String::new();
    loop {
        match gateway.event().await.unwrap() {
            PipeEvent::Stderr(line) => last = line,
            PipeEvent::Exit(how) => break assert_eq!(how, How::Code(7)),
            _ => {}
        }
    }
    assert_eq!(last, "going down");
    assert!(gateway.event().await.is_none(), "the connection ends");
    wait_for_end(&place, process, supervisor).await;
}

#[tokio::test]
async fn process_that_ignores_the_end_of_its_input_is_killed_with_its_children() {
    let place = Place::new();
    let script = "trap '' TERM; sleep 1000 & echo $! > \"$0/sleeper\"; while :; do sleep 1; done";
    let folder = place.data.as_os_str();
    let spec = PipeSpec {
        kill_grace: Duration::from_millis(200),
        ..PipeSpec::new(["sh".as_ref(), "-c".as_ref(), script.as_ref(), folder])
    };
    let mut gateway = place.start_as(&spec).await;
    until(|| place.read("sleeper").ends_with('\n')).await;
    let (process, supervisor) = (place.process(), place.supervisor());
    gateway.sender.end(false);
    while !matches!(gateway.event().await, Some(PipeEvent::Exit(_))) {}
    wait_for_end(&place, process, supervisor).await;
    assert!(!lives(place.read("sleeper").trim()));
}

#[tokio::test]
async fn killed_supervisor_ends_connection_and_its_process_is_removed() {
    let place = Place::new();
    let mut gateway = place.start().await;
    gateway.request_retained(1, "slow", json!({})).await;
    place.wait_for("executions", "1").await;
    let process = place.process();
    kill(place.supervisor());
    while gateway.event().await.is_some() {}
    assert!(place.pipes.find(ID).await.unwrap().is_none());
    place.pipes.remove(ID).await.unwrap();
    assert!(!lives(&process.to_string()));
    assert!(place.pipes.list().unwrap().is_empty());
    // A new process knows nothing of the request.
    let mut gateway = place.start().await;
    assert_eq!(gateway.attach(1).await.state, AttachState::Unknown);
}

#[tokio::test]
async fn process_without_server_heartbeat_ends() {
    let place = Place::new();
    outlive_jobs::record_heartbeat(&place.data).unwrap();
    let spec = PipeSpec { orphan_timeout: Some(Duration::from_millis(400)), ..place.spec() };
    let mut gateway = place.start_as(&spec).await;
    loop {
        if let PipeEvent::Exit(how) = gateway.event().await.unwrap() {
            break assert_eq!(how, How::Orphaned);
        }
    }
}

#[tokio::test]
async fn many_killed_gateways_leave_no_process() {
    let place = Place::new();
    let mut processes = Vec::new();
    for round in 0..5 {
        let gateway = Gateway::start(&place, if round % 2 == 0 { "plain" } else { "idle" });
        processes.push((place.process(), place.supervisor()));
        gateway.kill();
        tokio::time::sleep(Duration::from_millis(round * 100)).await;
    }
    for (process, supervisor) in processes {
        wait_for_end(&place, process, supervisor).await;
    }
}

#[tokio::test]
async fn process_that_exits_at_once_is_reported_to_its_gateway() {
    let place = Place::new();
    let spec = PipeSpec::new(["sh", "-c", "echo no configuration >&2; exit 3"]);
    for _ in 0..10 {
        let mut gateway = place.start_as(&spec).await;
        let (mut said, mut ended) = (Vec::new(), None);
        while let Some(event) = gateway.event().await {
            match event {
                PipeEvent::Stderr(line) => said.push(line),
                PipeEvent::Exit(how) => ended = Some(how),
                _ => {}
            }
        }
        assert_eq!((said, ended), (vec!["no configuration".to_owned()], Some(How::Code(3))));
        until(|| place.file("exit.json").exists()).await;
        place.pipes.remove(ID).await.unwrap();
    }
}
