//! A store that cannot be asked says nothing about any session.

use serde_json::json;

use super::world::{Common, VERSION, open, ping};
use crate::support::http::Request;

#[tokio::test]
async fn an_outage_ends_no_session() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    common.store.switch(false);
    common.forget_what_was_confirmed();
    assert_eq!(ping(&first, &session).await, 200, "it is known here");
    for request in [
        session.request("ping"),
        session.notification("notifications/initialized", json!({})),
        session.get(),
        session.delete(),
        session.with_id("0123456789abcdef0123456789abcdef").request("ping"),
    ] {
        let response = second.send(request).await;
        assert_eq!((response.status(), response.header("retry-after")), (503, Some("1")));
    }
    common.store.switch(true);
    assert_eq!(ping(&second, &session).await, 200);
}

#[tokio::test]
async fn no_id_leaves_that_the_store_does_not_have() {
    let common = Common::default();
    let first = common.replica().await;
    common.store.switch(false);
    let refused = first.send(Request::initialize(VERSION)).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.header("mcp-session-id"), None);
    assert_eq!(first.serving.service().session_count(), 0);
    common.store.switch(true);
    first.session(VERSION).await;
}

#[tokio::test]
async fn a_session_is_not_said_to_be_ended_before_it_is() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    common.store.switch(false);
    assert_eq!(first.send(session.delete()).await.status(), 503);
    common.store.switch(true);
    assert_eq!(ping(&second, &session).await, 200);
    assert_eq!(first.send(session.delete()).await.status(), 204);
    common.forget_what_was_confirmed();
    assert_eq!(ping(&second, &session).await, 404);
}

/// What could not be told to the others is told when it can be.
#[tokio::test]
async fn what_a_session_was_told_meanwhile_is_made_known_later() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    common.store.switch(false);
    let set = session.request("logging/setLevel").params(json!({"level": "emergency"}));
    assert_eq!(first.send(set).await.result(), json!({}));
    common.store.switch(true);
    common.forget_what_was_confirmed();
    assert_eq!(ping(&first, &session).await, 200);
    let mut stream = second.open(session.call("log", json!({"key": "l"}))).await;
    second.world.release("l");
    assert_eq!(stream.message().await["params"]["level"], "emergency");
    assert!(stream.message().await.get("result").is_some());
}

#[tokio::test]
async fn an_answer_that_cannot_be_handed_on_is_not_taken() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    assert_eq!(ping(&second, &session).await, 200);
    let mut stream = first.open(session.call("form", json!({}))).await;
    let asked = stream.message().await;
    let answer = json!({"action": "accept", "content": {"yes": true}});
    let reply = session.reply(&asked, answer);
    common.store.switch(false);
    assert_eq!(second.send(&reply).await.status(), 503);
    common.store.switch(true);
    assert_eq!(second.send(&reply).await.status(), 202);
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "form true");
}
