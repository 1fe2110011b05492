//! Tests of the scopes that a user gets, regardless of the client's request.

use outlive_auth::jose::decode_base64url;
use outlive_auth_proxy::AuthProxyBuilder;
use serde_json::{Value, json};

use crate::support::{Browser, Got, LOOPBACK, World, asked};

const ALL: &[(&str, &str)] = &[("scope", "mcp shop:operate shop:admin openid")];

fn rules(proxy: AuthProxyBuilder) -> AuthProxyBuilder {
    proxy
        .scopes(["mcp"])
        .grants(["shop:operate"], |user| user.has("groups", ["ops", "admins"]))
        .grants(["shop:admin", "shop:operate"], |user| user.has("email", ["ann@example.com"]))
}

async fn world(claims: Value) -> World {
    let world = World::with(rules).await;
    world.idp.lock().unwrap().claims = claims;
    world
}

async fn tokens(world: &World, client: &str, changes: &[(&str, &str)]) -> Got {
    let back = Browser::default().log_in(&world.authorize(client, LOOPBACK, changes)).await;
    let code = asked(&back, "code").unwrap_or_else(|| panic!("{back}"));
    world.token(&code, client, &[]).await
}

/// Returns the scopes in the token itself.
fn scope_claim(given: &Got) -> String {
    let token = given.text("access_token");
    let claims = decode_base64url(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["scope"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn scope_that_no_rule_grants_is_not_issued() {
    for (claims, granted) in [
        (json!({}), "mcp"),
        (json!({"groups": "interns"}), "mcp"),
        (json!({"groups": ["interns", "opsx"]}), "mcp"),
        (json!({"groups": {"ops": true}}), "mcp"),
        (json!({"email_verified": false}), "mcp"),
        (json!({"email_verified": "true"}), "mcp"),
        (json!({"groups": ["interns", "ops"]}), "mcp shop:operate"),
        (json!({"groups": "admins"}), "mcp shop:operate"),
        (json!({"email_verified": true}), "mcp shop:admin shop:operate"),
    ] {
        let world = world(claims.clone()).await;
        let id = world.register(LOOPBACK).await;
        let given = tokens(&world, &id, ALL).await;
        assert_eq!(given.text("scope"), granted, "{claims}");
        assert_eq!(scope_claim(&given), granted, "{claims}");
        // A refresh cannot add scopes either.
        let more = [("scope", "mcp shop:operate shop:admin")];
        let next = world.refresh(&given.text("refresh_token"), &id, &more).await;
        assert_eq!((next.text("scope").as_str(), scope_claim(&next).as_str()), (granted, granted));
    }
}

#[tokio::test]
async fn client_that_requests_no_scope_gets_the_base_scopes() {
    let world = world(json!({"groups": ["ops"]})).await;
    let id = world.register(LOOPBACK).await;
    let url = world.authorize(&id, LOOPBACK, &[]).replace("&scope=mcp", "");
    let back = Browser::default().log_in(&url).await;
    let given = world.token(&asked(&back, "code").unwrap(), &id, &[]).await;
    assert_eq!(given.text("scope"), "mcp");
}

#[tokio::test]
async fn user_without_any_requested_scope_gets_no_token() {
    let world = world(json!({})).await;
    let id = world.register(LOOPBACK).await;
    let only = [("scope", "shop:operate")];
    let back = Browser::default().log_in(&world.authorize(&id, LOOPBACK, &only)).await;
    assert_eq!(asked(&back, "error").as_deref(), Some("invalid_scope"));
    assert_eq!(asked(&back, "code"), None);
    assert_eq!(world.idp.lock().unwrap().revoked.len(), 1, "the provider's token is revoked");
}

#[tokio::test]
async fn consent_page_shows_which_scopes_depend_on_the_user() {
    let world = world(json!({})).await;
    let id = world.register(LOOPBACK).await;
    let page = Browser::default().get(&world.authorize(&id, LOOPBACK, ALL)).await.body;
    assert!(page.contains("<dt>Requested access</dt><dd>mcp</dd>"), "{page}");
    let depends = "<dt>Only if your account is permitted</dt><dd>shop:admin, shop:operate</dd>";
    assert!(page.contains(depends), "{page}");
    assert!(!page.contains("openid"), "{page}");
    let page = Browser::default().get(&world.authorize(&id, LOOPBACK, &[])).await.body;
    assert!(!page.contains("Only if your account"), "{page}");
    let place = format!("{}/.well-known/oauth-authorization-server", world.base);
    let said = Browser::default().get(&place).await.json();
    assert_eq!(said["scopes_supported"], json!(["mcp", "shop:admin", "shop:operate"]));
}

#[tokio::test]
async fn scope_whose_rule_was_removed_ends_with_the_next_refresh() {
    let world = world(json!({"groups": ["ops"]})).await;
    let id = world.register(LOOPBACK).await;
    let given = tokens(&world, &id, ALL).await;
    assert_eq!(given.text("scope"), "mcp shop:operate");
    // The replica has base scopes only.
    let (_serving, replica) = world.replica().await;
    let form = outlive_auth::fetch::form::encode([
        ("grant_type", "refresh_token"),
        ("refresh_token", given.text("refresh_token").as_str()),
        ("client_id", &id),
    ]);
    let next = Browser::default().post(&format!("{replica}/token"), &form).await;
    assert_eq!(next.text("scope"), "mcp");
}
