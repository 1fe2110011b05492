//! Tests of principals, and of hiding credentials from handlers.

use std::{collections::HashSet, sync::Arc};

use outlive_auth::server::ResourceServer;
use outlive_protocol::Principal;
use outlive_transport::http::{AuthDecision, Authenticator};
use serde_json::json;

use super::support::{ISSUER, Protected, RESOURCE, Sent, Signer, StandingClock};

fn name(text: &str) -> String {
    text.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn principal_consists_of_issuer_subject_and_client() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let mut names = HashSet::new();
    for (changes, expected) in [
        (json!({}), "https://id.example|ann|app"),
        (json!({"client_id": "other"}), "https://id.example|ann|other"),
        (json!({"client_id": null, "azp": "by-azp"}), "https://id.example|ann|by-azp"),
        (json!({"sub": "bob"}), "https://id.example|bob|app"),
        (json!({"sub": null}), "https://id.example|app|app"),
        (json!({"client_id": null}), "https://id.example|ann|"),
        (json!({"sub": "ann|app"}), "https://id.example|ann%7Capp|app"),
    ] {
        let got = name(&server.call("whoami", &signer.token(changes)).await.text());
        assert_eq!(got, expected);
        assert!(names.insert(got));
    }
    // A newer token with more scopes belongs to the same principal.
    let more = signer.token(json!({"scope": "mcp write", "exp": clock.seconds() + 9}));
    let got = name(&server.call("whoami", &more).await.text());
    assert_eq!(got, "https://id.example|ann|app");
}

#[tokio::test]
async fn configured_tenant_claim_is_part_of_the_principal() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let builder = ResourceServer::builder(RESOURCE)
        .issuer(signer.issuer().tenant_claim("https://id.example/tenant"))
        .clock(Arc::new(clock.clone()));
    let server = Protected::with(builder).await;
    let token = |tenant| signer.token(json!({"https://id.example/tenant": tenant}));
    for (tenant, expected) in
        [("t1", "https://id.example|ann|app|t1"), ("t 2", "https://id.example|ann|app|t%202")]
    {
        let got = server.call("whoami", &token(json!(tenant))).await;
        assert_eq!(name(&got.text()), expected);
    }
    for bad in [json!(null), json!(""), json!(7), json!(["t1"])] {
        assert_eq!(server.call("whoami", &token(bad)).await.status, 401);
    }
    assert_eq!(ISSUER, "https://id.example");
}

#[tokio::test]
async fn configured_client_claim_is_used() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let builder = ResourceServer::builder(RESOURCE)
        .issuer(signer.issuer().client_claim("cid"))
        .clock(Arc::new(clock.clone()));
    let server = Protected::with(builder).await;
    let got = server.call("whoami", &signer.token(json!({"cid": "other"}))).await;
    assert_eq!(name(&got.text()), "https://id.example|ann|other");
    assert_eq!(server.call("whoami", &signer.token(json!({}))).await.status, 401);
}

// ARS-11
#[tokio::test]
async fn handler_does_not_see_the_token() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let token = signer.token(json!({}));
    let request = Sent::call("whoami")
        .bearer(&token)
        .header("dpop", "proof-of-something")
        .header("x-own", "seen");
    // The first request verifies the token, and the second uses the cache; neither shows the token.
    for _ in 0..2 {
        let text = server.send(&request).await.text();
        assert!(text.contains("x-own"), "{text}");
        assert!(!text.contains("authorization") && !text.contains(&token), "{text}");
        assert!(!text.contains("proof-of-something"), "{text}");
    }
}

/// Returns the principal of a token, as the endpoint and the console see it.
async fn principal(auth: &ResourceServer, token: &str) -> Option<Principal> {
    let request = http::Request::builder().header("authorization", format!("Bearer {token}"));
    let (parts, ()) = request.body(()).unwrap().into_parts();
    match auth.authenticate(&parts) {
        AuthDecision::Now(verdict) => verdict.ok(),
        AuthDecision::Later(verdict) => verdict.await.ok(),
    }
}

#[tokio::test]
async fn person_is_the_same_in_all_clients() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let build = |issuer| {
        let builder = ResourceServer::builder(RESOURCE).issuer(issuer);
        builder.clock(Arc::new(clock.clone())).build().unwrap()
    };
    let auth = build(signer.issuer());
    let editor = principal(&auth, &signer.token(json!({"client_id": "editor"}))).await.unwrap();
    let browser = principal(&auth, &signer.token(json!({"client_id": "browser"}))).await.unwrap();
    assert_ne!(editor, browser);
    assert_eq!(editor.person(), Some("https://id.example|ann"));
    assert_eq!(editor.person(), browser.person());

    let auth = build(signer.issuer().person_claim("oid").tenant_claim("tid"));
    let claims = json!({"sub": "pairwise-1", "oid": "ann", "tid": "t1"});
    let ann = principal(&auth, &signer.token(claims)).await.unwrap();
    assert_eq!(ann.person(), Some("https://id.example|ann|t1"));
    assert!(principal(&auth, &signer.token(json!({"tid": "t1"}))).await.is_none());
}

#[tokio::test]
async fn token_of_deciding_client_decides_and_is_rejected_by_the_endpoint() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let builder = || {
        ResourceServer::builder(RESOURCE)
            .issuer(signer.issuer().deciding_client("console"))
            .clock(Arc::new(clock.clone()))
    };
    let token = |client: &str| signer.token(json!({"client_id": client}));
    let auth = builder().build().unwrap();
    assert!(principal(&auth, &token("console")).await.unwrap().is_deciding());
    assert!(!principal(&auth, &token("editor")).await.unwrap().is_deciding());
    let server = Protected::with(builder()).await;
    assert_eq!(server.call("whoami", &token("console")).await.status, 401);
    assert_eq!(server.call("whoami", &token("editor")).await.status, 200);
}
