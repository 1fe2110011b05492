//! A client's answers come to any replica, and find the one that has asked.

use serde_json::{Value, json};

use super::world::{Common, VERSION, open};
use crate::{
    questions::dialogue::logged,
    support::http::{HttpFixture, Session, Stream},
};

fn accept(yes: bool) -> Value {
    json!({"action": "accept", "content": {"yes": yes}})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

async fn answer(server: &HttpFixture, session: &Session, asked: &Value, answer: Value) {
    let response = server.send(session.reply(asked, answer)).await;
    assert_eq!((response.status(), response.body.len()), (202, 0), "{response:?}");
}

/// Begins a task, and waits for its question on the stream of its result.
async fn question_of_a_task(server: &HttpFixture, session: &Session) -> (Stream, Value) {
    let call = json!({"name": "deploy", "arguments": {}, "task": {"ttl": 60_000}});
    let created = server.send(session.request("tools/call").params(call)).await.result();
    let wanted = json!({"taskId": created["task"]["taskId"]});
    let mut stream = server.open(session.request("tasks/result").params(wanted)).await;
    let asked = stream.message().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    (stream, asked)
}

#[tokio::test]
async fn a_call_is_answered_through_another_replica() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    for yes in [true, false] {
        let mut stream = first.open(session.call("form", json!({}))).await;
        let asked = stream.message().await;
        assert!(asked["id"].as_u64().unwrap() < 1 << 49, "every client can read it: {asked}");
        answer(&second, &session, &asked, accept(yes)).await;
        assert_eq!(text(&stream.message().await), format!("form {yes}"));
    }
}

#[tokio::test]
async fn a_task_is_answered_through_another_replica() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    let (mut stream, asked) = question_of_a_task(&first, &session).await;
    answer(&second, &session, &asked, accept(true)).await;
    let mut last = stream.message().await;
    while last["method"] == "notifications/tasks/status" {
        last = stream.message().await;
    }
    assert_eq!(text(&last), "form true");
}

#[tokio::test]
async fn what_is_asked_on_two_replicas_at_once_is_not_mixed_up() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    let mut one = first.open(session.call("form", json!({}))).await;
    let mut two = second.open(session.call("form", json!({}))).await;
    let (asked_one, asked_two) = (one.message().await, two.message().await);
    assert_ne!(asked_one["id"], asked_two["id"]);
    answer(&first, &session, &asked_two, accept(true)).await;
    answer(&second, &session, &asked_one, accept(false)).await;
    assert_eq!(text(&one.message().await), "form false");
    assert_eq!(text(&two.message().await), "form true");
}

#[tokio::test]
async fn the_first_answer_counts_and_a_refusal_is_one() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    let mut stream = first.open(session.call("form", json!({}))).await;
    let asked = stream.message().await;
    let refusal = json!({"code": -1, "message": "nobody is here"});
    let refused =
        session.reply(&asked, json!({})).without_member("result").member("error", refusal);
    assert_eq!(second.send(refused).await.status(), 202);
    answer(&second, &session, &asked, accept(true)).await;
    let failed = stream.message().await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
}

/// In its own session only, whoever answers.
#[tokio::test]
async fn a_session_answers_nothing_that_another_was_asked() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let (session, other) = (open(&first, None).await, open(&second, None).await);
    let mut stream = first.open(session.call("form", json!({}))).await;
    let asked = stream.message().await;
    answer(&first, &other, &asked, accept(false)).await;
    answer(&second, &other, &asked, accept(false)).await;
    answer(&second, &session, &asked, accept(true)).await;
    assert_eq!(text(&stream.message().await), "form true");
}

#[tokio::test]
async fn a_client_that_makes_up_answers_is_slowed_down() {
    let common = Common::default();
    let first = common.replica().await;
    let session = first.session(VERSION).await;
    let mut connection = first.connect().await;
    let range = session.first_request_id();
    for id in 1..=100 {
        let made_up = session.reply(&json!({"id": range + id}), json!({}));
        assert_eq!(connection.send(&made_up).await.status(), 202);
    }
    let made_up = session.reply(&json!({"id": range + 101}), json!({}));
    let refused = connection.send(&made_up).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
}

#[tokio::test]
async fn refused_responses_are_logged_once_a_minute() {
    let common = Common::default();
    let first = common.replica().await;
    let session = first.session(VERSION).await;
    let mut connection = first.connect().await;
    let range = session.first_request_id();
    let (log, _guard) = logged();
    let mut refused = 0;
    for id in 1..=200 {
        let made_up = session.reply(&json!({"id": range + id}), json!({}));
        refused += u32::from(connection.send(&made_up).await.status() == 429);
    }
    assert!(refused > 50, "{refused}");
    let log = log.take();
    let warnings: Vec<_> =
        log.iter().filter(|line| line.contains("forwarding a response")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test]
async fn response_outside_of_the_range_of_its_session_is_not_stored() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let range = session.first_request_id();
    for id in [1, range + (1 << 32), range ^ (1 << 40)] {
        let made_up = session.reply(&json!({"id": id}), json!({}));
        assert_eq!(second.send(made_up).await.status(), 202);
    }
    let written = common.store.written();
    assert!(!written.iter().any(|(key, _)| key.starts_with("reply/")), "{written:?}");
}

#[tokio::test]
async fn response_that_is_too_large_is_not_stored_for_another_replica() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let id = session.first_request_id() + 1;
    let large = session.reply(&json!({"id": id}), json!({"text": "x".repeat(65 << 10)}));
    assert_ne!(second.send(large).await.status(), 202);
    let written = common.store.written();
    assert!(!written.iter().any(|(key, _)| key.starts_with("reply/")), "{written:?}");
}

/// Answers in a batch, which only 2025-03-26 has.
#[tokio::test]
async fn an_answer_in_a_batch_is_handed_on() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session("2025-03-26").await;
    let id = session.first_request_id() + 7;
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    assert_eq!(second.send(session.batch([reply])).await.status(), 202);
    let written = common.store.written();
    assert!(written.iter().any(|(key, _)| key.ends_with(&format!("/{id}"))), "{written:?}");
}
