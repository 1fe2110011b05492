//! An input response may reach any replica; it is forwarded to the replica that sent the input
//! request.

use serde_json::{Value, json};

use super::world::{Common, VERSION, open};
use crate::{
    input::dialogue::logged,
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

/// Starts a task and waits for its input request on the stream of `tasks/result`.
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
async fn input_response_for_call_is_forwarded_by_another_replica() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    for yes in [true, false] {
        let mut stream = first.open(session.call("form", json!({}))).await;
        let asked = stream.message().await;
        assert!(
            asked["id"].as_u64().unwrap() < 1 << 49,
            "the ID fits into every client's number type: {asked}"
        );
        answer(&second, &session, &asked, accept(yes)).await;
        assert_eq!(text(&stream.message().await), format!("form {yes}"));
    }
}

#[tokio::test]
async fn input_response_for_task_is_forwarded_by_another_replica() {
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
async fn input_requests_of_two_replicas_get_their_own_responses() {
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
async fn first_input_response_wins_even_if_it_is_an_error() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    let mut stream = first.open(session.call("form", json!({}))).await;
    let asked = stream.message().await;
    let refusal = json!({"code": -1, "message": "no user is present"});
    let refused =
        session.reply(&asked, json!({})).without_member("result").member("error", refusal);
    assert_eq!(second.send(refused).await.status(), 202);
    answer(&second, &session, &asked, accept(true)).await;
    let failed = stream.message().await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
}

/// A response counts only in the session that got the request.
#[tokio::test]
async fn input_response_from_another_session_is_ignored() {
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
async fn client_sending_unsolicited_responses_is_rate_limited() {
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
async fn rejected_responses_are_logged_once_per_minute() {
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
async fn response_with_id_outside_session_range_is_not_stored() {
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
async fn oversized_response_is_not_stored_for_another_replica() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let id = session.first_request_id() + 1;
    let large = session.reply(&json!({"id": id}), json!({"text": "x".repeat(65 << 10)}));
    assert_ne!(second.send(large).await.status(), 202);
    let written = common.store.written();
    assert!(!written.iter().any(|(key, _)| key.starts_with("reply/")), "{written:?}");
}

/// Only 2025-03-26 allows responses in a batch.
#[tokio::test]
async fn input_response_in_batch_is_forwarded() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session("2025-03-26").await;
    let id = session.first_request_id() + 7;
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    assert_eq!(second.send(session.batch([reply])).await.status(), 202);
    let written = common.store.written();
    assert!(written.iter().any(|(key, _)| key.ends_with(&format!("/{id}"))), "{written:?}");
}
