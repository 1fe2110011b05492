//! Two connections for one stream: the newer one gets the events, the older one ends.

use serde_json::json;

use crate::support::http::{HttpFixture, Request, Session};

fn count(session: &Session, to: u32) -> Request {
    session.call("count", json!({"key": "c", "to": to})).meta("progressToken", json!(1))
}

#[tokio::test]
async fn resume_during_open_connection_moves_stream() {
    // HTTP25-09: no message goes to both.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut first = server.open(count(&session, 3)).await;
    let (event, _) = first.said().await;
    let mut second = server.open(session.resume(&event.id.unwrap())).await;
    first.ended().await;
    for step in 2..=3 {
        server.world.release("c");
        assert_eq!(second.message().await["params"]["progress"], step);
    }
    server.world.release("c");
    assert_eq!(second.message().await["result"]["content"][0]["text"], "counted 3");
    second.ended().await;
}

#[tokio::test]
async fn resumed_stream_is_taken_over_by_newer_connection() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut post = server.open(count(&session, 4)).await;
    let id = post.said().await.0.id.unwrap();
    post.cut();
    let mut first = server.open(session.resume(&id)).await;
    server.world.release("c");
    let (event, message) = first.said().await;
    assert_eq!(message["params"]["progress"], 2);
    let mut second = server.open(session.resume(&event.id.unwrap())).await;
    first.ended().await;
    // A third connection replays the earlier events and continues.
    server.world.release("c");
    assert_eq!(second.message().await["params"]["progress"], 3);
    let mut third = server.open(session.resume(&id)).await;
    second.ended().await;
    for step in 2..=3 {
        assert_eq!(third.message().await["params"]["progress"], step);
    }
    server.world.release("c");
    assert_eq!(third.message().await["params"]["progress"], 4);
    server.world.release("c");
    assert_eq!(third.message().await["result"]["content"][0]["text"], "counted 4");
    third.ended().await;
}

#[tokio::test]
async fn get_stream_is_taken_over_by_newer_connection() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut first = server.open(session.get()).await;
    let id = first.event().await.unwrap().id.unwrap();
    let mut second = server.open(session.resume(&id)).await;
    first.ended().await;
    server.server.remove_tool("echo");
    assert_eq!(second.message().await["method"], "notifications/tools/list_changed");
}
