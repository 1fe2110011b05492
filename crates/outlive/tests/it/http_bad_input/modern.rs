//! Rejections under the rules of 2026-07-28: one test per case.

use outlive::server::{Server, Tool, VersionSet, http::HttpConfig};
use serde_json::{Value, json};

use super::{refused, refused_with};
use crate::support::http::{HttpFixture, MODERN, Request};

/// Sends one request to a new standard server.
async fn answer(request: Request) -> crate::support::http::Response {
    HttpFixture::start().await.send(request).await
}

#[tokio::test]
async fn unknown_modern_method_is_404() {
    // HTTP26-14
    let response = answer(Request::modern("tools/destroy").id("u-1")).await;
    refused_with(&response, 404, -32601, "u-1", "tools/destroy");
}

#[tokio::test]
async fn legacy_methods_in_modern_era_are_404() {
    // VER-32, PING-03, C-09
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    {
        let request = Request::modern(method)
            .id(1)
            .param("uri", json!("mem://a"))
            .param("level", json!("info"));
        refused(&server.send(&request).await, 404, -32601, 1);
        // A session header does not change the result.
        let beside = request.header("mcp-session-id", &session.id);
        refused(&server.send(&beside).await, 404, -32601, 1);
    }
}

#[tokio::test]
async fn modern_method_without_capability_is_404() {
    // RPC-16
    let tools_only =
        Server::builder("bare", "1").tool(Tool::new("t", async || "t")).build().unwrap();
    let server = HttpFixture::of(tools_only, HttpConfig::new()).await;
    for method in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
    ] {
        refused(&server.send(Request::modern(method).name("x").id(4)).await, 404, -32601, 4);
    }
    refused(
        &server.send(Request::modern("resources/read").uri("mem://a").id(4)).await,
        404,
        -32601,
        4,
    );
}

#[tokio::test]
async fn missing_meta_key_is_named() {
    // META-03
    let server = HttpFixture::start().await;
    for key in ["protocolVersion", "clientCapabilities"] {
        let response = server.send(Request::modern("tools/list").without_reserved(key).id(2)).await;
        refused_with(&response, 400, -32602, 2, key);
    }
    // The conformance suite sends correct headers without `_meta`.
    for params in [json!({}), json!({"_meta": {}}), json!({"_meta": null})] {
        let response = server.send(Request::modern("tools/list").params(params).id(2)).await;
        refused_with(&response, 400, -32602, 2, "protocolVersion");
    }
    let response = server.send(Request::modern("tools/list").without_member("params").id(2)).await;
    refused_with(&response, 400, -32602, 2, "protocolVersion");
}

#[tokio::test]
async fn meta_key_of_wrong_type_is_invalid_params() {
    let server = HttpFixture::start().await;
    let list = || Request::modern("tools/list").id(2);
    let rows = [
        list().param("_meta", json!(5)),
        list().param("_meta", json!([MODERN, {}])),
        list().reserved("protocolVersion", json!(20260728)),
        list().reserved("protocolVersion", json!(null)),
        list().reserved("clientCapabilities", json!([])),
        list().reserved("clientCapabilities", json!(null)),
        list().reserved("clientCapabilities", json!("all")),
        list().meta("progressToken", json!(1.5)),
        list().meta("progressToken", json!({})),
    ];
    for request in rows {
        refused(&server.send(&request).await, 400, -32602, 2);
    }
}

#[tokio::test]
async fn modern_request_without_client_info_is_accepted() {
    let response = answer(Request::modern("tools/list").without_reserved("clientInfo")).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn unsupported_version_error_lists_supported_versions() {
    // VER-02, RPC-25, HTTP26-41
    let server = HttpFixture::start().await;
    for version in ["2031-01-01", "1999-01-01", "latest", ""] {
        let response = server.send(Request::modern("tools/list").version(version).id(9)).await;
        let error = refused(&response, 400, -32022, 9);
        assert_eq!(error["data"], json!({"supported": [MODERN], "requested": version}));
    }
    // VER-36: discovery returns the same set.
    let discovered = server.send(Request::modern("server/discover")).await.result();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
}

#[tokio::test]
async fn legacy_version_in_meta_is_unsupported_version() {
    // VER-36
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let response = answer(Request::modern("tools/list").version(version).id(9)).await;
        let error = refused_with(&response, 400, -32022, 9, "`initialize`");
        assert_eq!(error["data"]["requested"], version);
    }
}

#[tokio::test]
async fn missing_capability_error_has_capability_object() {
    // META-05, RPC-24
    let response = answer(Request::call("sample", json!({})).id(10)).await;
    let error = refused(&response, 400, -32021, 10);
    assert_eq!(error["data"], json!({"requiredCapabilities": {"sampling": {}}}));
}

#[tokio::test]
async fn capabilities_of_earlier_request_are_ignored() {
    // META-04, VER-14: neither those of the same connection nor those of a session count.
    let server = HttpFixture::start().await;
    let hello = Request::initialize("2025-11-25").param("capabilities", json!({"sampling": {}}));
    let opened = server.send(&hello).await;
    let session = opened.header("mcp-session-id").unwrap();
    let mut connection = server.connect().await;
    let call = Request::call("sample", json!({})).header("mcp-session-id", session);
    let declared = call.clone().reserved("clientCapabilities", json!({"sampling": {}}));
    assert_eq!(connection.send(&declared).await.text(), "sampled");
    refused(&connection.send(&call.id(1)).await, 400, -32021, 1);
}

#[tokio::test]
async fn modern_unknown_tool_is_protocol_error_with_suggestion() {
    // TOOL-19, HTTP26-11
    let server = HttpFixture::start().await;
    let response = server.send(Request::call("ehco", json!({})).id(1)).await;
    refused_with(&response, 200, -32602, 1, "unknown tool `ehco`; did you mean `echo`?");
}

#[tokio::test]
async fn malformed_tool_call_is_protocol_error() {
    // TOOL-20
    let server = HttpFixture::start().await;
    let call = || Request::modern("tools/call").id(1);
    let rows = [
        (call(), "name"),
        (call().param("name", json!(5)), "name"),
        (call().name("echo").param("arguments", json!([])), "arguments"),
        (call().name("echo").param("arguments", json!("text")), "arguments"),
        (call().name("echo").param("arguments", json!(null)), "arguments"),
    ];
    for (request, words) in rows {
        refused_with(&server.send(&request).await, 200, -32602, 1, words);
    }
}

#[tokio::test]
async fn arguments_violating_schema_are_tool_error() {
    // C-21
    let server = HttpFixture::start().await;
    for arguments in
        [json!({}), json!({"a": 1}), json!({"a": "1", "b": 2}), json!({"a": 1.5, "b": 2})]
    {
        let response = server.send(Request::call("sum", arguments)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.result()["isError"], true);
        assert!(!response.text().is_empty());
    }
}

#[tokio::test]
async fn failing_tool_is_result_and_protocol_error_is_not() {
    let server = HttpFixture::start().await;
    let failed = server.send(Request::call("fail", json!({}))).await;
    assert_eq!((failed.status(), failed.text().as_str()), (200, "the disk is full"));
    assert_eq!(failed.result()["isError"], true);
    let refusal = server.send(Request::call("refuse", json!({})).id(6)).await;
    refused_with(&refusal, 200, -32602, 6, "not like this");
}

#[tokio::test]
async fn modern_unknown_resource_error_has_uri() {
    // RES-04, RES-07, RPC-20
    let response = answer(Request::modern("resources/read").uri("mem://none").id(1)).await;
    let error = refused(&response, 200, -32602, 1);
    assert_eq!(error["data"], json!({"uri": "mem://none"}));
}

#[tokio::test]
async fn unknown_prompt_and_missing_argument_are_invalid_params() {
    let server = HttpFixture::start().await;
    let unknown = Request::modern("prompts/get").name("gret").id(1);
    refused_with(&server.send(&unknown).await, 200, -32602, 1, "gret");
    let missing = Request::modern("prompts/get").name("greet").id(1);
    refused_with(&server.send(&missing).await, 200, -32602, 1, "name");
}

#[tokio::test]
async fn invalid_cursor_is_invalid_params() {
    let server = HttpFixture::start().await;
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!("banana"), json!(""), json!(5)] {
            let response = server.send(Request::modern(method).param("cursor", cursor).id(1)).await;
            refused_with(&response, 200, -32602, 1, "cursor");
        }
    }
}

#[tokio::test]
async fn invalid_log_level_in_meta_is_400() {
    // LOG-05
    let server = HttpFixture::start().await;
    for level in [json!("loud"), json!("INFO"), json!(3), json!(null)] {
        let response = server
            .send(Request::call("echo", json!({"text": "x"})).reserved("logLevel", level).id(1))
            .await;
        refused_with(&response, 400, -32602, 1, "logLevel");
    }
}

#[tokio::test]
async fn modern_rate_limited_call_is_429_with_retry_after() {
    let server = HttpFixture::start().await;
    let call = Request::call("once", json!({"text": "x"}));
    assert_eq!(server.send(&call).await.text(), "x");
    let busy = server.send(call.id(2)).await;
    let error = refused(&busy, 429, 429, 2);
    let seconds: u64 = busy.header("retry-after").expect("Retry-After").parse().unwrap();
    assert!((1..=100).contains(&seconds), "{seconds}");
    assert!(error["data"]["retryAfterMs"].as_u64().is_some_and(|ms| ms <= 100_000), "{error}");
}

#[tokio::test]
async fn modern_notifications_are_accepted_with_202() {
    // RPC-08, HTTP26-07, HTTP26-10, HTTP26-36: also unknown notifications.
    let server = HttpFixture::start().await;
    for method in ["notifications/cancelled", "notifications/progress", "notifications/whatever"] {
        let plain = Request::modern_notification(method).params(json!({"requestId": 1}));
        let with_method = plain.clone().header("mcp-method", method);
        for request in [plain, with_method] {
            let response = server.send(&request).await;
            assert_eq!((response.status(), response.body.len()), (202, 0), "{method}");
        }
    }
}

#[tokio::test]
async fn unsolicited_response_is_accepted_and_ignored() {
    // RPC-14 is a rule for the client; the server ignores the message.
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let response = answer(Request::modern_notification("x").json(body)).await;
    assert_eq!((response.status(), response.body.len()), (202, 0));
}

#[tokio::test]
async fn modern_get_and_delete_are_405() {
    // HTTP26-12, HTTP26-13, C-11
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for verb in ["GET", "DELETE"] {
        let modern = Request::new(verb, MODERN)
            .header("mcp-protocol-version", MODERN)
            .accept("text/event-stream");
        for request in [modern.clone(), modern.header("mcp-session-id", &session.id)] {
            let response = server.send(&request).await;
            refused(&response, 405, -32600, Value::Null);
            assert_eq!(response.header("allow"), Some("POST, GET, DELETE"));
        }
    }
    // The session still works.
    assert_eq!(server.send(session.request("ping")).await.status(), 200);
}

#[tokio::test]
async fn unknown_verb_is_405_and_unknown_path_is_404() {
    // HTTP26-01
    let server = HttpFixture::start().await;
    for verb in ["PUT", "PATCH", "OPTIONS"] {
        let response = server.send(Request::new(verb, MODERN).header("content-length", "0")).await;
        refused(&response, 405, -32600, Value::Null);
        assert_eq!(response.header("allow"), Some("POST, GET, DELETE"));
    }
    for path in ["/", "/mcp/", "/MCP", "/mcp/x", "/other"] {
        let response = server.send(Request::modern("tools/list").target(path)).await;
        refused_with(&response, 404, -32600, Value::Null, "the MCP endpoint is /mcp");
    }
    assert_eq!(server.send(Request::modern("tools/list").target("/mcp?x=1")).await.status(), 200);
}

#[tokio::test]
async fn modern_only_server_allows_only_post() {
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.protocol_versions(VersionSet::modern())
    })
    .await;
    for verb in ["GET", "DELETE"] {
        let response = server.send(Request::new(verb, MODERN).accept("text/event-stream")).await;
        refused(&response, 405, -32600, Value::Null);
        assert_eq!(response.header("allow"), Some("POST"));
    }
    for path in ["/sse", "/messages"] {
        assert_eq!(server.send(Request::new("GET", MODERN).target(path)).await.status(), 404);
    }
}

#[tokio::test]
async fn modern_only_server_rejects_handshake_with_its_versions() {
    // VER-27
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.protocol_versions(VersionSet::modern())
    })
    .await;
    let response = server.send(Request::initialize("2025-11-25").answered_in(MODERN).id(0)).await;
    refused_with(&response, 400, -32020, 0, MODERN);
    assert_eq!(response.header("mcp-session-id"), None);
}

#[tokio::test]
async fn legacy_only_server_rejects_modern_requests() {
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.protocol_versions(VersionSet::legacy())
    })
    .await;
    refused(&server.send(Request::modern("server/discover").id(1)).await, 400, -32600, 1);
    let session = server.session("2025-11-25").await;
    assert_eq!(server.send(session.call("echo", json!({"text": "old"}))).await.text(), "old");
}
