//! Rejections under the rules of the legacy versions: one test per case.

use outlive::server::{Server, Tool, http::HttpConfig};
use serde_json::{Value, json};

use super::{refused, refused_with};
use crate::support::http::{HttpFixture, Request, Session};

const HTTP_REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Returns a server with one session of each version that has Streamable HTTP.
async fn sessions() -> (HttpFixture, Vec<Session>) {
    let server = HttpFixture::start().await;
    let mut sessions = Vec::new();
    for version in HTTP_REVISIONS {
        sessions.push(server.session(version).await);
    }
    (server, sessions)
}

#[tokio::test]
async fn unknown_legacy_method_is_error_with_status_200() {
    let (server, sessions) = sessions().await;
    for session in sessions {
        for method in ["tools/destroy", "server/discover", "subscriptions/listen"] {
            // VER-32: methods that exist only in 2026-07-28 are unknown here.
            let response = server.send(session.request(method).id(1)).await;
            refused_with(&response, 200, -32601, 1, method);
        }
    }
}

#[tokio::test]
async fn legacy_method_without_capability_is_method_not_found() {
    // RPC-16
    let tools_only =
        Server::builder("bare", "1").tool(Tool::new("t", async || "t")).build().unwrap();
    let server = HttpFixture::of(tools_only, HttpConfig::new()).await;
    let session = server.session("2025-11-25").await;
    for method in ["prompts/list", "resources/list", "completion/complete", "logging/setLevel"] {
        let request = session.request(method).params(json!({"level": "info"})).id(4);
        refused(&server.send(&request).await, 200, -32601, 4);
    }
}

#[tokio::test]
async fn invalid_version_header_is_400() {
    // HTTP25-36: on requests, notifications, GET and DELETE alike.
    let (server, sessions) = sessions().await;
    for session in &sessions {
        for version in ["1999-01-01", "banana", "", "2025-11-25, 2025-11-25"] {
            let request =
                session.request("tools/list").id(1).header("mcp-protocol-version", version);
            refused(&server.send(&request).await, 400, -32600, 1);
            for request in [
                session.notification("notifications/whatever", json!({})),
                session.get(),
                session.delete(),
            ] {
                let response = server.send(request.header("mcp-protocol-version", version)).await;
                refused(&response, 400, -32600, Value::Null);
            }
        }
    }
    for session in &sessions {
        assert_eq!(
            server.send(session.request("ping")).await.status(),
            200,
            "the session still works"
        );
    }
}

#[tokio::test]
async fn version_header_of_another_served_version_keeps_session_version() {
    // HTTP25-37: the session keeps its version.
    let (server, sessions) = sessions().await;
    for session in &sessions {
        for version in HTTP_REVISIONS.into_iter().filter(|version| *version != session.version) {
            let other = |request: Request| request.header("mcp-protocol-version", version);
            let sum = other(session.call("sum", json!({"a": 1, "b": 2})));
            let structured = server.send(&sum).await.result().get("structuredContent").is_some();
            assert_eq!(structured, *session.version >= *"2025-06-18", "{version}");
            let note = session.notification("notifications/whatever", json!({}));
            assert_eq!(server.send(other(note)).await.status(), 202);
            server.open(other(session.get())).await.cut();
        }
    }
}

#[tokio::test]
async fn duplicate_version_header_is_400() {
    let (server, sessions) = sessions().await;
    for session in &sessions {
        let twice = |request: Request| request.add_header("mcp-protocol-version", &session.version);
        let response = server.send(twice(session.request("tools/list").id(1))).await;
        refused_with(&response, 400, -32600, 1, "more than once");
        let note = session.notification("notifications/whatever", json!({}));
        for request in [note, session.get(), session.delete()] {
            refused(&server.send(twice(request)).await, 400, -32600, Value::Null);
        }
    }
}

#[tokio::test]
async fn handshake_with_unknown_version_offers_newest_legacy_version() {
    // VER-18, VER-25, VER-26: a result, not an error, and never a modern version.
    let server = HttpFixture::start().await;
    for version in ["2026-07-28", "2031-01-01", "1.0", ""] {
        let response = server.send(Request::initialize(version)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.result()["protocolVersion"], "2025-11-25", "{version}");
        assert!(response.header("mcp-session-id").is_some());
    }
}

#[tokio::test]
async fn malformed_handshake_is_rejected_without_session() {
    let server = HttpFixture::start().await;
    for params in
        [json!({}), json!({"protocolVersion": 5}), json!({"protocolVersion": null}), json!([])]
    {
        let response = server.send(Request::initialize("2025-11-25").params(params).id(0)).await;
        refused(&response, 400, -32602, 0);
        assert_eq!(response.header("mcp-session-id"), None);
    }
    let response =
        server.send(Request::initialize("2025-11-25").without_member("params").id(0)).await;
    refused(&response, 400, -32602, 0);
    assert_eq!(server.serving.service().session_count(), 0);
}

#[tokio::test]
async fn missing_capability_in_legacy_call_is_invalid_params() {
    let (server, sessions) = sessions().await;
    for session in sessions {
        let response = server.send(session.call("sample", json!({})).id(1)).await;
        refused_with(&response, 200, -32602, 1, "sampling");
    }
}

#[tokio::test]
async fn legacy_unknown_tool_is_protocol_error_and_bad_arguments_are_tool_error() {
    // TOOL-19, TOOL-20, C-21
    let (server, sessions) = sessions().await;
    for session in sessions {
        let unknown = server.send(session.call("ehco", json!({})).id(1)).await;
        refused_with(&unknown, 200, -32602, 1, "did you mean `echo`?");
        let malformed = server.send(session.call("echo", json!([])).id(1)).await;
        refused_with(&malformed, 200, -32602, 1, "arguments");
        let unfit = server.send(session.call("sum", json!({"a": "x"}))).await;
        assert_eq!(unfit.result()["isError"], true);
        let failed = server.send(session.call("fail", json!({}))).await;
        assert_eq!(failed.result()["isError"], true);
        let refusal = server.send(session.call("refuse", json!({})).id(2)).await;
        refused_with(&refusal, 200, -32602, 2, "not like this");
    }
}

#[tokio::test]
async fn legacy_unknown_resource_is_code_32002() {
    // RES-05, C-05
    let (server, sessions) = sessions().await;
    for session in sessions {
        for method in ["resources/read", "resources/subscribe"] {
            let request = session.request(method).params(json!({"uri": "mem://none"})).id(1);
            let error = refused(&server.send(&request).await, 200, -32002, 1);
            assert_eq!(error["data"], json!({"uri": "mem://none"}));
        }
    }
}

#[tokio::test]
async fn legacy_requests_with_wrong_parameters_are_invalid_params() {
    let (server, sessions) = sessions().await;
    for session in sessions {
        let rows = [
            session.request("prompts/get").params(json!({"name": "none"})),
            session.request("prompts/get").params(json!({"name": "greet"})),
            session.request("prompts/get").params(json!({})),
            session.request("tools/list").params(json!({"cursor": "banana"})),
            session.request("resources/list").params(json!({"cursor": ""})),
            session.request("logging/setLevel").params(json!({"level": "loud"})),
            session.request("logging/setLevel"),
            session.request("resources/read"),
        ];
        for request in rows {
            refused(&server.send(request.id(7)).await, 200, -32602, 7);
        }
    }
}

#[tokio::test]
async fn legacy_rate_limited_call_returns_retry_after() {
    let (server, sessions) = sessions().await;
    let call = sessions[0].call("once", json!({"text": "x"}));
    assert_eq!(server.send(&call).await.text(), "x");
    let busy = server.send(call.id(2)).await;
    refused(&busy, 200, 429, 2);
    assert!(busy.header("retry-after").is_some());
}

#[tokio::test]
async fn legacy_notifications_and_responses_are_accepted_with_202() {
    // HTTP25-04
    let (server, sessions) = sessions().await;
    for session in sessions {
        let bodies = [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/whatever", "params": {"x": [1]}}),
            json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}}),
            json!({"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}}),
        ];
        for body in bodies {
            let response = server.send(session.request("x").json(body.clone())).await;
            assert_eq!((response.status(), response.body.len()), (202, 0), "{body}");
        }
    }
}

#[tokio::test]
async fn legacy_message_without_session_is_400() {
    // HTTP25-27; the error for a notification has no ID (HTTP25-04).
    let server = HttpFixture::start().await;
    for version in HTTP_REVISIONS {
        let request = Request::sessionless(version, "tools/list").id(1);
        refused_with(&server.send(&request).await, 400, -32600, 1, "Mcp-Session-Id");
        let note =
            request.without_member("id").member("method", json!("notifications/initialized"));
        refused_with(&server.send(&note).await, 400, -32600, Value::Null, "Mcp-Session-Id");
        for verb in ["GET", "DELETE"] {
            let bodiless = Request::new(verb, version)
                .header("mcp-protocol-version", version)
                .accept("text/event-stream");
            refused_with(&server.send(bodiless).await, 400, -32600, Value::Null, "Mcp-Session-Id");
        }
    }
    // HTTP26-43, HTTP25-35: a request without headers counts as 2025-03-26, which also needs a
    // session.
    let bare =
        Request::sessionless("2025-03-26", "tools/list").without_header("mcp-protocol-version");
    refused(&server.send(bare.id(1)).await, 400, -32600, 1);
}

#[tokio::test]
async fn unknown_session_is_404() {
    // HTTP25-28
    let (server, sessions) = sessions().await;
    for known in sessions {
        for id in ["0123456789abcdef0123456789abcdef", "x", &known.id[1..], "\u{fc}"] {
            let session = known.with_id(id);
            refused_with(
                &server.send(session.request("tools/list").id(1)).await,
                404,
                -32600,
                1,
                "initialize",
            );
            for request in [
                session.notification("notifications/initialized", json!({})),
                session.get(),
                session.delete(),
            ] {
                refused_with(&server.send(request).await, 404, -32600, Value::Null, "initialize");
            }
        }
    }
}

#[tokio::test]
async fn get_not_accepting_sse_is_406() {
    // HTTP25-19, HTTP25-20
    let (server, sessions) = sessions().await;
    for session in sessions {
        for accept in ["application/json", "text/html"] {
            let response = server.send(session.get().accept(accept)).await;
            refused_with(&response, 406, -32600, Value::Null, "text/event-stream");
        }
    }
}

#[tokio::test]
async fn request_id_still_in_use_is_rejected() {
    // RPC-04
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let first = session.call("wait", json!({"key": "a"})).id(1);
    let mut waiting = server.begin(&first).await;
    server.world.started("a").await;
    let second = server.send(session.call("echo", json!({"text": "x"})).id(1)).await;
    refused_with(&second, 400, -32600, 1, "still in use");
    server.world.release("a");
    assert_eq!(waiting.response(&first).await.text(), "waited a");
}
