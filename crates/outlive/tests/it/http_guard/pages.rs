//! Text pages beside the endpoint, for example health checks.

use http::StatusCode;
use outlive::server::http::{HttpConfig, StaticTokens};

use crate::support::http::{HttpFixture, MODERN, Request};

#[tokio::test]
async fn text_page_needs_no_token_but_allowed_host() {
    let config = HttpConfig::new()
        .authenticator(StaticTokens::new().with("anna", "annas-token-0123456789"))
        .text_page("/healthz", || async { (StatusCode::OK, "alive".to_owned()) })
        .text_page("/readyz", || async { (StatusCode::SERVICE_UNAVAILABLE, "wait".to_owned()) });
    let server = HttpFixture::with(config).await;
    let page = |path: &str| Request::new("GET", MODERN).target(path);
    let alive = server.send(&page("/healthz")).await;
    assert_eq!((alive.status(), &alive.body[..]), (200, &b"alive"[..]));
    assert_eq!(alive.header("cache-control"), Some("no-store"));
    assert_eq!(server.send(&page("/readyz")).await.status(), 503);
    assert_eq!(server.send(&page("/healthz/x")).await.status(), 401);
    assert_eq!(server.send(&Request::new("POST", MODERN).target("/healthz")).await.status(), 405);
    let stranger = page("/healthz").header("host", "evil.example");
    assert_eq!(server.send(&stranger).await.status(), 403);
}
