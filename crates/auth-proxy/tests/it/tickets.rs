//! Tests of codes and refresh tokens.

use std::time::Duration;

use outlive_auth::fetch::form;

use crate::support::{Browser, LOOPBACK, VERIFIER, World};

#[tokio::test]
async fn code_is_bound_to_its_client_verifier_and_server() {
    let world = World::new().await;
    let (id, other) = (world.register(LOOPBACK).await, world.register(LOOPBACK).await);
    let code = world.code(&id, LOOPBACK).await;
    for (changes, error) in [
        (
            &[("code_verifier", "another-verifier-that-is-long-enough-for-all-of-them")][..],
            "invalid_grant",
        ),
        (&[("code_verifier", "")], "invalid_request"),
        (&[("client_id", other.as_str())], "invalid_grant"),
        (&[("client_id", "made-up")], "invalid_client"),
        (&[("client_id", "")], "invalid_client"),
        (&[("client_id", "https://evil.example/client.json")], "invalid_grant"),
        (&[("redirect_uri", "http://127.0.0.1:8/callback")], "invalid_grant"),
        (&[("resource", "https://evil.example/mcp")], "invalid_target"),
        (&[("scope", "admin")], "invalid_scope"),
        (&[("code", "x")], "invalid_grant"),
        (&[("code", "")], "invalid_request"),
        (&[("grant_type", "password")], "unsupported_grant_type"),
        (&[("grant_type", "refresh_token"), ("refresh_token", code.as_str())], "invalid_grant"),
    ] {
        let got = world.token(&code, &id, changes).await;
        assert_eq!(got.text("error"), error, "{changes:?}");
        assert_eq!(got.status, if error == "invalid_client" { 401 } else { 400 });
        assert_eq!(got.header("cache-control"), Some("no-store"));
    }
    let place = format!("{}/token", world.base);
    let twice = form::encode([("client_id", id.as_str()), ("code", &code), ("code", &code)]);
    assert_eq!(Browser::default().post(&place, &twice).await.text("error"), "invalid_request");
    let json = serde_json::json!({"grant_type": "authorization_code", "code": code});
    assert_eq!(Browser::default().post_json(&place, &json).await.text("error"), "invalid_request");
    // Rejected requests do not use up the code.
    let got = world.token(&code, &id, &[("redirect_uri", "")]).await;
    assert_eq!((got.status, got.text("token_type").as_str()), (200, "Bearer"));
    assert_eq!(got.json()["expires_in"], 600);
    assert_eq!(got.text("scope"), "mcp");
    assert_eq!(got.header("access-control-allow-origin"), Some("*"));
}

#[tokio::test]
async fn code_used_twice_ends_its_grant() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let code = world.code(&id, LOOPBACK).await;
    let given = world.token(&code, &id, &[]).await;
    assert_eq!(world.token(&code, &id, &[]).await.text("error"), "invalid_grant");
    let refreshed = world.refresh(&given.text("refresh_token"), &id, &[]).await;
    assert_eq!(refreshed.text("error"), "invalid_grant");
    assert_eq!(world.idp.lock().unwrap().revoked.len(), 1);
}

#[tokio::test]
async fn code_and_refresh_token_expire() {
    let world = World::new().await;
    world.idp.lock().unwrap().expires_in = None;
    let id = world.register(LOOPBACK).await;
    let code = world.code(&id, LOOPBACK).await;
    world.later(Duration::from_secs(61));
    assert_eq!(world.token(&code, &id, &[]).await.text("error"), "invalid_grant");
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let first = given.text("refresh_token");
    // Each use extends the lifetime.
    world.later(Duration::from_secs(20 * 86_400));
    let second = world.refresh(&first, &id, &[]).await.text("refresh_token");
    world.later(Duration::from_secs(20 * 86_400));
    let third = world.refresh(&second, &id, &[]).await.text("refresh_token");
    world.later(Duration::from_secs(31 * 86_400));
    assert_eq!(world.refresh(&third, &id, &[]).await.text("error"), "invalid_grant");
}

#[tokio::test]
async fn refresh_token_used_twice_ends_its_grant() {
    let world = World::new().await;
    let (id, other) = (world.register(LOOPBACK).await, world.register(LOOPBACK).await);
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let first = given.text("refresh_token");
    for (changes, error) in [
        (&[("client_id", other.as_str())][..], "invalid_grant"),
        (&[("resource", "https://evil.example/")], "invalid_target"),
        (&[("scope", "write")], "invalid_scope"),
        (&[("refresh_token", "x")], "invalid_grant"),
        (
            &[
                ("grant_type", "authorization_code"),
                ("code", first.as_str()),
                ("code_verifier", VERIFIER),
            ],
            "invalid_grant",
        ),
    ] {
        assert_eq!(world.refresh(&first, &id, changes).await.text("error"), error, "{changes:?}");
    }
    let second = world.refresh(&first, &id, &[]).await.text("refresh_token");
    assert_ne!(first, second);
    let third = world.refresh(&second, &id, &[]).await.text("refresh_token");
    assert_eq!(world.refresh(&second, &id, &[]).await.text("error"), "invalid_grant");
    assert_eq!(world.refresh(&third, &id, &[]).await.text("error"), "invalid_grant");
    assert_eq!(world.idp.lock().unwrap().revoked.len(), 1);
    // Another login of the same user is another grant.
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    assert_eq!(world.refresh(&given.text("refresh_token"), &id, &[]).await.status, 200);
}

#[tokio::test]
async fn granted_scopes_can_be_reduced_and_not_extended() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let url = world.authorize(&id, LOOPBACK, &[("scope", "mcp write openid")]);
    let back = Browser::default().log_in(&url).await;
    let code = crate::support::asked(&back, "code").unwrap();
    let given = world.token(&code, &id, &[]).await;
    assert_eq!(given.text("scope"), "mcp write");
    let less = world.refresh(&given.text("refresh_token"), &id, &[("scope", "mcp admin")]).await;
    assert_eq!(less.text("scope"), "mcp");
    let all = world.refresh(&less.text("refresh_token"), &id, &[]).await;
    assert_eq!(all.text("scope"), "mcp write");
}

#[tokio::test]
async fn revoked_refresh_token_is_rejected() {
    let world = World::new().await;
    let (id, other) = (world.register(LOOPBACK).await, world.register(LOOPBACK).await);
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let (refresh, access) = (given.text("refresh_token"), given.text("access_token"));
    let place = format!("{}/revoke", world.base);
    let revoke = async |token: &str, client: &str| {
        let form = form::encode([("token", token), ("client_id", client)]);
        Browser::default().post(&place, &form).await
    };
    assert_eq!(revoke(&access, &id).await.text("error"), "unsupported_token_type");
    assert_eq!(revoke(&refresh, "made-up").await.text("error"), "invalid_client");
    // A revocation by another client has no effect, and gets the same response.
    assert_eq!(revoke(&refresh, &other).await.status, 200);
    assert_eq!(revoke("x", &id).await.status, 200);
    assert!(world.idp.lock().unwrap().revoked.is_empty());
    assert_eq!(revoke(&refresh, &id).await.status, 200);
    assert_eq!(world.refresh(&refresh, &id, &[]).await.text("error"), "invalid_grant");
    assert_eq!(world.idp.lock().unwrap().revoked, ["provider-secret-refresh-2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_replicas_accept_a_ticket_once() {
    let world = World::new().await;
    let (_serving, replica) = world.replica().await;
    let id = world.register(LOOPBACK).await;
    let fields = |kind: &str, name: &str, ticket: &str| {
        form::encode([
            ("grant_type", kind),
            (name, ticket),
            ("client_id", &id),
            ("code_verifier", VERIFIER),
        ])
    };
    let race = async |form: &str| {
        let all = (0..8).map(|at| {
            let base = if at % 2 == 0 { &world.base } else { &replica };
            let (place, form) = (format!("{base}/token"), form.to_owned());
            tokio::spawn(async move { Browser::default().post(&place, &form).await })
        });
        let mut won = Vec::new();
        for one in all.collect::<Vec<_>>() {
            let got = one.await.unwrap();
            match got.status {
                200 => won.push(got.text("refresh_token")),
                status => assert!(matches!(status, 400 | 503), "{}", got.body),
            }
        }
        won
    };
    for _ in 0..10 {
        let code = world.code(&id, LOOPBACK).await;
        assert!(race(&fields("authorization_code", "code", &code)).await.len() <= 1);
        let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
        let refresh = given.text("refresh_token");
        assert!(race(&fields("refresh_token", "refresh_token", &refresh)).await.len() <= 1);
        // The token was used, so using it again ends the grant.
        let again = world.refresh(&refresh, &id, &[]).await;
        assert_eq!(again.text("error"), "invalid_grant");
    }
    // Any replica accepts a code of another replica.
    let code = world.code(&id, LOOPBACK).await;
    let form = fields("authorization_code", "code", &code);
    assert_eq!(Browser::default().post(&format!("{replica}/token"), &form).await.status, 200);
}
