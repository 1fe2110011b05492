//! Headers that mirror the body, so that proxies can route without parsing it.

use outlive::server::{Tool, http::HttpConfig};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, MODERN, Request};

/// Sends the request. `Err` is the expected text of the header mismatch error.
async fn check(server: &HttpFixture, request: Request, expected: Result<(), &str>) {
    let request = request.id("m-1");
    let shown = String::from_utf8_lossy(&request.head_bytes()).into_owned();
    let response = server.send(&request).await;
    let answer = response.json();
    match expected {
        Ok(()) => {
            assert_eq!(response.status(), 200, "{shown}{answer}");
            assert!(answer.get("result").is_some(), "{shown}{answer}");
        }
        Err(words) => {
            // HTTP26-38: the status, the error code, and the request ID.
            assert_eq!(response.status(), 400, "{shown}{answer}");
            assert_eq!(answer["error"]["code"], -32020, "{shown}{answer}");
            assert_eq!(answer["id"], "m-1", "{shown}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{shown}`{words}` is not in `{message}`");
        }
    }
}

fn echo() -> Request {
    Request::call("echo", json!({"text": "x"}))
}

#[tokio::test]
async fn version_header_differing_from_body_is_rejected() {
    // HTTP26-33, HTTP26-38, HTTP26-41
    let server = HttpFixture::start().await;
    let rows = [
        (echo(), Ok(())),
        (
            echo().without_header("mcp-protocol-version").header("MCP-PROTOCOL-VERSION", MODERN),
            Ok(()),
        ),
        (echo().header("mcp-protocol-version", "\t 2026-07-28  "), Ok(())),
        (echo().without_header("mcp-protocol-version"), Err("missing")),
        (echo().header("mcp-protocol-version", "2025-11-25"), Err("differs")),
        (echo().header("mcp-protocol-version", "2031-01-01"), Err("differs")),
        (echo().header("mcp-protocol-version", ""), Err("differs")),
        (echo().header("mcp-protocol-version", "=?base64?MjAyNi0wNy0yOA==?="), Err("differs")),
        (echo().add_header("mcp-protocol-version", MODERN), Err("more than once")),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn method_header_differing_from_body_is_rejected() {
    // HTTP26-34, HTTP26-37, HTTP26-39, HTTP26-40, HTTP26-45
    let server = HttpFixture::start().await;
    let rows = [
        (echo().without_header("mcp-method").header("MCP-METHOD", "tools/call"), Ok(())),
        (echo().header("mcp-method", "  tools/call\t"), Ok(())),
        (echo().without_header("mcp-method"), Err("Mcp-Method header is missing")),
        (echo().header("mcp-method", "tools/list"), Err("Mcp-Method header differs")),
        (echo().header("mcp-method", "TOOLS/CALL"), Err("Mcp-Method header differs")),
        (echo().header("mcp-method", ""), Err("Mcp-Method header differs")),
        (echo().header("mcp-method", "tools/call, tools/call"), Err("Mcp-Method header differs")),
        // This header has no encoded form.
        (
            echo().header("mcp-method", "=?base64?dG9vbHMvY2FsbA==?="),
            Err("Mcp-Method header differs"),
        ),
        (echo().add_header("mcp-method", "tools/call"), Err("more than once")),
        (echo().add_header("Mcp-Method", "tools/list"), Err("more than once")),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn name_header_differing_from_body_is_rejected() {
    // HTTP26-35, HTTP26-37, HTTP26-39, HTTP26-40, HTTP26-45, HTTP26-60
    let server = HttpFixture::start().await;
    let named = |value: &str| echo().header("mcp-name", value);
    let rows = [
        (echo().without_header("mcp-name").header("MCP-NAME", "echo"), Ok(())),
        (named(" \techo  "), Ok(())),
        (named("=?base64?ZWNobw==?="), Ok(())),
        (echo().without_header("mcp-name"), Err("Mcp-Name header is missing")),
        (named("wait"), Err("Mcp-Name header differs")),
        (named("Echo"), Err("Mcp-Name header differs")),
        (named(""), Err("Mcp-Name header differs")),
        (named("=?base64?d2FpdA==?="), Err("Mcp-Name header differs")),
        // An incomplete or upper-case marker is literal text.
        (named("=?BASE64?ZWNobw==?="), Err("Mcp-Name header differs")),
        (named("=?base64?ZWNobw=="), Err("Mcp-Name header differs")),
        (named("ZWNobw==?="), Err("Mcp-Name header differs")),
        // A complete marker must contain strict Base64.
        (named("=?base64?ZWNobw?="), Err("Base64")),
        (named("=?base64?ZWNobw=?="), Err("Base64")),
        (named("=?base64?ZWNo bw==?="), Err("Base64")),
        (named("=?base64?ZWNob_==?="), Err("Base64")),
        (named("=?base64?ZWNobx==?="), Err("Base64")),
        (named("=?base64?/w==?="), Err("differs")),
        (echo().add_header("mcp-name", "echo"), Err("more than once")),
        (echo().add_header("mcp-name", "wait"), Err("more than once")),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn name_header_is_required_for_three_methods_only() {
    // HTTP26-35
    let server = HttpFixture::start().await;
    let prompt =
        || Request::modern("prompts/get").name("greet").param("arguments", json!({"name": "x"}));
    let resource = || Request::modern("resources/read").uri("mem://a");
    let rows = [
        (prompt(), Ok(())),
        (prompt().without_header("mcp-name"), Err("`params.name`")),
        (prompt().header("mcp-name", "other"), Err("`params.name`")),
        (resource(), Ok(())),
        (resource().without_header("mcp-name"), Err("`params.uri`")),
        (resource().header("mcp-name", "mem://b"), Err("`params.uri`")),
        (Request::modern("tools/list").header("mcp-name", "whatever"), Ok(())),
        (Request::modern("server/discover").header("mcp-name", "whatever"), Ok(())),
        (
            Request::modern("completion/complete")
                .param("ref", json!({"type": "ref/prompt", "name": "greet"}))
                .param("argument", json!({"name": "name", "value": ""})),
            Ok(()),
        ),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn non_ascii_name_is_accepted_as_base64_header() {
    // HTTP26-40, HTTP26-58, HTTP26-64
    let names = ["zürich", " spaced ", "=?base64?x?=", "quo\"te", "tab\there"];
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        names
            .into_iter()
            .fold(server, |server, name| server.tool(Tool::new(name, async || "found")))
    })
    .await;
    let encoded = |text: &str| {
        use base64::Engine;
        format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
    };
    for name in names {
        let call = Request::call(name, json!({}));
        check(&server, call.header("mcp-name", encoded(name)), Ok(())).await;
    }
    for (name, expected) in [
        ("zürich", Err("characters")),
        (" spaced ", Err("differs")),
        ("=?base64?x?=", Err("Base64")),
        ("quo\"te", Ok(())),
        ("tab\there", Ok(())),
    ] {
        check(&server, Request::call(name, json!({})).header("mcp-name", name), expected).await;
    }
}

/// A call of the tool whose schema maps arguments to headers.
fn place(arguments: Value) -> Request {
    Request::call("place", arguments)
}

#[tokio::test]
async fn argument_header_differing_from_body_is_rejected() {
    // HTTP26-49, HTTP26-57, HTTP26-59, HTTP26-61, HTTP26-62
    let server = HttpFixture::start().await;
    let zone = |zone: &str| place(json!({"zone": zone}));
    let rows = [
        (place(json!({})), Ok(())),
        (place(json!({"zone": null, "level": null, "dry": null, "deep": null})), Ok(())),
        (zone("north").header("mcp-param-zone", "north"), Ok(())),
        (zone("north").header("MCP-PARAM-ZONE", "north"), Ok(())),
        (zone("us west 1").header("mcp-param-zone", "us west 1"), Ok(())),
        (zone("").header("mcp-param-zone", ""), Ok(())),
        (zone("a\tb").header("mcp-param-zone", "a\tb"), Ok(())),
        (zone("Zürich").header("mcp-param-zone", "=?base64?WsO8cmljaA==?="), Ok(())),
        (zone("north").header("mcp-param-zone", "=?base64?bm9ydGg=?="), Ok(())),
        (zone("north"), Err("Mcp-Param-Zone header is missing")),
        (zone(""), Err("Mcp-Param-Zone header is missing")),
        (zone("north").header("mcp-param-zone", "south"), Err("Mcp-Param-Zone header differs")),
        (zone("north").header("mcp-param-zone", "North"), Err("Mcp-Param-Zone header differs")),
        (zone("north").header("mcp-param-zone", ""), Err("Mcp-Param-Zone header differs")),
        (zone("north").header("mcp-param-zone", "=?base64?bm9ydGg?="), Err("Base64")),
        (zone("north").header("mcp-param-zone", "=?base64?/w==?="), Err("text")),
        (
            zone("north").header("mcp-param-zone", "north").add_header("mcp-param-zone", "north"),
            Err("more than once"),
        ),
        (place(json!({})).header("mcp-param-zone", "north"), Err("has no matching argument")),
        (
            place(json!({"zone": null})).header("mcp-param-zone", "null"),
            Err("has no matching argument"),
        ),
        // An argument without a header in the schema, and a header that the schema does not know.
        (place(json!({"free": "x"})).header("mcp-param-free", "y"), Ok(())),
        (place(json!({})).header("mcp-param-unknown", "=?base64?!?="), Ok(())),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn argument_headers_cover_numbers_booleans_and_nested_members() {
    // HTTP26-52, HTTP26-53, HTTP26-57, HTTP26-63
    let server = HttpFixture::start().await;
    let level =
        |level: i64, header: &str| place(json!({"level": level})).header("mcp-param-level", header);
    let dry = |header: &str| place(json!({"dry": true})).header("mcp-param-dry", header);
    let tag = |header: &str| place(json!({"deep": {"tag": "t"}})).header("mcp-param-tag", header);
    let rows = [
        (level(42, "42"), Ok(())),
        (level(42, "42.0"), Ok(())),
        (level(-7, "-7"), Ok(())),
        (level(42, "43"), Err("Mcp-Param-Level header differs")),
        (level(42, "forty-two"), Err("Mcp-Param-Level header differs")),
        (level(42, ""), Err("Mcp-Param-Level header differs")),
        (place(json!({"level": 0})), Err("Mcp-Param-Level header is missing")),
        (dry("true"), Ok(())),
        (dry("false"), Err("Mcp-Param-Dry header differs")),
        (dry("TRUE"), Err("Mcp-Param-Dry header differs")),
        (dry("1"), Err("Mcp-Param-Dry header differs")),
        (place(json!({"dry": false})), Err("Mcp-Param-Dry header is missing")),
        (tag("t"), Ok(())),
        (tag("u"), Err("Mcp-Param-Tag header differs")),
        (place(json!({"deep": {"tag": "t"}})), Err("Mcp-Param-Tag header is missing")),
        (place(json!({"deep": {}})), Ok(())),
    ];
    for (request, expected) in rows {
        check(&server, request, expected).await;
    }
}

#[tokio::test]
async fn raw_non_ascii_header_is_rejected() {
    // HTTP26-38, HTTP26-64: Base64 is accepted; raw bytes are rejected because two parsers may read
    // them differently.
    let server = HttpFixture::start().await;
    let zone = place(json!({"zone": "Zürich"}));
    check(&server, zone.clone().header("mcp-param-zone", "Zürich"), Err("characters")).await;
    let latin = zone.header("mcp-param-zone", b"Z\xfcrich");
    check(&server, latin, Err("characters")).await;
    // The HTTP parser itself rejects control characters.
    let control = echo().header("mcp-name", b"ec\x01ho");
    assert_eq!(server.send(&control).await.status(), 400);
}

#[tokio::test]
async fn header_mismatch_error_contains_no_values() {
    // SEC-10
    let server = HttpFixture::start().await;
    let call = place(json!({"zone": "body-secret"})).header("mcp-param-zone", "header-secret");
    let response = server.send(&call).await;
    assert_eq!(response.status(), 400);
    assert!(!response.json().to_string().contains("secret"), "{}", response.json());
}
