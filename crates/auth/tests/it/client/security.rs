//! Tests of secrets, clear text, unsafe URLs and networks.

use outlive_auth::{
    client::{MemoryCredentialStore, OAuth, OAuthError},
    fetch::NetworkPolicy,
};
use outlive_transport::client::{TokenRequest, TokenSource};
use serde_json::json;

use super::kit::{Robot, Site, Ways, World, answer, link, post, refused};

// ACL-02
#[tokio::test]
async fn token_is_not_sent_to_another_server() {
    let world = World::new().await;
    let oauth = world.oauth().build();
    assert_eq!(post(&link(&world.url(), &oauth), "").await.unwrap(), 200);
    let other = Site::start(|_, _| answer(401, json!(null))).await;
    assert_eq!(post(&link(&other.url, &oauth), "").await.unwrap(), 401);
    assert!(other.all("/").iter().all(|seen| seen.header("authorization").is_none()));
    assert_eq!((other.lines().len(), world.logins()), (1, 1));
}

#[tokio::test]
async fn token_is_not_sent_in_clear_text() {
    let oauth = OAuth::builder("http://mcp.example.com/mcp").login(Robot::default()).build();
    let error = oauth.login().await.unwrap_err();
    assert!(matches!(error, OAuthError::Insecure { .. }), "{error}");
    assert!(error.to_string().contains("https:"), "{error}");
}

// ACL-08, ACL-09
#[tokio::test]
async fn login_is_rejected_if_the_server_lacks_pkce() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let issuer = json!({"code_challenge_methods_supported": methods});
        let world = World::with(Ways { issuer, ..Ways::default() }).await;
        let error = refused(&link(&world.url(), &world.oauth().build()), "").await;
        assert!(error.to_string().contains("PKCE"), "{error}");
        assert_eq!(world.issuer.lines(), ["GET /.well-known/oauth-authorization-server"]);
    }
}

// ACL-23, ACL-34
#[tokio::test]
async fn unsafe_authorization_endpoint_is_not_opened() {
    for page in [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "http://other.example.com/authorize",
        "https://user:secret@as.example.com/authorize",
        "--help",
    ] {
        let issuer = json!({"authorization_endpoint": page});
        let (world, robot) =
            (World::with(Ways { issuer, ..Ways::default() }).await, Robot::default());
        let oauth = world.oauth().login(robot.clone()).build();
        let error = refused(&link(&world.url(), &oauth), "").await;
        assert!(matches!(error, OAuthError::Fetch(_)), "{page}: {error}");
        assert!(robot.pages.lock().unwrap().is_empty(), "{page}");
    }
}

// ACL-24
#[tokio::test]
async fn public_server_cannot_redirect_discovery_to_a_private_network() {
    for place in ["https://127.0.0.1:1/x", "https://10.0.0.1/x", "https://169.254.169.254/x"] {
        let site = Site::start(move |_, _| {
            answer(401, json!(null))
                .with("www-authenticate", format!("Bearer resource_metadata=\"{place}\""))
        })
        .await;
        let url = format!("{}/mcp", site.url);
        // Treats the server as one on the internet.
        let oauth = OAuth::builder(&url)
            .login(Robot::default())
            .network_policy(NetworkPolicy::Public)
            .build();
        let error = refused(&link(&url, &oauth), "").await;
        let OAuthError::Fetch(error) = error else { panic!("{error}") };
        // Without the feature `tls`, the fetch fails earlier.
        assert!(error.refused_address().is_some() || !cfg!(feature = "tls"), "{error}");
    }
}

// ACL-33, ARS-20
#[tokio::test]
async fn debug_output_and_errors_contain_no_secrets() {
    let world = World::with(Ways { expires_in: None, ..Ways::default() }).await;
    let builder = world
        .oauth()
        .client_id("me")
        .client_secret("secret-of-client")
        .store(MemoryCredentialStore::new());
    let mut texts = vec![format!("{builder:?}")];
    let oauth = builder.build();
    let link = link(&world.url(), &oauth);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    let url = world.url();
    let token = oauth.token(&TokenRequest::new(&http::Method::POST, &url)).await.unwrap();
    texts.push(format!("{oauth:?} {token:?} {:?}", oauth.login_info().await.unwrap()));
    world.expire();
    world.book.lock().unwrap().refresh.clear();
    world.book.lock().unwrap().refuse = vec![(400, "invalid_grant"), (400, "invalid_grant")];
    let error = refused(&link, "").await;
    texts.push(format!("{error} {error:?}"));
    for text in texts {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn error_description_that_echoes_a_secret_is_hidden() {
    let issuer = Site::start(|base, seen| match seen.path.as_str() {
        "/token" => answer(400, json!({"error": "invalid_client", "error_description": format!("not {}", seen.field("client_secret").unwrap())})),
        _ => answer(200, json!({
            "issuer": base, "token_endpoint": format!("{base}/token"), "resource": base, "authorization_servers": [base],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        })),
    })
    .await;
    let oauth = OAuth::builder(&issuer.url)
        .client_id("me")
        .client_secret("secret-of-client")
        .client_credentials();
    let error = oauth.build().login().await.unwrap_err().to_string();
    assert!(error.contains("invalid_client") && !error.contains("secret-of"), "{error}");
}

#[tokio::test]
async fn server_that_rejects_a_new_token_causes_no_login_loop() {
    let world = World::new().await;
    let issuer = world.issuer.url.clone();
    let site = Site::start(move |base, seen| match seen.path.as_str() {
        "/mcp" => answer(401, json!(null)),
        _ => answer(
            200,
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [issuer]}),
        ),
    })
    .await;
    let url = format!("{}/mcp", site.url);
    let link = link(&url, &OAuth::builder(&url).login(Robot::default()).build());
    let error = refused(&link, "").await;
    assert!(matches!(error, OAuthError::TokenRefused { .. }), "{error}");
    assert_eq!(world.logins(), 1);
}
