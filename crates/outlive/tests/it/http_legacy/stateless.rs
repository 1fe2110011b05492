//! Legacy clients without sessions: the server keeps nothing between their requests.

use outlive::server::http::HttpConfig;
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

async fn server() -> HttpFixture {
    HttpFixture::with(HttpConfig::new().sessions(false)).await
}

#[tokio::test]
async fn stateless_handshake_opens_no_session() {
    // HTTP25-32
    let server = server().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let hello = server.send(Request::initialize(version)).await;
        assert_eq!(hello.result()["protocolVersion"], version);
        assert_eq!(hello.header("mcp-session-id"), None);
        let ready = Request::sessionless(version, "notifications/initialized").without_member("id");
        assert_eq!(server.send(ready).await.status(), 202);
        let call = Request::sessionless(version, "tools/call")
            .params(json!({"name": "sum", "arguments": {"a": 1, "b": 2}}));
        let result = server.send(call).await.result();
        assert_eq!(result.get("structuredContent").is_some(), version >= "2025-06-18", "{version}");
        assert_eq!(result.get("resultType"), None);
    }
    assert_eq!(server.serving.service().session_count(), 0);
}

#[tokio::test]
async fn stateless_request_without_version_is_2025_03_26() {
    // HTTP25-35, HTTP26-43, C-10, C-26: including batches.
    let server = server().await;
    let call = Request::sessionless("2025-03-26", "tools/call")
        .without_header("mcp-protocol-version")
        .params(json!({"name": "sum", "arguments": {"a": 1, "b": 2}}));
    assert_eq!(server.send(call).await.result().get("structuredContent"), None);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let batch = Request::post("2025-03-26").json(json!([ping, ping.clone()]));
    assert_eq!(server.send(&batch).await.json().as_array().unwrap().len(), 2);
    for version in ["2025-11-25", "2025-06-18", "2026-07-28"] {
        let other = server.send(batch.clone().header("mcp-protocol-version", version)).await;
        assert_eq!(
            (other.status(), &other.json()["error"]["code"]),
            (400, &json!(-32600)),
            "{version}"
        );
    }
}

#[tokio::test]
async fn stateless_unknown_version_is_400() {
    // HTTP25-36
    let server = server().await;
    for version in ["1999-01-01", "banana", ""] {
        let request = Request::sessionless("2025-11-25", "tools/list")
            .header("mcp-protocol-version", version);
        let response = server.send(request.id(1)).await;
        assert_eq!((response.status(), &response.json()["id"]), (400, &json!(1)), "{version}");
    }
}

#[tokio::test]
async fn stateless_get_and_delete_are_405() {
    let server = server().await;
    for verb in ["GET", "DELETE"] {
        let request = Request::new(verb, "2025-11-25")
            .header("mcp-protocol-version", "2025-11-25")
            .accept("text/event-stream");
        let response = server.send(request).await;
        assert_eq!((response.status(), response.header("allow")), (405, Some("POST")));
    }
}

#[tokio::test]
async fn stateless_request_ignores_session_id() {
    let server = server().await;
    let request =
        Request::sessionless("2025-11-25", "ping").header("mcp-session-id", "from-another-replica");
    assert_eq!(server.send(request).await.result(), json!({}));
}

#[tokio::test]
async fn stateless_call_with_progress_is_stream_without_event_ids() {
    let server = server().await;
    let call = Request::sessionless("2025-11-25", "tools/call").params(
        json!({"name": "count", "arguments": {"key": "c", "to": 1}, "_meta": {"progressToken": 1}}),
    );
    let mut stream = server.open(call).await;
    let (event, message) = stream.said().await;
    assert_eq!((message["params"]["progress"].as_u64(), event.id), (Some(1), None));
    server.world.release("c");
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "counted 1");
    stream.ended().await;
}

#[tokio::test]
async fn stateless_close_stream_has_no_effect() {
    let server = server().await;
    let call = Request::sessionless("2025-11-25", "tools/call")
        .params(json!({"name": "leave", "arguments": {"key": "l"}}));
    let mut connection = server.begin(&call).await;
    server.world.started("l").await;
    server.world.release("l");
    let response = connection.response(&call).await;
    let answer = if response.is_stream() { response.messages().remove(0) } else { response.json() };
    assert_eq!(answer["result"]["content"][0]["text"], "left and came back");
}

#[tokio::test]
async fn stateless_server_serves_modern_requests() {
    let server = server().await;
    assert_eq!(server.send(Request::call("echo", json!({"text": "x"}))).await.text(), "x");
}
