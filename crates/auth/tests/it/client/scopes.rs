//! Tests of choosing and extending scopes.

use outlive_auth::client::OAuthError;
use serde_json::json;

use super::kit::{Ways, World, link, post, refused};

async fn asked(ways: Ways) -> Option<String> {
    let world = World::with(ways).await;
    assert_eq!(post(&link(&world.url(), &world.oauth().build()), "").await.unwrap(), 200);
    world.issuer.all("/authorize")[0].asks("scope")
}

// ACL-11, ACL-12
#[tokio::test]
async fn scopes_come_from_the_challenge_then_from_metadata() {
    let resource = json!({"scopes_supported": ["a", "b"]});
    let ways = Ways { resource: resource.clone(), challenge: Some("c d"), ..Ways::default() };
    assert_eq!(asked(ways).await.as_deref(), Some("c d"));
    assert_eq!(asked(Ways { resource, ..Ways::default() }).await.as_deref(), Some("a b"));
    assert_eq!(asked(Ways::default()).await, None);
}

// ACL-22
#[tokio::test]
async fn offline_access_is_requested_if_supported() {
    let offers = json!({"scopes_supported": ["a", "offline_access"]});
    let ways = || Ways { issuer: offers.clone(), challenge: Some("a"), ..Ways::default() };
    assert_eq!(asked(ways()).await.as_deref(), Some("a offline_access"));
    let not = json!({"scopes_supported": ["a", "offline_access"], "grant_types_supported": ["authorization_code"]});
    assert_eq!(asked(Ways { issuer: not, ..ways() }).await.as_deref(), Some("a"));
    assert_eq!(asked(Ways { issuer: json!({}), ..ways() }).await.as_deref(), Some("a"));
    // Requested alone, `offline_access` would replace the server's default scopes.
    assert_eq!(asked(Ways { challenge: None, ..ways() }).await, None);
}

// ACL-13
#[tokio::test]
async fn step_up_adds_scopes_to_the_previous_ones() {
    let world = World::with(Ways { challenge: Some("read"), ..Ways::default() }).await;
    let link = link(&world.url(), &world.oauth().build());
    assert_eq!(post(&link, "read").await.unwrap(), 200);
    assert_eq!(post(&link, "write").await.unwrap(), 200);
    assert_eq!(post(&link, "read").await.unwrap(), 200);
    let pages = world.issuer.all("/authorize");
    let scopes: Vec<_> = pages.iter().map(|page| page.asks("scope").unwrap()).collect();
    assert_eq!(scopes, ["read", "read write"]);
    // The client is registered once.
    assert_eq!(world.issuer.all("/register").len(), 1);
}

// ACL-13
#[tokio::test]
async fn scopes_that_were_not_granted_are_not_requested_forever() {
    // If the response says that the scope was not granted, the client retries a few times.
    for (is_reported, logins) in [(true, 3), (false, 2)] {
        let granted = Some(("a", is_reported));
        let world = World::with(Ways { challenge: Some("a"), granted, ..Ways::default() }).await;
        let link = link(&world.url(), &world.oauth().build());
        let error = refused(&link, "b").await;
        assert!(matches!(error, OAuthError::InsufficientScope { .. }), "{error}");
        assert!(error.to_string().contains("`b`") && error.to_string().contains("request access"));
        assert_eq!(world.logins(), logins);
        assert_eq!(post(&link, "a").await.unwrap(), 200);
    }
}

#[tokio::test]
async fn forbidden_without_scope_challenge_is_returned() {
    let site = super::kit::Site::start(|_, _| super::kit::answer(403, json!({}))).await;
    let url = format!("{}/mcp", site.url);
    let oauth = outlive_auth::client::OAuth::builder(&url).build();
    assert_eq!(post(&link(&url, &oauth), "").await.unwrap(), 403);
    assert_eq!(site.lines().len(), 1);
}
