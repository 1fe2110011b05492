//! Tests of tokens that are bound to a key (DPoP).

use std::sync::{Arc, Mutex};

use outlive_auth::{
    client::{OAuth, OAuthError},
    jose::{Algorithms, Jwk, Jws},
};
use serde_json::{Value, json};

use super::kit::{Robot, Seen, Site, Ways, World, answer, link, post, refused};

/// Returns the claims of a proof, after verifying its signature with the key in its header.
fn proof(seen: &Seen) -> Value {
    let text = seen.header("dpop").expect("a proof");
    let header = outlive_auth::jose::decode_base64url(text.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["typ"], "dpop+jwt");
    assert!(header["jwk"].get("d").is_none());
    let key = Jwk::from_json(&header["jwk"].to_string()).unwrap();
    let jws = Jws::parse(text).unwrap();
    let mut claims: Value =
        serde_json::from_slice(jws.verify([&key], Algorithms::ALL).unwrap()).unwrap();
    claims["key"] = json!(key.thumbprint());
    claims
}

/// Starts an MCP server and authorization server that accept only bound tokens with this nonce.
async fn bound(nonce: Option<&'static str>) -> (Site, Arc<Mutex<Vec<Value>>>) {
    let proofs = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&proofs);
    let site = Site::start(move |base, seen| {
        let place = format!("{base}{}", seen.path);
        match seen.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => {
                answer(200, json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            "/.well-known/oauth-authorization-server" => answer(
                200,
                json!({
                    "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                    "code_challenge_methods_supported": ["S256"], "dpop_signing_alg_values_supported": ["ES256"],
                }),
            ),
            "/register" => answer(201, json!({"client_id": "c"})),
            "/authorize" => {
                let back = format!("{}?code=c&state={}", seen.asks("redirect_uri").unwrap(), seen.asks("state").unwrap());
                answer(302, Value::Null).with("location", back)
            }
            path => {
                if path == "/mcp" && seen.header("authorization").is_none() {
                    return answer(401, Value::Null).with("www-authenticate", "DPoP algs=\"ES256\"");
                }
                let claims = proof(seen);
                assert_eq!(claims["htm"], "POST");
                assert_eq!(claims["htu"], place.as_str());
                noted.lock().unwrap().push(claims.clone());
                if nonce.is_some_and(|nonce| claims["nonce"] != nonce) {
                    let status = if path == "/mcp" { 401 } else { 400 };
                    return answer(status, json!({"error": "use_dpop_nonce"}))
                        .with("dpop-nonce", nonce.unwrap())
                        .with("www-authenticate", "DPoP error=\"use_dpop_nonce\"");
                }
                if path == "/token" {
                    return answer(200, json!({"access_token": "secret-bound", "token_type": "DPoP"}));
                }
                assert_eq!(seen.header("authorization"), Some("DPoP secret-bound"));
                let hash = ring::digest::digest(&ring::digest::SHA256, b"secret-bound");
                assert_eq!(claims["ath"], outlive_auth::jose::encode_base64url(hash));
                answer(200, json!({}))
            }
        }
    })
    .await;
    (site, proofs)
}

#[tokio::test]
async fn every_request_has_a_separate_proof() {
    for (nonce, count) in [(None, 4), (Some("n-1"), 5)] {
        let (site, proofs) = bound(nonce).await;
        // The proof does not cover the query.
        let url = format!("{}/mcp?tenant=1", site.url);
        let oauth = OAuth::builder(&url).login(Robot::default()).build();
        let link = link(&url, &oauth);
        for _ in 0..3 {
            assert_eq!(post(&link, "").await.unwrap(), 200);
        }
        let proofs = proofs.lock().unwrap().clone();
        // One proof for the token request and three for requests; one retry for the nonce.
        assert_eq!(proofs.len(), count, "{nonce:?}");
        let mut ids: Vec<&str> = proofs.iter().map(|it| it["jti"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(proofs.iter().all(|it| it["key"] == proofs[0]["key"]));
        assert_eq!(
            site.all("/authorize")[0].asks("dpop_jkt").as_deref(),
            proofs[0]["key"].as_str()
        );
        assert!(oauth.login_info().await.unwrap().unwrap().bound);
    }
}

#[tokio::test]
async fn client_that_requires_dpop_rejects_bearer_tokens() {
    let world = World::new().await;
    let error = refused(&link(&world.url(), &world.oauth().dpop().build()), "").await;
    assert!(matches!(error, OAuthError::Unsuitable { .. }), "{error}");
    assert_eq!(world.logins(), 0);
    // The server declares DPoP, but issues a bearer token.
    let issuer = json!({"dpop_signing_alg_values_supported": ["ES256"]});
    let world = World::with(Ways { issuer, ..Ways::default() }).await;
    let oauth = world.oauth().dpop().build();
    let error = refused(&link(&world.url(), &oauth), "").await;
    assert!(matches!(error, OAuthError::Unsuitable { .. }), "{error}");
    assert!(oauth.login_info().await.unwrap().is_none());
}
