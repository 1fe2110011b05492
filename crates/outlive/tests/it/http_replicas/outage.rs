//! While the store is unavailable, replicas neither end nor deny sessions.

use serde_json::json;

use super::world::{Common, VERSION, open, ping};
use crate::support::http::Request;

#[tokio::test]
async fn store_outage_ends_no_session() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    common.store.switch(false);
    common.forget_what_was_confirmed();
    assert_eq!(ping(&first, &session).await, 200, "the session is known on this replica");
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
async fn handshake_during_store_outage_is_503() {
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
async fn delete_during_store_outage_is_503() {
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

/// State that could not be stored during the outage is stored afterwards.
#[tokio::test]
async fn log_level_set_during_outage_reaches_other_replicas_later() {
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
async fn input_response_during_store_outage_is_503_and_retryable() {
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
