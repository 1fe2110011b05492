//! `initialize` in each legacy version.

use outlive::server::http::HttpConfig;
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[tokio::test]
async fn handshake_result_has_members_of_its_version() {
    // VER-18, VER-19, VER-37
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server
            .title("Standard")
            .description("For tests")
            .website_url("https://example.com")
            .instructions("Use it.")
    })
    .await;
    for version in REVISIONS {
        let response = server.send(Request::initialize(version).id(0)).await;
        assert_eq!(
            (response.status(), response.header("content-type")),
            (200, Some("application/json"))
        );
        let mut info = json!({"name": "standard", "version": "1.0.0"});
        if version >= "2025-06-18" {
            info["title"] = json!("Standard");
        }
        if version >= "2025-11-25" {
            info["description"] = json!("For tests");
            info["websiteUrl"] = json!("https://example.com");
        }
        let mut capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "logging": {},
        });
        if version >= "2025-03-26" {
            capabilities["completions"] = json!({});
        }
        let result = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": info,
            "instructions": "Use it.",
        });
        assert_eq!(response.json(), json!({"jsonrpc": "2.0", "id": 0, "result": result}));
    }
}

#[tokio::test]
async fn handshake_returns_unguessable_session_id() {
    // HTTP25-24, HTTP25-25
    let server = HttpFixture::start().await;
    let mut seen = Vec::new();
    for _ in 0..20 {
        let response = server.send(Request::initialize("2025-11-25")).await;
        let id = response.header("mcp-session-id").expect("a session").to_owned();
        assert!(id.len() >= 32 && id.bytes().all(|byte| matches!(byte, 0x21..=0x7e)), "{id}");
        assert!(!seen.contains(&id), "{id} twice");
        seen.push(id);
    }
    // Only the handshake response carries the ID.
    let session = server.session("2025-11-25").await;
    assert_eq!(server.send(session.request("ping")).await.header("mcp-session-id"), None);
}

#[tokio::test]
async fn session_serves_each_version_after_handshake() {
    let server = HttpFixture::start().await;
    for version in REVISIONS {
        let session = server.session(version).await;
        assert_eq!(
            server.send(session.call("echo", json!({"text": version}))).await.text(),
            version
        );
        let list = server.send(session.request("tools/list")).await.result();
        let sum =
            list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "sum").unwrap();
        assert_eq!(sum.get("outputSchema").is_some(), version >= "2025-06-18", "{version}: {sum}");
        let called = server.send(session.call("sum", json!({"a": 1, "b": 2}))).await.result();
        assert_eq!(
            called.get("structuredContent").is_some(),
            version >= "2025-06-18",
            "{version}: {called}"
        );
        assert_eq!(called["content"][0]["text"], "{\"sum\":3}");
    }
}

#[tokio::test]
async fn session_request_without_version_header_uses_session_version() {
    // HTTP25-35, HTTP25-38: the session has its version.
    let server = HttpFixture::start().await;
    for version in REVISIONS {
        let session = server.session(version).await;
        let call =
            session.call("sum", json!({"a": 1, "b": 2})).without_header("mcp-protocol-version");
        let result = server.send(call).await.result();
        assert_eq!(result.get("structuredContent").is_some(), version >= "2025-06-18", "{version}");
    }
}

#[tokio::test]
async fn ping_before_initialized_notification_gets_response() {
    // PING-01
    let server = HttpFixture::start().await;
    for version in REVISIONS {
        let opened = server.send(Request::initialize(version)).await;
        let id = opened.header("mcp-session-id").unwrap();
        let ping = Request::sessionless(version, "ping").header("mcp-session-id", id).id("p");
        assert_eq!(
            server.send(ping).await.json(),
            json!({"jsonrpc": "2.0", "id": "p", "result": {}})
        );
    }
}

#[tokio::test]
async fn handshake_accepting_only_sse_gets_stream() {
    let server = HttpFixture::start().await;
    let response = server.send(Request::initialize("2025-11-25").accept("text/event-stream")).await;
    assert!(response.header("mcp-session-id").is_some());
    assert_eq!(response.messages()[0]["result"]["protocolVersion"], "2025-11-25");
}
