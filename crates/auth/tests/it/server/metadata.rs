//! Tests of the protected resource metadata.

use outlive_auth::server::{Issuer, ResourceServer, ResourceServerBuildError};
use serde_json::json;

use super::support::{ISSUER, METADATA, Protected, RESOURCE, Sent, Signer, StandingClock, builder};

// ARS-02, ARS-03, ARS-04, ARS-09, ARS-14, ARS-18
#[tokio::test]
async fn metadata_is_public_at_both_paths() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let auth = builder(&signer)
        .scopes(["offline_access"])
        .advertised_scopes(["files"])
        .name("Files")
        .documentation("https://docs.example")
        .build()
        .unwrap();
    assert_eq!(auth.metadata_url(), METADATA);
    let server = Protected::guarded(auth).await;
    let expected = json!({
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["files", "mcp"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Files",
        "resource_documentation": "https://docs.example",
        "dpop_signing_alg_values_supported":
            ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"],
    });
    for path in
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
    {
        // Web pages of any origin may read it, unlike other endpoints.
        for request in [
            Sent::new("GET", path),
            Sent::new("GET", path).header("origin", "https://anywhere.example"),
            Sent::new("GET", path).bearer("nonsense"),
        ] {
            let got = server.send(&request).await;
            assert_eq!((got.status, got.json()), (200, expected.clone()));
            assert_eq!(got.header("content-type"), Some("application/json"));
            assert_eq!(got.header("access-control-allow-origin"), Some("*"));
        }
        let preflight = Sent::new("OPTIONS", path)
            .header("origin", "https://anywhere.example")
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "mcp-protocol-version");
        let got = server.send(&preflight).await;
        assert_eq!((got.status, got.header("access-control-allow-origin")), (204, Some("*")));
        assert_eq!(got.header("access-control-allow-headers"), Some("*"));
        assert_eq!(server.send(&Sent::new("POST", path)).await.status, 405);
        // The allowlist of hosts applies here too.
        let foreign = Sent::new("GET", path).replaced("host", "evil.example");
        assert_eq!(server.send(&foreign).await.status, 403);
    }
    let other = Sent::new("GET", "/.well-known/oauth-protected-resource/other");
    assert_eq!(server.send(&other).await.status, 401);
    // A challenge never contains `offline_access`.
    let got = server.send(&Sent::call("whoami")).await;
    assert!(got.challenge().ends_with("scope=\"mcp\""), "{got:?}");
}

// SEC-07
#[tokio::test]
async fn web_page_may_send_a_token_and_read_the_challenge() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let preflight = Sent::new("OPTIONS", "/mcp")
        .header("origin", "http://localhost:3000")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization, dpop, content-type");
    let got = server.send(&preflight).await;
    assert_eq!(got.status, 204);
    let allowed = got.header("access-control-allow-headers");
    assert_eq!(allowed, Some("authorization, dpop, content-type"));
    let got = server.send(&Sent::call("whoami").header("origin", "http://localhost:3000")).await;
    assert_eq!(got.status, 401);
    let read = got.header("access-control-expose-headers").unwrap();
    assert!(read.contains("WWW-Authenticate") && read.contains("DPoP-Nonce"), "{read}");
}

#[test]
fn metadata_of_a_root_resource_is_at_the_root() {
    let server = |uri: &str| ResourceServer::builder(uri).issuer(Issuer::new(ISSUER)).build();
    for uri in ["https://mcp.example", "https://mcp.example/"] {
        let url = "https://mcp.example/.well-known/oauth-protected-resource";
        assert_eq!(server(uri).unwrap().metadata_url(), url);
    }
    for uri in ["", "mcp.example", "https://mcp.example/?a", "https://mcp.example/#a", "stdio:x"] {
        assert!(matches!(server(uri), Err(ResourceServerBuildError::Resource { .. })), "{uri}");
    }
}

#[test]
fn build_rejects_missing_and_invalid_issuers() {
    let server = ResourceServer::builder(RESOURCE);
    assert_eq!(server.build().unwrap_err(), ResourceServerBuildError::NoIssuer);
    for issuers in [vec!["not a url"], vec![ISSUER, ISSUER], vec!["https://id.example?x"]] {
        let server = issuers
            .into_iter()
            .fold(ResourceServer::builder(RESOURCE), |server, id| server.issuer(Issuer::new(id)));
        assert!(matches!(server.build(), Err(ResourceServerBuildError::Issuer { .. })));
    }
    // Clear-text URLs are rejected at build time, not with the first request.
    for open in [
        Issuer::new("http://id.example"),
        Issuer::new(ISSUER).jwks_url("http://id.example/keys"),
        Issuer::new(ISSUER).introspection("http://id.example/i", "a", "b"),
    ] {
        let error = ResourceServer::builder(RESOURCE).issuer(open).build().unwrap_err();
        assert!(error.to_string().contains("https:"), "{error}");
    }
    let careless = Issuer::new(ISSUER).strict_audience(false);
    let careless = ResourceServer::builder(RESOURCE).issuer(careless).build();
    assert!(matches!(careless, Err(ResourceServerBuildError::Issuer { .. })));
}

// ARS-20
#[test]
fn debug_output_hides_secrets() {
    let issuer = Issuer::new(ISSUER).introspection("https://id.example/i", "client", "s3cret");
    let builder = ResourceServer::builder(RESOURCE)
        .issuer(issuer)
        .dpop_nonces(std::time::Duration::from_secs(60), Some(b"n0nce"));
    let shown = format!("{builder:?}");
    let shown = format!("{shown} {:?}", builder.build().unwrap());
    assert!(!shown.contains("s3cret") && !shown.contains("czNjcmV0"), "{shown}");
    assert!(!shown.contains("n0nce"), "{shown}");
}

/// Sends a GET to the listener of an application, and returns the whole response.
async fn get(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: mcp.example\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn metadata_service_in_an_axum_application_serves_both_paths() {
    let clock = StandingClock::new();
    let auth = builder(&Signer::new(&clock)).build().unwrap();
    let document = String::from_utf8(auth.metadata().to_vec()).unwrap();
    let metadata = auth.metadata_service();
    let app = axum::Router::new()
        .route_service("/.well-known/oauth-protected-resource", metadata.clone())
        .route_service("/.well-known/oauth-protected-resource/{*path}", metadata);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    for path in
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
    {
        let response = get(address, path).await;
        assert!(
            response.starts_with("HTTP/1.1 200") && response.ends_with(&document),
            "{response}"
        );
        assert!(response.contains("content-type: application/json"), "{response}");
    }
    let other = get(address, "/.well-known/oauth-protected-resource/other").await;
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    serving.abort();
}
