//! Messages between a gateway and a process.

use std::fs;

use outlive_jobs::{Error, PipeEvent, PipeSpec};
use serde_json::json;

use super::support::Place;
use crate::support::ID;

#[tokio::test]
async fn request_gets_its_response_and_process_gets_only_its_variables() {
    let place = Place::new();
    let mut gateway = place.start().await;
    gateway.request(1, "echo", json!({"a": [1, "b"]})).await;
    gateway.request(2, "variables", json!({})).await;
    assert_eq!(gateway.response(1).await, json!({"a": [1, "b"]}));
    assert_eq!(gateway.response(2).await, json!(["OUTLIVE_JOB", "PATH", "SECRET"]));
    for entry in fs::read_dir(place.file("")).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("hunter2"), "{}", path.display());
    }
    let environment = fs::read(format!("/proc/{}/environ", place.supervisor())).unwrap();
    assert!(environment.is_empty(), "the supervisor has a clean environment");
}

#[tokio::test]
async fn lines_of_standard_error_reach_gateway() {
    let place = Place::new();
    let mut gateway = place.start().await;
    loop {
        if let PipeEvent::Stderr(line) = gateway.event().await.unwrap() {
            assert_eq!(line, "speaking");
            break;
        }
    }
}

#[tokio::test]
async fn response_of_sixteen_mebibytes_arrives_unchanged() {
    let place = Place::new();
    let mut gateway = place.start().await;
    for bytes in [1, 60_000, 1 << 20, (16 << 20) - 100] {
        gateway.request(bytes, "long", json!({"bytes": bytes})).await;
        let text = gateway.response(bytes).await;
        assert!(text.as_str().unwrap().bytes().all(|byte| byte == b'x'));
        assert_eq!(text.as_str().unwrap().len() as u64, bytes);
    }
    assert!(!place.file("overflow").exists(), "a gateway that reads needs no file");
}

#[tokio::test]
async fn response_beyond_limit_is_an_error_and_later_messages_arrive() {
    let place = Place::new();
    let mut gateway = place.start_as(&PipeSpec { max_message_bytes: 1000, ..place.spec() }).await;
    gateway.request(1, "long", json!({"bytes": 5000})).await;
    gateway.request(2, "echo", json!("after")).await;
    let error = gateway.message().await;
    assert_eq!(error["id"], 1);
    let bytes = error["error"]["data"][outlive_jobs::MESSAGE_BYTES].as_u64();
    assert!(bytes.is_some_and(|bytes| bytes > 5000), "{error}");
    assert_eq!(gateway.message().await["id"], 2);
}

#[tokio::test]
async fn gateway_that_does_not_read_blocks_neither_process_nor_other_gateways() {
    let place = Place::new();
    let mut silent = place.start().await;
    silent.request(1, "log", json!({"lines": 200_000})).await;
    silent.request(2, "echo", json!("after")).await;
    let mut other = place.find().await;
    other.request(3, "echo", json!("other")).await;
    assert_eq!(other.response(3).await, "other");
    assert_eq!(silent.response(2).await, "after");
}

#[tokio::test]
async fn greeting_is_shown_to_next_gateway() {
    let place = Place::new();
    let gateway = place.start().await;
    assert!(gateway.pipe.hello().greeting.is_none());
    let text = r#"{"version":"2025-06-18"}"#.to_owned();
    gateway.sender.greet(&serde_json::value::RawValue::from_string(text.clone()).unwrap());
    let next = place.pipes.observe(ID).await.unwrap().unwrap();
    assert_eq!(next.hello().greeting.as_ref().unwrap().get(), text);
    assert_eq!(next.hello().gateways, 1);
}

#[tokio::test]
async fn missing_program_is_reported_with_remedy_and_leaves_no_folder() {
    let place = Place::new();
    let spec = PipeSpec::new(["no-such-program"]);
    let error = place.pipes.start(ID, &spec, &[]).await.unwrap_err();
    assert!(matches!(error, Error::NotStarted(_)), "{error:?}");
    assert!(error.to_string().contains("`no-such-program` not found"), "{error}");
    assert!(place.pipes.list().unwrap().is_empty());
}
