//! Processes that break the protocol: the call fails with the cause, and no other call is affected.

use serde_json::json;

use crate::support::{Place, Served, pid, text_of};

/// Calls the hostile tool, and checks its text. The process must survive.
async fn check(kind: &str, expected: &str) {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let before = pid(&mut client).await;
    let result = client.call("hostile", json!({"kind": kind})).await;
    let text = text_of(&result);
    assert!(text.contains(expected), "{kind}: {text}");
    assert_eq!(pid(&mut client).await, before, "{kind}");
    assert_eq!(text_of(&client.call("greet", json!({})).await), "hello you", "{kind}");
}

#[tokio::test]
async fn printed_result_without_nonce_is_output() {
    check("print", "true").await;
}

#[tokio::test]
async fn incomplete_line_is_output() {
    check("half", "true").await;
}

#[tokio::test]
async fn messages_of_wrong_calls_and_keys_are_ignored() {
    check("wrong", "true").await;
}

#[tokio::test]
async fn invalid_message_fails_its_call() {
    check("invalid", "invalid message").await;
}

#[tokio::test]
async fn line_above_limit_fails_its_call_and_names_the_message() {
    check("long", "`return` message of more than 4 MiB").await;
}

#[tokio::test]
async fn flood_of_status_messages_is_bounded() {
    check("flood", "true").await;
}

#[tokio::test]
async fn open_steps_above_limit_are_rejected() {
    check("steps", "976 {'too_many'}").await;
}

#[tokio::test]
async fn segments_too_far_ahead_fail_the_call() {
    check("ahead", "segments ahead").await;
}

#[tokio::test]
async fn value_above_limit_is_rejected() {
    check("large", "too_large").await;
}

#[tokio::test]
async fn invalid_keys_are_rejected() {
    check("keys", "invalid invalid invalid invalid").await;
}

#[tokio::test]
async fn output_on_standard_error_is_logged() {
    check("output", "true").await;
}
