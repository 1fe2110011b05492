//! Web pages that reach the server through the user's browser: which may, and what they may read.

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, MODERN, Request, Response};

/// One request for every entry point of the endpoint.
fn doors() -> Vec<Request> {
    vec![
        Request::modern("tools/list"),
        Request::initialize("2025-11-25"),
        Request::sessionless("2025-11-25", "tools/list"),
        Request::new("GET", "2025-11-25").accept("text/event-stream"),
        Request::new("DELETE", "2025-11-25"),
        Request::new("OPTIONS", MODERN),
        Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream"),
        Request::post("2024-11-05").target("/messages?session=x").json(json!({})),
        Request::new("GET", MODERN).target("/nothing"),
    ]
}

/// Asserts a 403 with a message that contains `words` and without an ID.
#[track_caller]
fn forbidden(response: &Response, words: &str) {
    let body = response.json();
    assert_eq!(response.status(), 403, "{body}");
    assert_eq!(body["error"]["code"], -32600);
    assert_eq!(body.get("id"), None);
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "`{words}` is not in `{message}`");
    assert_eq!(response.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn foreign_host_is_403_at_every_entry_point() {
    // SEC-02
    let server = HttpFixture::start().await;
    for door in doors() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "192.168.0.1",
            "",
        ] {
            forbidden(&server.send(door.clone().header("host", host)).await, "`allow_host`");
        }
        forbidden(&server.send(door.without_header("host")).await, "Host");
    }
    let port = server.address().port();
    for host in
        ["localhost", "LOCALHOST", &format!("127.0.0.1:{port}"), "[::1]:8000", "localhost:1"]
    {
        assert_eq!(
            server.send(Request::modern("tools/list").header("host", host)).await.status(),
            200,
            "{host}"
        );
    }
}

#[tokio::test]
async fn foreign_origin_is_403_at_every_entry_point() {
    // HTTP26-02, HTTP25-02, SSE24-06, SEC-01
    let server = HttpFixture::start().await;
    for door in doors() {
        for origin in [
            "https://evil.example",
            "http://localhost.evil.example",
            "null",
            "localhost",
            "http://[::1].evil.example",
            "file://",
        ] {
            forbidden(&server.send(door.clone().header("origin", origin)).await, "`allow_origin`");
        }
        let two =
            door.header("origin", "http://localhost").add_header("origin", "https://evil.example");
        forbidden(&server.send(two).await, "Origin");
    }
    for origin in
        ["http://localhost:6274", "https://localhost", "http://127.0.0.1:5173", "http://[::1]:80"]
    {
        let response = server.send(Request::modern("tools/list").header("origin", origin)).await;
        assert_eq!(response.status(), 200, "{origin}");
    }
    assert_eq!(
        server.send(Request::modern("tools/list")).await.status(),
        200,
        "programs send no Origin"
    );
}

#[tokio::test]
async fn allowlisted_hosts_and_origins_are_accepted() {
    let config = HttpConfig::new().allow_host("mcp.example").allow_origin("https://app.example");
    let server = HttpFixture::with(config).await;
    let list = Request::modern("tools/list");
    for (host, origin, status) in [
        ("mcp.example", "https://app.example", 200),
        ("MCP.example:443", "https://APP.example", 200),
        ("localhost", "http://localhost", 200),
        ("other.example", "https://app.example", 403),
        ("mcp.example", "https://app.example:8443", 403),
        ("mcp.example", "http://app.example", 403),
        ("mcp.example", "https://mcp.example", 403),
    ] {
        let response =
            server.send(list.clone().header("host", host).header("origin", origin)).await;
        assert_eq!(response.status(), status, "{host} {origin}");
    }
    let open = HttpFixture::with(HttpConfig::new().allow_any_host().allow_any_origin()).await;
    let request =
        list.header("host", "anything.example").header("origin", "https://anything.example");
    assert_eq!(open.send(request).await.status(), 200);
}

#[tokio::test]
async fn preflight_returns_allowed_methods_and_headers() {
    // SEC-07, ARS-18: also with an authenticator, because browsers send no token with a preflight.
    let tokens = StaticTokens::new().with("anna", "annas-token-0123456789");
    let server = HttpFixture::with(HttpConfig::new().authenticator(tokens)).await;
    let preflight = |headers: &str| {
        Request::new("OPTIONS", MODERN)
            .header("origin", "http://localhost:6274")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", headers)
    };
    let known = "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, \
                 mcp-param-zone, Mcp-Param-Level, mcp-session-id, last-event-id";
    let response = server.send(preflight(known)).await;
    assert_eq!((response.status(), response.body.len()), (204, 0));
    assert_eq!(response.header("access-control-allow-origin"), Some("http://localhost:6274"));
    assert_eq!(response.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert!(response.header("access-control-max-age").is_some());
    assert_eq!(response.header("vary"), Some("Origin"));
    let allowed = response.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    let mut allowed: Vec<&str> = allowed.split(", ").collect();
    let mut wanted: Vec<String> =
        known.split(", ").map(|name| name.trim().to_ascii_lowercase()).collect();
    allowed.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(allowed, wanted);

    let unknown = server.send(preflight("x-evil, mcp-name, mcp-parameter")).await;
    assert_eq!(unknown.header("access-control-allow-headers"), Some("mcp-name"));
    let foreign = server.send(preflight("mcp-name").header("origin", "https://evil.example")).await;
    forbidden(&foreign, "Origin");
}

#[tokio::test]
async fn allowed_origin_gets_cors_headers() {
    // SEC-07
    let tokens = StaticTokens::new().with("anna", "annas-token-0123456789");
    let server = HttpFixture::with(HttpConfig::new().authenticator(tokens)).await;
    let origin = "http://localhost:6274";
    let anna = |request: Request| request.bearer("annas-token-0123456789");
    let rows = [
        (anna(Request::modern("tools/list")), 200),
        (anna(Request::initialize("2025-11-25")), 200),
        (anna(Request::modern("nope")), 404),
        (anna(Request::new("GET", MODERN).header("mcp-protocol-version", MODERN)), 405),
        (Request::modern("tools/list"), 401),
    ];
    for (request, status) in rows {
        let response = server.send(request.header("origin", origin)).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.header("access-control-allow-origin"), Some(origin));
        assert_eq!(response.header("vary"), Some("Origin"));
        let exposed = response.header("access-control-expose-headers").unwrap();
        for name in ["Mcp-Session-Id", "WWW-Authenticate"] {
            assert!(exposed.contains(name), "{exposed}");
        }
    }
    let stream = anna(Request::call("echo", json!({"text": "x"}))).accept("text/event-stream");
    let stream = server.open(stream.header("origin", origin)).await;
    assert_eq!(stream.header("access-control-allow-origin"), Some(origin));
    // Requests without an origin get no CORS headers.
    let plain = server.send(anna(Request::modern("tools/list"))).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    assert_ne!(plain.json(), Value::Null);
}
