//! Sessions: opening, idling, ending, and as many as there may be.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::http::HttpConfig;
use serde_json::json;

use crate::support::http::{Request, Session, TestServer, within};

/// What happened to sessions, in order.
type Story = Arc<Mutex<Vec<&'static str>>>;

async fn telling(config: HttpConfig) -> (TestServer, Story) {
    let story = Story::default();
    let (opened, closed) = (Arc::clone(&story), Arc::clone(&story));
    let server = TestServer::build(config, move |server| {
        server
            .on_session_open(move |_| opened.lock().unwrap().push("opened"))
            .on_session_close(move |_| closed.lock().unwrap().push("closed"))
    })
    .await;
    (server, story)
}

async fn ping(server: &TestServer, session: &Session) -> u16 {
    server.send(session.request("ping")).await.status()
}

/// Waits until the server has ended this many sessions by itself.
async fn closed(story: &Story, sessions: usize) {
    let count = || story.lock().unwrap().iter().filter(|what| **what == "closed").count();
    within(async {
        while count() < sessions {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn delete_ends_a_session_with_all_that_belongs_to_it() {
    // HTTP25-30, HTTP25-33, HTTP25-28
    let (server, story) = telling(HttpConfig::new().sse_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let other = server.session("2025-11-25").await;
    let changes = server.open(session.get()).await;
    let call = server.open(session.call("wait", json!({"key": "w"}))).await;
    let abandoned = server.begin(session.call("wait", json!({"key": "v"}))).await;
    server.world.started("v").await;
    drop(abandoned);

    let response = server.send(session.delete()).await;
    assert_eq!((response.status(), response.body.len()), (204, 0));
    server.world.cancelled("w").await;
    server.world.cancelled("v").await;
    call.ended().await;
    changes.ended().await;
    for request in [session.request("ping"), session.get(), session.delete()] {
        assert_eq!(server.send(request).await.status(), 404);
    }
    assert_eq!(ping(&server, &other).await, 200);
    assert_eq!(*story.lock().unwrap(), ["opened", "opened", "closed"]);
    assert_eq!(server.serving.service().sessions(), 1);
}

#[tokio::test]
async fn an_idle_session_ends() {
    let (server, story) = telling(HttpConfig::new().session_idle(Duration::from_millis(30))).await;
    let session = server.session("2025-11-25").await;
    closed(&story, 1).await;
    assert_eq!(ping(&server, &session).await, 404);
}

#[tokio::test]
async fn a_session_with_a_call_or_a_stream_is_not_idle() {
    let (server, story) = telling(HttpConfig::new().session_idle(Duration::from_millis(30))).await;
    // A call whose answer is pending, one whose client has gone, and a stream of changes.
    let waiting = server.session("2025-11-25").await;
    let mut connection = server.begin(waiting.call("wait", json!({"key": "a"}))).await;
    let left = server.session("2025-11-25").await;
    let abandoned = server.begin(left.call("wait", json!({"key": "b"}))).await;
    let listening = server.session("2025-11-25").await;
    let stream = server.open(listening.get()).await;
    server.world.started("a").await;
    server.world.started("b").await;
    drop(abandoned);
    // Two rounds of sessions that do nothing come and go meanwhile.
    for round in 1..=2 {
        server.session("2025-11-25").await;
        closed(&story, round).await;
    }
    assert!(!server.world.is_cancelled("a") && !server.world.is_cancelled("b"));
    server.world.release("a");
    let call = waiting.call("wait", json!({}));
    assert_eq!(connection.response(&call).await.text(), "waited a");
    server.world.release("b");
    server.world.finished("b").await;
    assert_eq!(ping(&server, &listening).await, 200);
    // When they have ended, so do the sessions.
    stream.cut();
    closed(&story, 5).await;
    for session in [waiting, left, listening] {
        assert_eq!(ping(&server, &session).await, 404);
    }
}

#[tokio::test]
async fn the_session_that_has_been_idle_for_longest_makes_room() {
    // SEC-06
    let (server, story) = telling(HttpConfig::new().max_sessions(2)).await;
    let first = server.session("2025-11-25").await;
    let second = server.session("2025-11-25").await;
    // Sessions are as old as their last use, counted in milliseconds.
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(ping(&server, &first).await, 200);
    let third = server.session("2025-11-25").await;
    assert_eq!(ping(&server, &second).await, 404);
    assert_eq!((ping(&server, &first).await, ping(&server, &third).await), (200, 200));
    assert_eq!(*story.lock().unwrap(), ["opened", "opened", "closed", "opened"]);
}

#[tokio::test]
async fn a_server_whose_sessions_are_all_in_use_takes_no_other() {
    // SEC-06
    let server = TestServer::with(HttpConfig::new().max_sessions(2)).await;
    let busy = server.session("2025-11-25").await;
    let call = busy.call("wait", json!({"key": "w"}));
    let mut connection = server.begin(&call).await;
    server.world.started("w").await;
    let listening = server.session("2025-11-25").await;
    let stream = server.open(listening.get()).await;
    let refused = server.send(Request::initialize("2025-11-25")).await;
    assert_eq!((refused.status(), refused.header("mcp-session-id")), (503, None));
    // Modern clients need none.
    assert_eq!(server.send(Request::call("echo", json!({"text": "x"}))).await.text(), "x");
    server.world.release("w");
    assert_eq!(connection.response(&call).await.text(), "waited w");
    server.session("2025-11-25").await;
    assert_eq!(ping(&server, &busy).await, 404);
    stream.cut();
}

#[tokio::test]
async fn sessions_do_not_share_what_they_remember() {
    let server = TestServer::start().await;
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
