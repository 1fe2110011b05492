//! Sessions opened on one replica, used on another, and ended on all.

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
async fn session_opened_on_one_replica_works_on_another() {
    let common = Common::default();
    let (first, second) = common.two().await;
    for version in LEGACY {
        let session = first.session_as(version, Some(ANNA)).await;
        assert_eq!(second.send(session.call("whoami", json!({}))).await.text(), "anna");
        second.open(session.get()).await.cut();
        assert_eq!(first.send(session.call("echo", json!({"text": "x"}))).await.text(), "x");
        // The second replica knows the version of the session.
        let other = session.request("ping").header("mcp-protocol-version", "2024-10-07");
        assert_eq!(second.send(other).await.status(), 400);
    }
    assert_eq!(second.serving.service().session_count(), LEGACY.len());
}

#[tokio::test]
async fn session_survives_shutdown_of_its_replica() {
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
async fn foreign_session_responds_like_unknown_on_every_replica() {
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
    // The attempts leave the session unchanged.
    for server in [&first, &second] {
        assert_eq!(ping(server, &annas).await, 200);
    }
}

#[tokio::test]
async fn session_deleted_on_one_replica_ends_on_all_within_one_second() {
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

/// Open streams end although the client sends no request to that replica.
#[tokio::test]
async fn streams_of_session_deleted_on_another_replica_end() {
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
async fn session_idle_on_one_replica_survives_on_others() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    for _ in 0..5 {
        // The session is idle too long on the first replica, but in use on the second.
        common.advance(IDLE * 9 / 10);
        assert_eq!(ping(&second, &session).await, 200);
    }
    first.world.told("session closed").await;
    assert_eq!(first.serving.service().session_count(), 0);
    assert_eq!(ping(&first, &session).await, 200);
    // The session expires on every replica when no client uses it.
    common.advance(IDLE * 3);
    first.world.told("session closed").await;
    for server in [&first, &second, &common.replica().await] {
        assert_eq!(ping(server, &session).await, 404);
    }
}

/// An open stream keeps its session although the client sends nothing.
#[tokio::test]
async fn session_with_open_stream_does_not_expire() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let stream = first.open(session.get()).await;
    for _ in 0..40 {
        let before = common.store.asked();
        common.advance(IDLE / 10);
        // Waits until the sweep has read the store.
        while common.store.asked() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(ping(&second, &session).await, 200);
    stream.cut();
}

#[tokio::test]
async fn session_limit_of_replica_counts_sessions_of_other_replicas() {
    let common = Common::default();
    let (first, second) =
        (common.replica().await, common.replica_with(HttpConfig::new().max_sessions(1)).await);
    let (one, two) = (first.session(VERSION).await, first.session(VERSION).await);
    assert_eq!(ping(&second, &one).await, 200);
    assert_eq!(ping(&second, &two).await, 200);
    second.world.told("session closed").await;
    assert_eq!(second.serving.service().session_count(), 1);
    let stream = second.open(two.get()).await;
    assert_eq!(ping(&second, &one).await, 503, "the other session is in use");
    assert_eq!(ping(&first, &one).await, 200);
    stream.cut();
}

#[tokio::test]
async fn session_replaced_by_its_caller_is_deleted_from_store() {
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
async fn log_level_of_session_is_shared_by_replicas() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let level = |level: &str| session.request("logging/setLevel").params(json!({"level": level}));
    assert_eq!(first.send(level("emergency")).await.result(), json!({}));
    assert_eq!(levels(&second, &session).await, 1, "the level is part of the session");
    assert_eq!(second.send(level("debug")).await.result(), json!({}));
    assert_eq!(levels(&second, &session).await, 8);
    common.forget_what_was_confirmed();
    assert_eq!(levels(&first, &session).await, 8, "the level reaches a known session too");
}

#[tokio::test]
async fn subscriptions_made_on_two_replicas_are_merged() {
    let common = Common::default();
    let (first, second) = (common.replica().await, common.replica().await);
    let session = first.session(VERSION).await;
    let to = |what: &str, uri: &str| {
        session.request(&format!("resources/{what}")).params(json!({"uri": uri}))
    };
    // Both replicas know the session and do not reload it within a second.
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

/// An event ID names a stream of its replica and must not match a stream of another replica.
#[tokio::test]
async fn event_id_of_one_replica_opens_new_stream_on_another() {
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
    // The second replica opens a new change stream, as for a stream that is no longer stored.
    let subscribe = session.request("resources/subscribe").params(json!({"uri": "mem://a"}));
    assert_eq!(second.send(subscribe).await.result(), json!({}));
    let mut stream = second.open(session.resume(id)).await;
    second.server.resource_updated("mem://a");
    assert_eq!(stream.message().await["params"]["uri"], "mem://a");
}

#[tokio::test]
async fn store_contains_no_session_id() {
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
async fn session_check_reads_store_at_most_once_per_second() {
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
    assert_eq!(ping(&first, &session.with_id("unknown session")).await, 404);
    assert_eq!(common.store.asked(), before + 1, "a malformed ID needs no lookup");
}

#[tokio::test]
async fn session_without_store_exists_only_in_its_process() {
    let (first, second) = (HttpFixture::start().await, HttpFixture::start().await);
    assert!(first.server.endpoint().service().session_store().is_none());
    let session = first.session(VERSION).await;
    assert_eq!((ping(&first, &session).await, ping(&second, &session).await), (200, 404));
}

#[tokio::test]
async fn sessions_count_toward_stored_bytes_of_caller() {
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
    // Open sessions keep working, and other callers are not affected.
    common.advance(IDLE / 2);
    assert_eq!(ping(&server, &session).await, 200);
    open(&server, Some(BERT)).await;
}
