//! Tests of introspection: opaque tokens, and tokens that may be revoked.

use std::{sync::Arc, time::Duration};

use outlive_auth::server::{Issuer, ResourceServer, ResourceServerBuilder};
use serde_json::{Value, json};

use super::support::{ISSUER, Protected, RESOURCE, Site, StandingClock, changed};

const INVALID: &str = "Bearer error=\"invalid_token\", error_description=\"the token is not valid for this server; get a new one\", resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\"";

fn issuer(site: &Site) -> Issuer {
    Issuer::new(ISSUER).introspection(site.url("/introspect"), "rs:1", "pass word")
}

fn builder(issuer: Issuer, clock: &StandingClock) -> ResourceServerBuilder {
    ResourceServer::builder(RESOURCE).issuer(issuer).scopes(["mcp"]).clock(Arc::new(clock.clone()))
}

fn active(clock: &StandingClock, changes: Value) -> String {
    let claims = json!({
        "active": true, "iss": ISSUER, "sub": "ann", "client_id": "app", "aud": RESOURCE,
        "scope": "mcp write", "exp": clock.seconds() + 600,
    });
    changed(claims, changes).to_string()
}

// ARS-10, ARS-19
#[tokio::test]
async fn introspection_result_is_cached_until_a_revocation_takes_effect() {
    let (clock, site) = (StandingClock::new(), Site::open().await);
    let server = Protected::with(builder(issuer(&site), &clock)).await;
    site.publish("/introspect", 200, active(&clock, json!({})));
    for _ in 0..5 {
        let got = server.call("whoami", "opaque").await;
        assert!(got.text().starts_with("https://id.example|ann|app "));
    }
    assert_eq!(site.reads("/introspect"), 1);
    let asked = site.last_request();
    assert!(asked.starts_with("POST /introspect HTTP/1.1\r\n"), "{asked}");
    // `rs%3A1:pass%20word`, encoded as RFC 6749 requires.
    assert!(asked.contains("authorization: Basic cnMlM0ExOnBhc3MlMjB3b3Jk\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\ntoken=opaque&token_type_hint=access_token"), "{asked}");

    site.publish("/introspect", 200, r#"{"active":false}"#);
    assert_eq!(server.call("whoami", "opaque").await.status, 200);
    clock.advance(Duration::from_secs(31));
    for _ in 0..3 {
        let got = server.call("whoami", "opaque").await;
        assert_eq!((got.status, got.challenge()), (401, INVALID), "revoked");
    }
    assert_eq!(site.reads("/introspect"), 2, "inactive results are cached too");
    assert_eq!(server.calls(), 6);
}

#[tokio::test]
async fn introspected_claims_follow_the_same_rules() {
    let (clock, site) = (StandingClock::new(), Site::open().await);
    let server = Protected::with(builder(issuer(&site), &clock)).await;
    let now = clock.seconds();
    let rows = [
        json!({"active": false}),
        json!({"exp": now - 31}),
        json!({"nbf": now + 31}),
        json!({"iss": "https://evil.example"}),
        json!({"aud": "https://other.example"}),
        json!({"aud": null}),
        json!({"sub": null, "client_id": null}),
        json!({"cnf": {"x5t#S256": "abc"}}),
    ];
    for (number, changes) in rows.into_iter().enumerate() {
        site.publish("/introspect", 200, active(&clock, changes.clone()));
        let got = server.call("whoami", &format!("token-{number}")).await;
        assert_eq!((got.status, got.challenge()), (401, INVALID), "{changes}");
    }
    site.publish("/introspect", 200, active(&clock, json!({"cnf": {"jkt": "abc"}})));
    let got = server.call("whoami", "bound").await;
    assert!(got.challenge().starts_with("DPoP error=\"invalid_token\""), "{got:?}");
    site.publish("/introspect", 200, active(&clock, json!({"scope": "other"})));
    assert_eq!(server.call("whoami", "little").await.status, 403);
    assert_eq!(server.calls(), 0);
    // Issuer and expiry are optional in an introspection response.
    let brief = json!({"iss": null, "exp": null});
    site.publish("/introspect", 200, active(&clock, brief));
    assert_eq!(server.call("whoami", "brief").await.status, 200);
}

#[tokio::test]
async fn token_without_audience_is_accepted_if_configured() {
    let (clock, site) = (StandingClock::new(), Site::open().await);
    let alone = issuer(&site).strict_audience(false);
    let server = Protected::with(builder(alone, &clock)).await;
    site.publish("/introspect", 200, active(&clock, json!({"aud": null})));
    assert_eq!(server.call("whoami", "one").await.status, 200);
    site.publish("/introspect", 200, active(&clock, json!({"aud": []})));
    assert_eq!(server.call("whoami", "none").await.status, 200);
    // An audience in the response is still checked.
    site.publish("/introspect", 200, active(&clock, json!({"aud": "https://other.example"})));
    assert_eq!(server.call("whoami", "two").await.status, 401);
}

#[tokio::test]
async fn failed_introspection_returns_service_unavailable() {
    let (clock, site) = (StandingClock::new(), Site::open().await);
    let server = Protected::with(builder(issuer(&site), &clock)).await;
    for (status, body) in
        [(500, "{}"), (401, r#"{"error":"invalid_client"}"#), (200, "[]"), (200, "{}")]
    {
        site.publish("/introspect", status, body);
        let got = server.call("whoami", "opaque").await;
        assert_eq!((got.status, got.header("retry-after")), (503, Some("5")), "{status} {body}");
        assert_eq!(got.header("www-authenticate"), None);
    }
    site.publish("/introspect", 200, active(&clock, json!({})));
    assert_eq!(server.call("whoami", "opaque").await.status, 200);
    assert_eq!(server.calls(), 1);
}
