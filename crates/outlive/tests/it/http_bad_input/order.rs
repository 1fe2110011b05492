//! Requests with two defects: the earlier check reports. Checks that depend on the version come
//! after the version check.

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, Request};

const TOKEN: &str = "a-token-that-is-long-enough";
const LIMIT: usize = 4_000;

/// A defect of a request, and the expected error.
struct Defect {
    what: &'static str,
    status: u16,
    code: i64,
    words: &'static str,
    inflict: fn(Request) -> Request,
}

/// The defects in the order of the checks (HTTP26-42).
const DEFECTS: [Defect; 20] = [
    defect("foreign host", 403, -32600, "Host", |request| request.header("host", "evil.example")),
    defect("foreign origin", 403, -32600, "Origin", |request| {
        request.header("origin", "https://evil.example")
    }),
    defect("no token", 401, -32600, "Authorization", |request| {
        request.without_header("authorization")
    }),
    defect("content type", 415, -32600, "Content-Type", |request| {
        request.header("content-type", "text/plain")
    }),
    defect("accept", 406, -32600, "Accept", |request| request.accept("text/html")),
    defect("too large", 413, -32600, "larger", |request| {
        let body = request.body_bytes();
        request.raw([&body[..], &[b' '; LIMIT]].concat())
    }),
    defect("not JSON", 400, -32700, "JSON", |request| {
        let body = request.body_bytes();
        request.raw([&body[..body.len() - 1], b",}"].concat())
    }),
    defect("envelope", 400, -32600, "jsonrpc", |request| request.member("jsonrpc", json!("1.0"))),
    defect("no version header", 400, -32020, "MCP-Protocol-Version header is missing", |request| {
        request.without_header("mcp-protocol-version")
    }),
    defect("no version in _meta", 400, -32602, "protocolVersion", |request| {
        request.without_reserved("protocolVersion")
    }),
    defect("versions differ", 400, -32020, "differs", |request| {
        request.header("mcp-protocol-version", "2027-01-01")
    }),
    defect("unsupported version", 400, -32022, "2031-01-01", |request| {
        request.version("2031-01-01")
    }),
    defect("no capabilities", 400, -32602, "clientCapabilities", |request| {
        request.without_reserved("clientCapabilities")
    }),
    defect("no Mcp-Method", 400, -32020, "Mcp-Method header is missing", |request| {
        request.without_header("mcp-method")
    }),
    defect("Mcp-Method differs", 400, -32020, "Mcp-Method header differs", |request| {
        request.header("mcp-method", "tools/list")
    }),
    defect("unknown method", 404, -32601, "tools/nothing", |request| {
        request.member("method", json!("tools/nothing")).header("mcp-method", "tools/nothing")
    }),
    defect("no Mcp-Name", 400, -32020, "Mcp-Name", |request| request.without_header("mcp-name")),
    defect("arguments", 200, -32602, "arguments", |request| request.param("arguments", json!([]))),
    defect("Mcp-Param", 400, -32020, "Mcp-Param-Zone", |request| {
        request.without_header("mcp-param-zone")
    }),
    defect("capability", 400, -32021, "sampling", |request| {
        request.reserved("clientCapabilities", json!({}))
    }),
];

const fn defect(
    what: &'static str,
    status: u16,
    code: i64,
    words: &'static str,
    inflict: fn(Request) -> Request,
) -> Defect {
    Defect { what, status, code, words, inflict }
}

/// A request without defects.
fn right() -> Request {
    Request::call("strict", json!({"zone": "north"}))
        .header("mcp-param-zone", "north")
        .reserved("clientCapabilities", json!({"sampling": {}}))
        .bearer(TOKEN)
        .id(1)
}

async fn check(server: &HttpFixture, request: Request, expected: &Defect, also: &str) {
    let response = server.send(request).await;
    let error: Value = response.json()["error"].clone();
    let told = (response.status(), error["code"].as_i64());
    let case = format!("{} beside {also}", expected.what);
    assert_eq!(told, (expected.status, Some(expected.code)), "{case}: {error}");
    assert!(error["message"].as_str().unwrap().contains(expected.words), "{case}: {error}");
}

#[tokio::test]
async fn request_with_two_defects_reports_the_earlier_check() {
    let config = HttpConfig::new().authenticator(StaticTokens::new().with("someone", TOKEN));
    let server = HttpFixture::build(config, |server| {
        server.limits(|limits| limits.max_message_bytes = LIMIT)
    })
    .await;
    assert_eq!(server.send(right()).await.text(), "sampled");
    for (place, earlier) in DEFECTS.iter().enumerate() {
        check(&server, (earlier.inflict)(right()), earlier, "nothing").await;
        for later in &DEFECTS[place + 1..] {
            // The later defect is applied first: if both change the same part, the earlier one
            // remains.
            let request = (earlier.inflict)((later.inflict)(right()));
            check(&server, request, earlier, later.what).await;
        }
    }
}
