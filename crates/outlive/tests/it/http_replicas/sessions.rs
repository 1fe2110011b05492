//! A session is opened on one replica, used on another, and ended everywhere.

use std::time::Duration;

use outlive::{
    server::{
        http::{HttpConfig, StaticTokens},
        tasks::TaskConfig,
    },
    store::StoreMonitor,
};
use serde_json::json;

use super::world::{ANNA, BERT, Common, IDLE, VERSION, open, ping};
use crate::support::{
    http::{HttpFixture, Request, Session},
    pipe::LEGACY,
};

#[tokio::test]
async fn a_session_that_was_opened_on_one_replica_is_used_on_another() {
    let common = Common::default();
    let (first, second) = common.two().await;
    for version in LEGACY {
        let session = first.session_as(version, Some(ANNA)).await;
        assert_eq!(second.send(session.call("whoami", json!({}))).await.text(), "anna");
        second.open(session.get()).await.cut();
        assert_eq!(first.send(session.call("echo", json!({"text": "x"}))).await.text(), "x");
        // What it agreed on came along.
        let other = session.request("ping").header("mcp-protocol-version", "2024-10-07");
        assert_eq!(second.send(other).await.status(), 400);
    }
    assert_eq!(second.serving.service().session_count(), LEGACY.len());
}

#[tokio::test]
async fn a_session_outlives_the_process_that_opened_it() {
    let common = Common::default();
    let first = common.replica().await;
    let (session, killed) = (first.session(VERSION).await, first.session(VERSION).await);
    first.serving.shutdown().await;
    drop(first.server);
    let second = common.replica().await;
    assert_eq!(ping(&second, &session).await, 200);
    drop(second);
    let third = common.replica().await;
    for session in [session, killed] {
        assert_eq!(ping(&third, &session).await, 200);
    }
}

#[tokio::test]
async fn a_foreign_session_answers_like_an_unknown_one_on_every_replica() {
    let common = Common::default();
    let (first, second) = common.two().await;
    let annas = first.session_as(VERSION, Some(ANNA)).await;
    let foreign = annas.with_token(BERT);
    let unknown = foreign.with_id("0123456789abcdef0123456789abcdef");
    let uses = |session: &Session| {
        [
            session.request("ping").id(1),
            session.call("echo", json!({"text": "x"})).id(1),
            session.notification("notifications/initialized", json!({})),
            session.reply(&json!({"id": 7}), json!({})),
            session.get(),
            session.delete(),
        ]
    };
    for server in [&first, &second] {
        for (theirs, nobodys) in uses(&foreign).iter().zip(uses(&unknown)) {
            let (theirs, nobodys) = (server.send(theirs).await, server.send(&nobodys).await);
            assert_eq!(theirs.without_date(), nobodys.without_date());
            assert_eq!(theirs.status(), 404);
        }
    }
    // And is as it was.
    for server in [&first, &second] {
        assert_eq!(ping(server, &annas).await, 200);
    }
}

#[tokio::test]
async fn a_session_that_is_ended_on_one_replica_ends_on_all_within_a_second() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let call = first.begin(session.call("wait", json!({"key": "w"}))).await;
    first.world.started("w").await;
    assert_eq!(second.send(session.delete()).await.status(), 204);
    assert_eq!(ping(&second, &session).await, 404);
    common.forget_what_was_confirmed();
    for request in [session.request("ping"), session.get(), session.delete()] {
        assert_eq!(first.send(request).await.status(), 404);
    }
    first.world.cancelled("w").await;
    first.world.told("session closed").await;
    drop(call);
    assert_eq!(ping(&common.replica().await, &session).await, 404);
}

/// Nothing is asked for, and yet it ends where something of it is open.
#[tokio::test]
async fn streams_of_a_session_that_was_ended_elsewhere_end() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let changes = first.open(session.get()).await;
    assert_eq!(second.send(session.delete()).await.status(), 204);
    common.advance(IDLE / 10);
    changes.ended().await;
    first.world.told("session closed").await;
}

#[tokio::test]
async fn what_one_replica_forgets_the_others_still_know() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    for _ in 0..5 {
        // Idle for too long on the first, and in use on the second.
        common.advance(IDLE * 9 / 10);
        assert_eq!(ping(&second, &session).await, 200);
    }
    first.world.told("session closed").await;
    assert_eq!(first.serving.service().session_count(), 0);
    assert_eq!(ping(&first, &session).await, 200);
    // Nobody uses it, and nobody knows it any more.
    common.advance(IDLE * 3);
    first.world.told("session closed").await;
    for server in [&first, &second, &common.replica().await] {
        assert_eq!(ping(server, &session).await, 404);
    }
}

/// A stream that is open keeps its session, though its client asks for nothing.
#[tokio::test]
async fn a_session_with_a_stream_is_kept() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let stream = first.open(session.get()).await;
    for _ in 0..40 {
        let before = common.store.asked();
        common.advance(IDLE / 10);
        // Until the sweep has looked.
        while common.store.asked() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(ping(&second, &session).await, 200);
    stream.cut();
}

#[tokio::test]
async fn there_are_no_more_sessions_than_there_may_be_wherever_they_come_from() {
    let common = Common::default();
    let (first, second) =
        (common.replica().await, common.replica_with(HttpConfig::new().max_sessions(1)).await);
    let (one, two) = (first.session(VERSION).await, first.session(VERSION).await);
    assert_eq!(ping(&second, &one).await, 200);
    assert_eq!(ping(&second, &two).await, 200);
    second.world.told("session closed").await;
    assert_eq!(second.serving.service().session_count(), 1);
    let stream = second.open(two.get()).await;
    assert_eq!(ping(&second, &one).await, 503, "the other one is in use");
    assert_eq!(ping(&first, &one).await, 200);
    stream.cut();
}

#[tokio::test]
async fn session_that_its_own_caller_replaced_is_gone_from_the_store() {
    let common = Common::default();
    let tokens = || StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let config = || HttpConfig::new().authenticator(tokens()).max_sessions_per_caller(1);
    let (first, second) =
        (common.replica_with(config()).await, common.replica_with(config()).await);
    let theirs = first.session_as(VERSION, Some(BERT)).await;
    let old = first.session_as(VERSION, Some(ANNA)).await;
    let new = first.session_as(VERSION, Some(ANNA)).await;
    for (session, status) in [(&old, 404), (&new, 200), (&theirs, 200)] {
        assert_eq!(ping(&first, session).await, status);
        assert_eq!(ping(&second, session).await, status);
    }
}

async fn levels(server: &HttpFixture, session: &Session) -> usize {
    let mut stream = server.open(session.call("log", json!({"key": "l"}))).await;
    server.world.release("l");
    let mut lines = 0;
    while stream.message().await.get("result").is_none() {
        lines += 1;
    }
    lines
}

#[tokio::test]
async fn what_a_session_was_told_is_known_everywhere() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let level = |level: &str| session.request("logging/setLevel").params(json!({"level": level}));
    assert_eq!(first.send(level("emergency")).await.result(), json!({}));
    assert_eq!(levels(&second, &session).await, 1, "it comes with the session");
    assert_eq!(second.send(level("debug")).await.result(), json!({}));
    assert_eq!(levels(&second, &session).await, 8);
    common.forget_what_was_confirmed();
    assert_eq!(levels(&first, &session).await, 8, "and to a session that was here before");
}

#[tokio::test]
async fn subscriptions_on_two_replicas_add_up() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let to = |what: &str, uri: &str| {
        session.request(&format!("resources/{what}")).params(json!({"uri": uri}))
    };
    // Both know the session already, and neither looks again so soon.
    assert_eq!(ping(&second, &session).await, 200);
    assert_eq!(first.send(to("subscribe", "mem://a")).await.result(), json!({}));
    assert_eq!(second.send(to("subscribe", "mem://b")).await.result(), json!({}));
    let third = common.replica().await;
    let mut changes = third.open(session.get()).await;
    for uri in ["mem://a", "mem://b"] {
        third.server.resource_updated(uri);
        assert_eq!(changes.message().await["params"]["uri"], uri);
    }
    assert_eq!(first.send(to("unsubscribe", "mem://a")).await.result(), json!({}));
    common.forget_what_was_confirmed();
    assert_eq!(ping(&third, &session).await, 200);
    third.server.resource_updated("mem://a");
    third.server.resource_updated("mem://b");
    assert_eq!(changes.message().await["params"]["uri"], "mem://b");
}

/// An event's id names its stream: on another replica it must not name another one.
#[tokio::test]
async fn an_event_of_one_replica_resumes_nothing_else_on_another() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let secret =
        |text: &str| session.call("echo", json!({"text": text})).accept("text/event-stream");
    let events = first.send(secret("one")).await.events().to_vec();
    second.send(secret("other")).await;
    let id = events[0].id.as_deref().unwrap();
    let again = first.send(session.resume(id)).await.messages();
    assert_eq!(again[0]["result"]["content"][0]["text"], "one");
    // A new stream of changes, as for one that was forgotten.
    let subscribe = session.request("resources/subscribe").params(json!({"uri": "mem://a"}));
    assert_eq!(second.send(subscribe).await.result(), json!({}));
    let mut stream = second.open(session.resume(id)).await;
    second.server.resource_updated("mem://a");
    assert_eq!(stream.message().await["params"]["uri"], "mem://a");
}

#[tokio::test]
async fn the_store_does_not_know_a_sessions_id() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = open(&first, None).await;
    assert_eq!(ping(&second, &session).await, 200);
    let set = session.request("logging/setLevel").params(json!({"level": "error"}));
    second.send(set).await;
    let id = session.first_request_id() + 7;
    second.send(session.reply(&json!({"id": id}), json!({}))).await;
    second.send(session.delete()).await;
    let written = common.store.written();
    for kind in ["session/", "session-ended/", "reply/"] {
        assert!(written.iter().any(|(key, _)| key.starts_with(kind)), "{kind}: {written:?}");
    }
    for (key, note) in written {
        assert!(!key.contains(&session.id) && !note.contains(&session.id), "{key}: {note}");
    }
}

#[tokio::test]
async fn the_store_is_asked_once_a_second_at_most() {
    let common = Common::default();
    let first = common.replica().await;
    let session = first.session(VERSION).await;
    let before = common.store.asked();
    for _ in 0..20 {
        assert_eq!(ping(&first, &session).await, 200);
    }
    assert_eq!(common.store.asked(), before);
    common.forget_what_was_confirmed();
    for _ in 0..20 {
        assert_eq!(ping(&first, &session).await, 200);
    }
    assert_eq!(common.store.asked(), before + 1);
    assert_eq!(ping(&first, &session.with_id("none of ours")).await, 404);
    assert_eq!(common.store.asked(), before + 1, "it cannot be one");
}

#[tokio::test]
async fn without_a_store_a_session_belongs_to_its_process() {
    let (first, second) = (HttpFixture::start().await, HttpFixture::start().await);
    assert!(first.server.endpoint().service().keeper().is_none());
    let session = first.session(VERSION).await;
    assert_eq!((ping(&first, &session).await, ping(&second, &session).await), (200, 404));
}

#[tokio::test]
async fn sessions_count_in_the_stored_bytes_of_their_caller() {
    let common = Common::default();
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let config = HttpConfig::new().authenticator(tokens);
    let limit = |tasks: TaskConfig| tasks.max_store_bytes_per_caller(8 << 10);
    let server = common.replica_of(config, limit).await;
    let session = open(&server, Some(ANNA)).await;
    let stored = common.store.stored_bytes("name:anna").await.unwrap();
    assert!(stored > 256, "{stored}");
    let hello = || Request::initialize(VERSION).bearer(ANNA);
    let refused = loop {
        let answer = server.send(hello()).await;
        if answer.status() != 200 {
            break answer;
        }
    };
    assert_eq!(refused.status(), 429);
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_store_bytes_per_caller`"), "{error}");
    let stored = common.store.stored_bytes("name:anna").await.unwrap();
    assert!(stored <= 8 << 10, "{stored}");
    // What is open goes on, and others notice nothing.
    common.advance(IDLE / 2);
    assert_eq!(ping(&server, &session).await, 200);
    open(&server, Some(BERT)).await;
}
