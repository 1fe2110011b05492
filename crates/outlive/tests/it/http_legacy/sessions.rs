//! Legacy sessions: opening, idle timeout, ending and limits.

use std::time::Duration;

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::json;

use crate::support::http::{HttpFixture, ManualClock, Request, Session};

const IDLE: Duration = Duration::from_secs(100);

async fn ping(server: &HttpFixture, session: &Session) -> u16 {
    server.send(session.request("ping")).await.status()
}

#[tokio::test]
async fn delete_ends_session_with_its_calls_and_streams() {
    // HTTP25-30, HTTP25-33, HTTP25-28
    let config = HttpConfig::new().stream_after(Duration::ZERO);
    let server = HttpFixture::with_clock(config, &ManualClock::new()).await;
    let session = server.session("2025-11-25").await;
    let other = server.session("2025-11-25").await;
    let changes = server.open(session.get()).await;
    let call = server.open(session.call("wait", json!({"key": "w"}))).await;
    let abandoned = server.begin(session.call("wait", json!({"key": "v"}))).await;
    server.world.started("v").await;
    drop(abandoned);

    let response = server.send(session.delete()).await;
    assert_eq!((response.status(), response.body.len()), (204, 0));
    server.world.told("session closed").await;
    server.world.cancelled("w").await;
    server.world.cancelled("v").await;
    call.ended().await;
    changes.ended().await;
    for request in [session.request("ping"), session.get(), session.delete()] {
        assert_eq!(server.send(request).await.status(), 404);
    }
    assert_eq!(ping(&server, &other).await, 200);
    assert_eq!(server.serving.service().session_count(), 1);
}

#[tokio::test]
async fn idle_session_ends_after_timeout() {
    let clock = ManualClock::new();
    let server =
        HttpFixture::with_clock(HttpConfig::new().session_idle_timeout(IDLE), &clock).await;
    let session = server.session("2025-11-25").await;
    clock.advance(IDLE / 2);
    assert_eq!(ping(&server, &session).await, 200);
    // The idle time counts from the last use.
    clock.advance(IDLE * 9 / 10);
    assert_eq!(ping(&server, &session).await, 200);
    clock.advance(IDLE * 2);
    server.world.told("session closed").await;
    assert_eq!(ping(&server, &session).await, 404);
}

#[tokio::test]
async fn session_with_call_or_stream_is_not_idle() {
    let clock = ManualClock::new();
    let server =
        HttpFixture::with_clock(HttpConfig::new().session_idle_timeout(IDLE), &clock).await;
    // A pending call, a call whose client disconnected, and a change stream.
    let waiting = server.session("2025-11-25").await;
    let call = waiting.call("wait", json!({"key": "a"}));
    let mut connection = server.begin(&call).await;
    let left = server.session("2025-11-25").await;
    let abandoned = server.begin(left.call("wait", json!({"key": "b"}))).await;
    let listening = server.session("2025-11-25").await;
    let stream = server.open(listening.get()).await;
    server.world.started("a").await;
    server.world.started("b").await;
    drop(abandoned);
    // Idle sessions are opened and closed in the meantime.
    for _ in 0..2 {
        server.session("2025-11-25").await;
        clock.advance(IDLE * 2);
        server.world.told("session closed").await;
    }
    assert_eq!(server.serving.service().session_count(), 3);
    assert!(!server.world.is_cancelled("a") && !server.world.is_cancelled("b"));
    server.world.release("a");
    assert_eq!(connection.response(&call).await.text(), "waited a");
    server.world.release("b");
    server.world.finished("b").await;
    stream.cut();
    // One round trip per session, so that the server has noticed. The sessions are idle from now
    // on.
    for session in [&waiting, &left, &listening] {
        assert_eq!(ping(&server, session).await, 200);
    }
    clock.advance(IDLE * 2);
    for _ in 0..3 {
        server.world.told("session closed").await;
    }
    for session in [waiting, left, listening] {
        assert_eq!(ping(&server, &session).await, 404);
    }
}

#[tokio::test]
async fn session_over_limit_ends_longest_idle_session() {
    // SEC-06
    let clock = ManualClock::new();
    let server = HttpFixture::with_clock(HttpConfig::new().max_sessions(2), &clock).await;
    let first = server.session("2025-11-25").await;
    let second = server.session("2025-11-25").await;
    clock.advance(Duration::from_secs(1));
    assert_eq!(ping(&server, &first).await, 200);
    let third = server.session("2025-11-25").await;
    server.world.told("session closed").await;
    assert_eq!(ping(&server, &second).await, 404);
    assert_eq!((ping(&server, &first).await, ping(&server, &third).await), (200, 200));
}

#[tokio::test]
async fn handshake_with_all_sessions_in_use_is_503() {
    // SEC-06
    let server = HttpFixture::with(HttpConfig::new().max_sessions(2)).await;
    let busy = server.session("2025-11-25").await;
    let call = busy.call("wait", json!({"key": "w"}));
    let mut connection = server.begin(&call).await;
    server.world.started("w").await;
    let listening = server.session("2025-11-25").await;
    let stream = server.open(listening.get()).await;
    let refused = server.send(Request::initialize("2025-11-25")).await;
    assert_eq!((refused.status(), refused.header("mcp-session-id")), (503, None));
    // Modern clients need no session.
    assert_eq!(server.send(Request::call("echo", json!({"text": "x"}))).await.text(), "x");
    server.world.release("w");
    assert_eq!(connection.response(&call).await.text(), "waited w");
    server.session("2025-11-25").await;
    assert_eq!(ping(&server, &busy).await, 404);
    stream.cut();
}

const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

fn two_callers() -> HttpConfig {
    HttpConfig::new().authenticator(StaticTokens::new().with("anna", ANNA).with("bert", BERT))
}

#[tokio::test]
async fn session_limit_of_caller_ends_only_its_own_sessions() {
    // SEC-06
    let clock = ManualClock::new();
    let config = two_callers().max_sessions_per_caller(2);
    let server = HttpFixture::with_clock(config, &clock).await;
    let theirs = server.session_as("2025-11-25", Some(BERT)).await;
    let mut own = Vec::new();
    for _ in 0..20 {
        clock.advance(Duration::from_secs(1));
        own.push(server.session_as("2025-11-25", Some(ANNA)).await);
    }
    assert_eq!(server.serving.service().session_count(), 3);
    assert_eq!(ping(&server, &theirs).await, 200);
    let (ended, open) = own.split_at(18);
    for (session, status) in
        ended.iter().map(|session| (session, 404)).chain(open.iter().map(|session| (session, 200)))
    {
        assert_eq!(ping(&server, session).await, status);
    }
}

#[tokio::test]
async fn handshake_with_all_caller_sessions_in_use_names_limit() {
    // SEC-06
    let server = HttpFixture::with(two_callers().max_sessions_per_caller(1)).await;
    let busy = server.session_as("2025-11-25", Some(ANNA)).await;
    let stream = server.open(busy.get()).await;
    let refused = server.send(Request::initialize("2025-11-25").bearer(ANNA)).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_sessions_per_caller`"), "{error}");
    server.session_as("2025-11-25", Some(BERT)).await;
    stream.cut();
}

#[tokio::test]
async fn full_server_ends_session_of_caller_with_most() {
    // SEC-06
    let clock = ManualClock::new();
    let server = HttpFixture::with_clock(two_callers().max_sessions(4), &clock).await;
    let honest = server.session_as("2025-11-25", Some(BERT)).await;
    for _ in 0..10 {
        clock.advance(Duration::from_secs(1));
        server.session_as("2025-11-25", Some(ANNA)).await;
    }
    assert_eq!(server.serving.service().session_count(), 4);
    assert_eq!(ping(&server, &honest).await, 200);
}

#[tokio::test]
async fn large_handshake_is_rejected_without_session() {
    // SEC-06
    let server = HttpFixture::start().await;
    let large = "x".repeat(20 << 10);
    let info = json!({"name": large, "version": "1"});
    let refused = server.send(Request::initialize("2025-11-25").param("clientInfo", info)).await;
    assert_eq!(refused.json()["error"]["code"], -32602);
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_handshake_bytes`"), "{error}");
    assert_eq!(
        (refused.header("mcp-session-id"), server.serving.service().session_count()),
        (None, 0)
    );
    // The server drops icons instead, because a client may declare any.
    let icons = json!([{"src": format!("data:image/png;base64,{large}")}]);
    let info = json!({"name": "old", "version": "1", "icons": icons});
    let taken = server.send(Request::initialize("2025-11-25").param("clientInfo", info)).await;
    assert_eq!(taken.status(), 200);
}

#[tokio::test]
async fn waiting_calls_are_limited_per_caller_across_sessions() {
    // SEC-06: calls whose client disconnected count too.
    let server = HttpFixture::with(two_callers().max_waiting_calls_per_caller(2)).await;
    let mut sessions = Vec::new();
    for key in ["a", "b", "c"] {
        let session = server.session_as("2025-11-25", Some(ANNA)).await;
        let call = session.call("wait", json!({"key": key}));
        if key == "c" {
            let error = server.send(&call).await.json()["error"].clone();
            assert_eq!(error["code"], 429);
            assert_eq!(error["data"]["limit"], "max_waiting_calls_per_caller");
        } else {
            drop(server.begin(&call).await);
            server.world.started(key).await;
        }
        sessions.push(session);
    }
    let modern = Request::call("wait", json!({"key": "m"}));
    assert_eq!(server.send(modern.clone().bearer(ANNA)).await.status(), 429);
    // Calls that do not wait succeed, and other callers are not affected.
    assert_eq!(ping(&server, &sessions[0]).await, 200);
    let theirs = modern.bearer(BERT);
    let mut connection = server.begin(&theirs).await;
    server.world.release("m");
    assert_eq!(connection.response(&theirs).await.text(), "waited m");
    for key in ["a", "b"] {
        server.world.release(key);
        server.world.finished(key).await;
    }
}

#[tokio::test]
async fn sessions_keep_separate_log_levels() {
    let server = HttpFixture::start().await;
    let quiet = server.session("2025-11-25").await;
    let loud = server.session("2025-11-25").await;
    for (session, level) in [(&quiet, "emergency"), (&loud, "debug")] {
        let set = session.request("logging/setLevel").params(json!({"level": level}));
        assert_eq!(server.send(set).await.result(), json!({}));
    }
    for (session, lines) in [(&quiet, 1), (&loud, 8)] {
        let mut stream = server.open(session.call("log", json!({"key": "l"}))).await;
        server.world.release("l");
        for _ in 0..lines {
            assert_eq!(stream.message().await["method"], "notifications/message");
        }
        assert!(stream.message().await.get("result").is_some());
    }
}

#[tokio::test]
async fn session_concurrency_limit_returns_429() {
    // SEC-06: calls whose client disconnected count too.
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.limits(|limits| limits.max_in_flight = 2)
    })
    .await;
    let session = server.session("2025-03-26").await;
    drop(server.begin(session.call("wait", json!({"key": "a"})).id(1)).await);
    let second = session.call("wait", json!({"key": "b"})).id(2);
    let mut connection = server.begin(&second).await;
    server.world.started("a").await;
    server.world.started("b").await;

    let third = session.call("wait", json!({"key": "c"})).id(3);
    let refused = server.send(&third).await;
    assert_eq!(refused.json()["error"]["code"], 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.world.cancelled("c").await;
    let batch: serde_json::Value = serde_json::from_slice(&third.body_bytes()).unwrap();
    let refused = server.send(session.batch([batch])).await;
    assert_eq!(refused.json()[0]["error"]["code"], 429);
    // Calls that do not wait succeed, and other sessions are not affected.
    assert_eq!(ping(&server, &session).await, 200);
    assert_eq!(server.send(session.call("echo", json!({"text": "x"}))).await.text(), "x");
    let other = server.session("2025-11-25").await;
    let call = other.call("wait", json!({"key": "o"}));
    let mut beside = server.begin(&call).await;
    server.world.started("o").await;
    server.world.release("o");
    assert_eq!(beside.response(&call).await.text(), "waited o");

    server.world.release("a");
    server.world.finished("a").await;
    server.world.release("c");
    assert_eq!(server.send(&third).await.text(), "waited c");
    server.world.release("b");
    assert_eq!(connection.response(&second).await.text(), "waited b");
}
