//! Attacks by strangers, other clients and other browsers.

use std::time::Duration;

use outlive_auth::fetch::form;
use serde_json::json;

use crate::support::{Browser, LOOPBACK, World, asked, hash};

const APP: &str = "https://app.example/cb?x=1";

// ARS-21
#[tokio::test]
async fn redirect_uri_of_another_client_is_rejected() {
    let world = World::new().await;
    let (app, native) = (world.register(APP).await, world.register(LOOPBACK).await);
    let foreign = "x".repeat(app.len());
    let middle = app.len() / 2;
    let other = if app.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let changed = [&app[..middle], other, &app[middle + 1..]].concat();
    for (id, uri) in [
        (&app, "https://app.example/cb"),
        (&app, "https://app.example/cb?x=1&y=2"),
        (&app, "https://app.example/cb/?x=1"),
        (&app, "https://app.example/cb/../cb?x=1"),
        (&app, "https://app.example:443/cb?x=1"),
        (&app, "https://app.example.evil.example/cb?x=1"),
        (&app, "https://app.example@evil.example/cb?x=1"),
        (&app, "https://app.example\\.evil.example/cb?x=1"),
        (&app, "//evil.example/cb"),
        (&app, "javascript:alert(1)"),
        (&app, LOOPBACK),
        (&app, ""),
        (&native, "http://127.0.0.1:9/callback/more"),
        (&native, "http://127.0.0.1:9/callback?more"),
        (&native, "http://localhost:9/callback"),
        (&native, "http://127.0.0.1:9@evil.example/callback"),
        (&foreign, APP),
        (&changed, APP),
        (&String::new(), APP),
    ] {
        // Other errors in the request do not cause a redirect either.
        for changes in [&[][..], &[("response_type", "token")], &[("code_challenge", "")]] {
            let got = Browser::default().get(&world.authorize(id, uri, changes)).await;
            assert_eq!((got.status, got.header("location")), (400, None), "{uri} {changes:?}");
            assert!(got.body.contains("<h1>"), "the user gets a page");
        }
    }
    let twice =
        format!("{}&redirect_uri=https%3A%2F%2Fevil.example", world.authorize(&app, APP, &[]));
    assert_eq!(Browser::default().get(&twice).await.status, 400);
}

#[tokio::test]
async fn invalid_request_of_an_unverified_client_shows_a_page_without_redirect() {
    let world = World::new().await;
    let id = world.register(APP).await;
    let (plain, long) = (hash("x"), "s".repeat(2_000));
    for (changes, error) in [
        (&[("code_challenge", "")][..], "invalid_request"),
        (&[("code_challenge", "short")], "invalid_request"),
        (&[("code_challenge_method", "plain")], "invalid_request"),
        (&[("code_challenge_method", "")], "invalid_request"),
        (&[("code_challenge_method", "s256"), ("code_challenge", &plain)], "invalid_request"),
        (&[("response_type", "token")], "unsupported_response_type"),
        (&[("response_type", "code token")], "unsupported_response_type"),
        (&[("response_type", "")], "unsupported_response_type"),
        (&[("response_mode", "fragment")], "invalid_request"),
        (&[("request", "eyJ")], "request_not_supported"),
        (&[("request_uri", "https://evil.example/")], "request_not_supported"),
        (&[("resource", "https://evil.example/mcp")], "invalid_target"),
        (&[("scope", "admin")], "invalid_scope"),
        (&[("state", &long)], "invalid_request"),
    ] {
        let got = Browser::default().get(&world.authorize(&id, APP, changes)).await;
        assert_eq!((got.status, got.header("location")), (400, None), "{changes:?}");
        assert!(got.body.contains(&format!("({error})")), "{changes:?}: {}", got.body);
        // The page has a link that returns the error to the client, and shows its host.
        let back = got.link();
        assert!(got.body.contains("return to app.example</a>"), "{}", got.body);
        assert!(back.starts_with("https://app.example/cb?x=1&error="), "{back}");
        assert_eq!(asked(&back, "error").as_deref(), Some(error), "{changes:?}");
        assert_eq!(asked(&back, "iss").as_deref(), Some(world.base.as_str()));
        let state = asked(&back, "state").unwrap();
        assert!(state == "client-state" || state == long);
    }
    let url = world.authorize(&id, APP, &[]);
    for twice in ["scope=write", "code_challenge_method=plain", "resource=https%3A%2F%2Fevil"] {
        let got = Browser::default().get(&format!("{url}&{twice}")).await;
        assert_eq!((got.status, got.header("location")), (400, None), "{twice}");
    }
    assert!(world.provider.all("/authorize").is_empty());
}

// ARS-16
#[tokio::test]
async fn consent_of_another_browser_is_rejected() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let (mut person, mut stranger) = (Browser::default(), Browser::default());
    let page = person.get(&world.authorize(&id, LOOPBACK, &[])).await;
    let foreign = stranger.get(&world.authorize(&id, LOOPBACK, &[])).await;
    let consent = format!("{}/consent", world.base);
    let answer = |request: &str| form::encode([("request", request), ("decision", "allow")]);
    // A form without the sealed request, with that of another browser, and with a modified one.
    let request = page.form();
    for body in [
        "decision=allow".to_owned(),
        answer("x"),
        answer(&foreign.form()),
        answer(&request[1..]),
        answer(&id),
    ] {
        let got = person.post(&consent, &body).await;
        assert_eq!((got.status, got.header("location")), (403, None), "{body}");
    }
    // The correct form from a browser without the cookie, and from another origin.
    assert_eq!(Browser::default().post(&consent, &answer(&request)).await.status, 403);
    assert_eq!(stranger.post(&consent, &answer(&request)).await.status, 403);
    let kind = ("content-type", "application/x-www-form-urlencoded");
    for origin in ["https://evil.example", "null"] {
        let from = [kind, ("origin", origin)];
        let got = person.send("POST", &consent, &answer(&request), &from).await;
        assert_eq!((got.status, got.header("location")), (403, None), "{origin}");
    }
    // After the timeout.
    let ours = [kind, ("origin", world.base.as_str())];
    let good = person.send("POST", &consent, &answer(&request), &ours).await;
    assert_eq!(good.status, 303);
    world.later(Duration::from_secs(601));
    assert_eq!(person.post(&consent, &answer(&request)).await.status, 403);
    assert!(world.provider.all("/authorize").is_empty());
}

// ARS-21
#[tokio::test]
async fn callback_is_accepted_once_in_its_own_browser() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let mut person = Browser::default();
    let url = world.authorize(&id, LOOPBACK, &[]);
    let page = person.get(&url).await;
    let to_provider = person.decide(&world.base, &page, "allow").await;
    let callback = person.get(to_provider.location()).await.location().to_owned();
    // Other browsers: one without a cookie, and one with the cookie of its own login.
    let mut stranger = Browser::default();
    let page = stranger.get(&url).await;
    stranger.decide(&world.base, &page, "allow").await;
    for browser in [&mut Browser::default(), &mut stranger] {
        let got = browser.get(&callback).await;
        assert_eq!((got.status, got.header("location")), (400, None));
    }
    // A forged state, two states, and no state.
    let (front, query) = callback.split_once('?').unwrap();
    for query in [
        query.replace("state=", "state=x"),
        format!("{query}&state=x"),
        "code=provider-code-1".to_owned(),
        String::new(),
    ] {
        let got = person.get(&format!("{front}?{query}")).await;
        assert_eq!((got.status, got.header("location")), (400, None), "{query}");
    }
    assert!(world.provider.all("/token").is_empty());
    // The correct callback, and the same again, also from a browser that still has the cookie.
    let mut copy = person.clone();
    let got = person.get(&callback).await;
    assert!(asked(got.location(), "code").is_some());
    assert_eq!(person.get(&callback).await.status, 400);
    assert_eq!(asked(copy.get(&callback).await.location(), "code"), None);
}

#[tokio::test]
async fn login_expires() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let mut person = Browser::default();
    let page = person.get(&world.authorize(&id, LOOPBACK, &[])).await;
    let to_provider = person.decide(&world.base, &page, "allow").await;
    let callback = person.get(to_provider.location()).await.location().to_owned();
    world.later(Duration::from_secs(601));
    let got = person.get(&callback).await;
    assert_eq!((got.status, got.header("location")), (400, None));
    assert!(world.provider.all("/token").is_empty());
}

#[tokio::test]
async fn provider_error_is_mapped_to_a_fixed_description() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    for (said, mapped) in [
        ("access_denied", "access_denied"),
        ("temporarily_unavailable", "temporarily_unavailable"),
        ("invalid_scope", "server_error"),
        ("<script>", "server_error"),
    ] {
        world.idp.lock().unwrap().error = Some(said);
        let back = Browser::default().log_in(&world.authorize(&id, LOOPBACK, &[])).await;
        assert!(back.starts_with(LOOPBACK), "{back}");
        assert_eq!(asked(&back, "error").as_deref(), Some(mapped));
        assert_eq!(asked(&back, "state").as_deref(), Some("client-state"));
        assert_eq!(asked(&back, "iss").as_deref(), Some(world.base.as_str()));
        assert!(!back.contains("%3Cscript"));
    }
    world.idp.lock().unwrap().error = None;
    // The response of another provider (RFC 9207).
    let mut person = Browser::default();
    let page = person.get(&world.authorize(&id, LOOPBACK, &[])).await;
    let to_provider = person.decide(&world.base, &page, "allow").await;
    let callback = person.get(to_provider.location()).await.location().to_owned();
    let got = person.get(&format!("{callback}&iss=https%3A%2F%2Fevil.example")).await;
    assert_eq!(asked(got.location(), "error").as_deref(), Some("server_error"));
    assert!(world.provider.all("/token").is_empty());
}

// ARS-16
#[tokio::test]
async fn consent_page_escapes_client_data_and_runs_no_scripts() {
    let world = World::with(|proxy| proxy.name("Files & more")).await;
    let name = "<script>alert(1)</script>\u{202e}\"'&";
    let body = json!({"client_name": name, "redirect_uris": [APP]});
    let got = Browser::default().post_json(&format!("{}/register", world.base), &body).await;
    let mut browser = Browser::default();
    let page = browser.get(&world.authorize(&got.text("client_id"), APP, &[])).await;
    assert!(page.body.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    assert!(!page.body.contains("<script") && !page.body.contains('\u{202e}'));
    for shown in ["app.example", "Files &amp; more", "mcp", "127.0.0.1"] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
}
