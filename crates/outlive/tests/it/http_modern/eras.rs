//! Detection of the era of a request: one path serves both eras.

use serde_json::json;

use crate::support::http::{HttpFixture, MODERN, Request, Response};

/// Returns the status and the error code of a response.
#[track_caller]
fn code(response: &Response) -> (u16, i64) {
    (response.status(), response.json()["error"]["code"].as_i64().expect("an error"))
}

#[tokio::test]
async fn request_with_modern_meta_is_modern_despite_session_header() {
    // VER-28, VER-29, VER-37
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut connection = server.connect().await;
    for _ in 0..2 {
        let modern = Request::modern("tools/list").header("mcp-session-id", &session.id);
        assert_eq!(connection.send(&modern).await.result()["resultType"], "complete");
        let legacy = connection.send(&session.request("tools/list")).await.result();
        for member in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert_eq!(legacy.get(member), None, "{member} in a legacy result");
        }
    }
}

#[tokio::test]
async fn request_with_one_modern_meta_key_is_modern() {
    // VER-31: the modern rules then report the missing part.
    let server = HttpFixture::start().await;
    let list = Request::modern("tools/list");
    let no_headers =
        list.clone().without_header("mcp-protocol-version").without_header("mcp-method");
    let rows = [
        (no_headers.clone().without_reserved("clientCapabilities"), -32020),
        (no_headers.clone().without_reserved("protocolVersion"), -32020),
        (list.clone().header("mcp-protocol-version", "2025-11-25"), -32020),
        (
            list.without_reserved("protocolVersion").header("mcp-protocol-version", "2025-11-25"),
            -32602,
        ),
        // HTTP26-44, C-10: a missing header does not imply 2025-03-26 here.
        (no_headers, -32020),
    ];
    for (request, expected) in rows {
        assert_eq!(code(&server.send(&request).await), (400, expected));
    }
}

#[tokio::test]
async fn request_with_modern_headers_only_is_modern() {
    // VER-31
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let bare = Request::modern("tools/list").params(json!({}));
    for version in [MODERN, "2026-07-29", "2031-01-01"] {
        let request = bare.clone().header("mcp-protocol-version", version);
        assert_eq!(code(&server.send(&request).await), (400, -32602), "{version}");
        let beside = request.header("mcp-session-id", &session.id);
        assert_eq!(code(&server.send(&beside).await), (400, -32602), "{version}");
    }
    let method_only = bare.without_header("mcp-protocol-version");
    assert_eq!(code(&server.send(&method_only).await), (400, -32020));
}

#[tokio::test]
async fn handshake_with_modern_headers_is_legacy() {
    // VER-31, C-09
    let server = HttpFixture::start().await;
    let hello = Request::initialize("2025-11-25");
    let rows = [
        hello.clone().header("mcp-protocol-version", MODERN).header("mcp-method", "initialize"),
        hello.clone().header("mcp-method", "something else"),
        hello.clone().header("mcp-protocol-version", "banana"),
        hello.clone().header("mcp-session-id", "unknown"),
        hello.param("_meta", json!({"progressToken": 1, "example.com/own": true})),
    ];
    for request in rows {
        let response = server.send(&request).await;
        assert_eq!(response.result()["protocolVersion"], "2025-11-25");
        assert!(response.header("mcp-session-id").is_some());
    }
}

#[tokio::test]
async fn legacy_request_with_wrong_mirrored_headers_is_accepted() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let call = session
        .call("echo", json!({"text": "x"}))
        .header("mcp-method", "nonsense")
        .header("mcp-name", "nonsense")
        .header("mcp-param-zone", "nonsense");
    assert_eq!(server.send(&call).await.text(), "x");
    let place = session.call("place", json!({"zone": "north"}));
    assert_eq!(server.send(&place).await.text(), "placed");
}

#[tokio::test]
async fn request_id_in_use_by_session_is_free_for_modern_request() {
    // HTTP26-12, RPC-03: the request is not part of the session.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let waiting = session.call("wait", json!({"key": "w"})).id(1);
    let mut legacy = server.begin(&waiting).await;
    server.world.started("w").await;
    let modern =
        Request::call("echo", json!({"text": "free"})).id(1).header("mcp-session-id", &session.id);
    assert_eq!(server.send(&modern).await.text(), "free");
    server.world.release("w");
    assert_eq!(legacy.response(&waiting).await.text(), "waited w");
}

#[tokio::test]
async fn concurrent_modern_requests_may_share_request_id() {
    // The requests are independent: the server cannot know that they have the same sender.
    let server = HttpFixture::start().await;
    let calls = ["a", "b"].map(|key| Request::call("wait", json!({"key": key})).id(1));
    let mut first = server.begin(&calls[0]).await;
    let mut second = server.begin(&calls[1]).await;
    for key in ["a", "b"] {
        server.world.started(key).await;
    }
    server.world.release("b");
    assert_eq!(second.response(&calls[1]).await.text(), "waited b");
    server.world.release("a");
    assert_eq!(first.response(&calls[0]).await.text(), "waited a");
}

#[tokio::test]
async fn session_log_level_does_not_affect_modern_requests() {
    // C-08, C-13
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let set = session.request("logging/setLevel").params(json!({"level": "debug"}));
    assert_eq!(server.send(&set).await.result(), json!({}));
    let call = Request::call("log", json!({"key": "l"})).header("mcp-session-id", &session.id);
    let mut connection = server.begin(&call).await;
    server.world.started("l").await;
    server.world.release("l");
    assert_eq!(connection.response(&call).await.text(), "logged", "JSON: no log message was sent");
}

#[tokio::test]
async fn unknown_resource_has_error_code_of_its_era() {
    // C-05, RPC-20
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let modern = server.send(Request::modern("resources/read").uri("mem://x")).await;
    let legacy =
        server.send(session.request("resources/read").params(json!({"uri": "mem://x"}))).await;
    assert_eq!((code(&modern), code(&legacy)), ((200, -32602), (200, -32002)));
}
