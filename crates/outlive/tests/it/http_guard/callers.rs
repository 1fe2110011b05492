//! Authenticators, which check every request on its own.

use outlive::server::{
    Principal,
    http::{AuthDecision, AuthRejection, Authenticator, HttpConfig, StaticTokens},
};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, MODERN, Request};

const ANNA: &str = "annas-token-0123456789";

async fn guarded() -> HttpFixture {
    HttpFixture::with(HttpConfig::new().authenticator(StaticTokens::new().with("anna", ANNA))).await
}

#[tokio::test]
async fn request_without_valid_token_is_401() {
    // ARS-05, ARS-13
    let server = guarded().await;
    let call = Request::call("whoami", json!({}));
    let bearer = |value: &str| call.clone().header("authorization", value);
    let invalid = Some("Bearer error=\"invalid_token\"");
    let rows = [
        (call.clone(), Some("Bearer")),
        (bearer("Bearer wrong-token-0123456789"), invalid),
        (bearer("Bearer"), Some("Bearer")),
        (bearer("Bearer "), Some("Bearer")),
        (bearer(ANNA), Some("Bearer")),
        (bearer(&format!("Basic {ANNA}")), Some("Bearer")),
        (bearer(&format!("Bearer {ANNA}x")), invalid),
        (bearer(&format!("Bearer {}", ANNA.to_uppercase())), invalid),
        (call.clone().bearer(ANNA).add_header("authorization", "Bearer other"), Some("Bearer")),
        (call.clone().target(format!("/mcp?access_token={ANNA}")), Some("Bearer")),
    ];
    for (request, challenge) in rows {
        let shown = String::from_utf8_lossy(&request.head_bytes()).into_owned();
        let response = server.send(&request).await;
        assert_eq!(
            (response.status(), response.header("www-authenticate")),
            (401, challenge),
            "{shown}"
        );
        let body = response.json();
        assert_eq!((body.get("id"), &body["error"]["code"]), (None, &json!(-32600)));
        assert!(!body.to_string().contains("token-0123456789"), "{body}");
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(server.send(bearer(&format!("{scheme}  {ANNA} "))).await.text(), "anna");
    }
}

#[tokio::test]
async fn rejection_before_body_keeps_connection_usable() {
    let server = guarded().await;
    let call = Request::call("whoami", json!({}));
    let mut connection = server.connect().await;
    for refused in [
        call.clone(),
        call.clone().header("origin", "https://evil.example"),
        call.clone().header("host", "evil.example"),
        call.clone().bearer(ANNA).header("content-type", "text/plain"),
    ] {
        // The client waits for `100 Continue`, which precedes the response.
        let refused = refused.header("expect", "100-continue");
        connection.write(&refused.head_bytes()).await;
        assert_eq!(connection.response(&refused).await.status(), 100);
        connection.write(&refused.body_bytes()).await;
        let answer = connection.response(&refused).await;
        assert!((400..500).contains(&answer.status()), "{}", answer.status());
        assert_eq!(answer.header("connection"), None);
    }
    assert_eq!(connection.send(&call.clone().bearer(ANNA)).await.text(), "anna");
    // A body too large to discard closes the connection, and the response announces it.
    let long = Request::call("whoami", json!({"x": "x".repeat(100_000)}));
    connection.write(&long.head_bytes()).await;
    let answer = connection.response(&long).await;
    assert_eq!((answer.status(), answer.header("connection")), (401, Some("close")));
}

#[tokio::test]
async fn every_request_without_token_is_401() {
    // HTTP26-15, ARS-12, ARS-18
    let server = guarded().await;
    let session = server.session_as("2025-11-25", Some(ANNA)).await;
    let naked = |request: Request| request.without_header("authorization");
    for request in [
        Request::modern("server/discover"),
        Request::initialize("2025-11-25"),
        Request::modern_notification("notifications/whatever"),
        naked(session.request("ping")),
        naked(session.get()),
        naked(session.delete()),
        Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream"),
        Request::post("2024-11-05").target("/messages?session=x").json(json!({})),
        Request::new("GET", MODERN).target("/nothing"),
        Request::post(MODERN).raw("not json"),
    ] {
        assert_eq!(server.send(&request).await.status(), 401);
    }
    assert_eq!(server.send(session.call("whoami", json!({}))).await.text(), "anna");
}

/// An authenticator that decides by the query, sometimes asynchronously.
struct ByQuery;

impl Authenticator for ByQuery {
    fn authenticate<'a>(&'a self, parts: &'a http::request::Parts) -> AuthDecision<'a> {
        match parts.uri.query().unwrap_or_default() {
            "late" => AuthDecision::Later(Box::pin(async {
                tokio::task::yield_now().await;
                Ok(Principal::named("latecomer"))
            })),
            "late_no" => AuthDecision::Later(Box::pin(async { Err(AuthRejection::no_token()) })),
            "scope" => AuthDecision::Now(Err(AuthRejection::forbidden().with_challenge(
                r#"Bearer error="insufficient_scope", scope="write""#.parse().unwrap(),
            ))),
            "never" => AuthDecision::Now(Err(AuthRejection::forbidden())),
            name => AuthDecision::Now(Ok(Principal::named(name))),
        }
    }
}

#[tokio::test]
async fn custom_authenticator_decides_asynchronously_with_challenge() {
    // ARS-05, ARS-07
    let server = HttpFixture::with(HttpConfig::new().authenticator(ByQuery)).await;
    let call = |query: &str| Request::call("whoami", json!({})).target(format!("/mcp?{query}"));
    for name in ["anna", "bert"] {
        assert_eq!(server.send(call(name)).await.text(), name);
    }
    assert_eq!(server.send(call("late")).await.text(), "latecomer");
    for (query, status, challenge) in [
        ("late_no", 401, Some("Bearer")),
        ("scope", 403, Some(r#"Bearer error="insufficient_scope", scope="write""#)),
        ("never", 403, None),
    ] {
        let response = server.send(call(query)).await;
        assert_eq!(
            (response.status(), response.header("www-authenticate")),
            (status, challenge),
            "{query}"
        );
        assert_eq!(response.json().get("id"), None);
        assert_ne!(response.json()["error"]["message"], Value::Null);
    }
}

#[tokio::test]
async fn client_info_and_headers_do_not_set_principal() {
    // SEC-09, HTTP26-47
    let server = guarded().await;
    let call = Request::call("whoami", json!({}))
        .reserved("clientInfo", json!({"name": "bert", "version": "1"}))
        .header("mcp-param-tenant", "bert")
        .header("x-user", "bert")
        .bearer(ANNA);
    assert_eq!(server.send(call).await.text(), "anna");
    let open = HttpFixture::start().await;
    let named = Request::call("whoami", json!({}))
        .reserved("clientInfo", json!({"name": "bert", "version": "1"}));
    assert_eq!(open.send(named.bearer(ANNA)).await.text(), "anonymous");
}
