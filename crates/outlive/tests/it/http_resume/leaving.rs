//! `close_stream`: the server closes the connection and tells the client when to reconnect.

use serde_json::json;

use crate::support::http::HttpFixture;

#[tokio::test]
async fn client_reconnecting_after_close_stream_gets_response() {
    // HTTP25-12
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.call("leave", json!({"key": "l"})).id(1)).await;
    let first = stream.event().await.unwrap();
    assert!(first.id.is_some() && first.data.is_empty() && first.retry.is_none(), "{first:?}");
    let bye = stream.event().await.unwrap();
    assert_eq!((bye.retry, bye.data.as_str()), (Some(50), ""));
    // The connection ends cleanly; the call keeps running.
    assert_eq!(stream.event().await, None);
    assert!(!server.world.is_cancelled("l"));

    let mut resumed = server.open(session.resume(&bye.id.unwrap())).await;
    server.world.release("l");
    let answer = resumed.message().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(1), &json!("left and came back"))
    );
    resumed.ended().await;
}

#[tokio::test]
async fn client_reconnecting_late_gets_stored_response() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let response = server.send(session.call("leave", json!({"key": "l"})).id(1)).await;
    assert_eq!(response.messages().len(), 0);
    let last = response.events().last().unwrap().id.clone().unwrap();
    server.world.release("l");
    server.world.finished("l").await;
    let messages = server.send(session.resume(&last)).await.messages();
    assert_eq!(messages[0]["result"]["content"][0]["text"], "left and came back");
}

#[tokio::test]
async fn close_stream_before_2025_11_25_has_no_effect() {
    // HTTP25-07, HTTP25-11: these clients expect the response before the end, and no event without
    // data.
    let server = HttpFixture::start().await;
    for version in ["2025-06-18", "2025-03-26"] {
        let session = server.session(version).await;
        let call = session.call("leave", json!({"key": "l"})).id(1).accept("text/event-stream");
        let mut connection = server.begin(&call).await;
        server.world.started("l").await;
        server.world.release("l");
        let response = connection.response(&call).await;
        assert!(
            response.events().iter().all(|event| !event.data.is_empty()),
            "{version}: {response:?}"
        );
        assert_eq!(response.messages()[0]["result"]["content"][0]["text"], "left and came back");
    }
}
