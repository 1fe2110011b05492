//! A server whose callers send signed tokens, and their issuer, from which the server fetches the
//! keys.

use anyhow::Result;
use axum::{Router, http::header, routing::get};
use outlive::auth::{
    fetch::{Fetcher, NetworkPolicy},
    jose::{Algorithm, JwkSet, SigningKey},
    server::{Issuer, ResourceServer},
};
use serde_json::json;

use crate::echo;

/// The public URL of the server. It is never resolved.
const RESOURCE: &str = "https://mcp.example/mcp";

/// Number of groups in the long token, which has about two thousand bytes.
const GROUPS: usize = 32;

/// Starts both and issues two tokens: one of usual size and a long one.
pub(super) async fn start() -> Result<(String, impl Sized)> {
    let key = SigningKey::generate(Algorithm::Es256)?.with_id("2026-07");
    let (issuer, issuing) = issue(JwkSet::new([key.public()]).to_json()).await?;
    let auth = ResourceServer::builder(RESOURCE)
        .issuer(Issuer::new(&issuer).jwks_url(format!("{issuer}/keys")))
        .scopes(["mcp"])
        .fetch(Fetcher::new().network_policy(NetworkPolicy::Local))
        .build()?;
    let config = super::unlimited().authenticator(auth);
    let serving = echo::server()?.serve_http("127.0.0.1:0", config).await?;
    let token = |groups: usize| {
        let groups: Vec<String> =
            (0..groups).map(|number| format!("{number:08}-4a5b-4c6d-8e7f-{number:012}")).collect();
        let claims = json!({
            "iss": issuer, "sub": "00u1a2b3c4d5e6f7g8h9", "client_id": "0oa1b2c3d4e5f6g7h8i9",
            "aud": RESOURCE, "scope": "mcp read write", "jti": "f3b1c2d4e5a697887766554433221100",
            "iat": 1_790_000_000, "exp": u32::MAX, "groups": groups,
        });
        key.sign("at+jwt", &claims)
    };
    let said = format!("{} {} {}", serving.address().port(), token(0)?, token(GROUPS)?);
    Ok((said, (serving, issuing)))
}

/// Serves the keys and returns their URL.
async fn issue(keys: String) -> Result<(String, impl Sized)> {
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], keys) };
    let router = Router::new().route("/keys", get(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let issuer = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((issuer, serving))
}
