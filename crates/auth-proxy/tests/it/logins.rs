//! Tests of logins and token lifetimes.

use std::time::Duration;

use outlive::client::Client;
use outlive_auth::client::OAuth;
use outlive_auth_proxy::{AuthProxy, Provider};
use serde_json::json;

use crate::support::{Browser, LOOPBACK, Person, World, asked};

async fn connect(world: &World) -> (Client, OAuth) {
    let oauth = OAuth::builder(world.url()).client_name("Our client").login(Person).build();
    let client = Client::builder("through", "1").token_source(oauth.clone());
    let client =
        client.connect(world.url().as_str()).await.unwrap_or_else(|error| panic!("{error}"));
    (client, oauth)
}

async fn call(client: &Client, tool: &str) -> String {
    let result = client.call_tool(tool, json!({})).await.unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(&result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

// ARS-16, ARS-17, ARS-21
#[tokio::test]
async fn client_logs_in_through_the_proxy() {
    let world = World::new().await;
    let (client, oauth) = connect(&world).await;
    let name = call(&client, "whoami").await;
    assert!(name.starts_with(&format!("{}|ann|", world.base)), "{name}");
    assert_eq!(name.rsplit('|').next().unwrap().len(), 22, "{name}");
    // The handler has requested the provider's token.
    assert_eq!(call(&client, "upstream").await, "24 bytes");
    let logins = world.provider.all("/authorize");
    assert_eq!(logins.len(), 1);
    assert_eq!(logins[0].asks("client_id").as_deref(), Some("the-one"));
    assert_eq!(logins[0].asks("redirect_uri"), Some(world.proxy.callback()));
    assert_eq!(logins[0].asks("scope").as_deref(), Some("openid"));
    oauth.logout().await.unwrap();
    let revoked = world.idp.lock().unwrap().revoked.clone();
    assert_eq!(revoked, ["provider-secret-refresh-2"]);
}

#[tokio::test]
async fn login_lasts_as_long_as_that_of_the_provider() {
    let world = World::new().await;
    let (client, _oauth) = connect(&world).await;
    call(&client, "whoami").await;
    // The proxy's token has expired, but not that of the provider.
    world.later(Duration::from_secs(700));
    call(&client, "whoami").await;
    assert_eq!(world.provider.all("/authorize").len(), 1, "no second login is needed");
    let id = world.register(LOOPBACK).await;
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let first = given.text("refresh_token");
    let second = world.refresh(&first, &id, &[]).await.text("refresh_token");
    assert_eq!(world.idp.lock().unwrap().renewals, 0);
    // The provider's token has expired too.
    world.later(Duration::from_secs(3_600));
    let third = world.refresh(&second, &id, &[]).await.text("refresh_token");
    assert_eq!(world.idp.lock().unwrap().renewals, 1);
    // An outage of the provider does not end a login.
    world.later(Duration::from_secs(3_600));
    for trouble in [(503, "busy"), (400, "invalid_client")] {
        world.idp.lock().unwrap().refuses = Some(trouble);
        let got = world.refresh(&third, &id, &[]).await;
        assert_eq!((got.status, got.text("error").as_str()), (503, "temporarily_unavailable"));
    }
    world.idp.lock().unwrap().refuses = None;
    let fourth = world.refresh(&third, &id, &[]).await.text("refresh_token");
    // A rejection by the provider ends the login.
    world.later(Duration::from_secs(3_600));
    world.idp.lock().unwrap().refresh.clear();
    assert_eq!(world.refresh(&fourth, &id, &[]).await.text("error"), "invalid_grant");
    assert_eq!(world.refresh(&fourth, &id, &[]).await.text("error"), "invalid_grant");
}

#[tokio::test]
async fn login_ends_with_the_token_of_a_provider_that_issues_no_refresh_token() {
    let world = World::new().await;
    world.idp.lock().unwrap().refreshes = false;
    let id = world.register(LOOPBACK).await;
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let next = world.refresh(&given.text("refresh_token"), &id, &[]).await.text("refresh_token");
    world.later(Duration::from_secs(3_600));
    assert_eq!(world.refresh(&next, &id, &[]).await.text("error"), "invalid_grant");
}

#[tokio::test]
async fn concurrent_handlers_share_one_refresh() {
    let world = World::new().await;
    let (client, _oauth) = connect(&world).await;
    let name = call(&client, "whoami").await;
    let caller = outlive_protocol::Principal::named(&name);
    world.later(Duration::from_secs(3_600));
    let all = (0..20).map(|_| {
        let (proxy, caller) = (world.proxy.clone(), caller.clone());
        tokio::spawn(
            async move { proxy.provider_token(&caller).await.unwrap().expose().to_owned() },
        )
    });
    let mut tokens = Vec::new();
    for one in all.collect::<Vec<_>>() {
        tokens.push(one.await.unwrap());
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 1);
    assert_eq!(world.idp.lock().unwrap().renewals, 1);
    let stranger = outlive_protocol::Principal::named(&format!("{}|bob|x", world.base));
    assert!(world.proxy.provider_token(&stranger).await.is_err());
    assert!(world.proxy.provider_token(&outlive_protocol::Principal::ANONYMOUS).await.is_err());
}

#[tokio::test]
async fn provider_with_numeric_user_ids_and_no_metadata_is_supported() {
    let known = |provider: &str| {
        Provider::new(format!("{provider}/authorize"), format!("{provider}/token"), "the-one")
            .client_secret("hush")
            .userinfo_url(format!("{provider}/userinfo"))
            .subject("id")
            .tenant("login")
            .parameter("allow_signup", "false")
    };
    let world = World::behind(known, |proxy| proxy).await;
    let (client, _oauth) = connect(&world).await;
    let name = call(&client, "whoami").await;
    assert!(name.starts_with(&format!("{}|7|", world.base)) && name.ends_with("|ann"), "{name}");
    assert_eq!(call(&client, "upstream").await, "24 bytes");
    let login = &world.provider.all("/authorize")[0];
    assert_eq!(login.asks("allow_signup").as_deref(), Some("false"));
    assert_eq!(login.asks("nonce"), None);
}

#[tokio::test]
async fn user_that_the_rule_rejects_gets_access_denied() {
    let world = World::with(|proxy| {
        proxy.allow_user(|user| user.claim("email").is_some_and(|email| email == "bob@example.com"))
    })
    .await;
    let id = world.register(LOOPBACK).await;
    let back = Browser::default().log_in(&world.authorize(&id, LOOPBACK, &[])).await;
    assert_eq!(asked(&back, "error").as_deref(), Some("access_denied"));
    assert_eq!(asked(&back, "code"), None);
    // The provider's token is revoked.
    assert_eq!(world.idp.lock().unwrap().revoked.len(), 1);
    world.idp.lock().unwrap().claims = json!({"email": "bob@example.com"});
    world.code(&id, LOOPBACK).await;
}

#[tokio::test]
async fn id_token_of_another_login_or_client_is_rejected() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    for wrong in [
        json!({"nonce": "another"}),
        json!({"aud": "somebody-else"}),
        json!({"iss": "https://evil.example"}),
        json!({"exp": 1_000}),
        json!({"sub": ""}),
        json!({"sub": {"a": 1}}),
    ] {
        world.idp.lock().unwrap().claims = wrong.clone();
        let back = Browser::default().log_in(&world.authorize(&id, LOOPBACK, &[])).await;
        assert_eq!(asked(&back, "error").as_deref(), Some("temporarily_unavailable"), "{wrong}");
    }
}

// ARS-21
#[tokio::test]
async fn consent_is_remembered_per_client_redirect_uri_and_scopes() {
    let world = World::new().await;
    let uri = "https://app.example/cb";
    let (client, other) = (world.register(uri).await, world.register(uri).await);
    let mut browser = Browser::default();
    let back = browser.log_in(&world.authorize(&client, uri, &[])).await;
    assert!(back.starts_with("https://app.example/cb?code="), "{back}");
    let asks = |status| status == 200;
    let again = browser.get(&world.authorize(&client, uri, &[])).await;
    assert!(again.location().starts_with(&world.provider.url));
    assert!(asks(browser.get(&world.authorize(&other, uri, &[])).await.status));
    assert!(asks(browser.get(&world.authorize(&client, uri, &[("scope", "write")])).await.status));
    assert!(asks(Browser::default().get(&world.authorize(&client, uri, &[])).await.status));
    world.later(Duration::from_secs(31 * 86_400));
    assert!(asks(browser.get(&world.authorize(&client, uri, &[])).await.status));
    // A loopback redirect URI may belong to another program each time.
    let native = world.register(LOOPBACK).await;
    browser.log_in(&world.authorize(&native, LOOPBACK, &[])).await;
    assert!(asks(browser.get(&world.authorize(&native, LOOPBACK, &[])).await.status));
}

#[tokio::test]
async fn denied_consent_returns_access_denied_to_the_client() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let mut browser = Browser::default();
    let page = browser.get(&world.authorize(&id, LOOPBACK, &[])).await;
    let got = browser.decide(&world.base, &page, "deny").await;
    let back = got.location();
    assert_eq!(asked(back, "error").as_deref(), Some("access_denied"));
    assert_eq!(asked(back, "state").as_deref(), Some("client-state"));
    assert_eq!(asked(back, "iss").as_deref(), Some(world.base.as_str()));
    assert!(world.provider.all("/authorize").is_empty());
}

// ARS-15, ARS-18
#[tokio::test]
async fn metadata_is_readable_by_programs_and_web_pages() {
    let world = World::new().await;
    let mut browser = Browser::default();
    let place = format!("{}/.well-known/oauth-authorization-server", world.base);
    let page = [("origin", "https://page.example")];
    let got = browser.send("GET", &place, "", &page).await;
    assert_eq!((got.status, got.header("access-control-allow-origin")), (200, Some("*")));
    let said = got.json();
    let at = |path: &str| json!(format!("{}{path}", world.base));
    assert_eq!(said["issuer"], at(""));
    assert_eq!(said["authorization_endpoint"], at("/authorize"));
    assert_eq!(said["token_endpoint"], at("/token"));
    assert_eq!(said["registration_endpoint"], at("/register"));
    assert_eq!(said["revocation_endpoint"], at("/revoke"));
    assert_eq!(said["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(said["token_endpoint_auth_methods_supported"], json!(["none"]));
    assert_eq!(said["authorization_response_iss_parameter_supported"], true);
    assert_eq!(said["scopes_supported"], json!(["mcp", "write"]));
    let keys = browser.get(&format!("{}/jwks", world.base)).await.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    assert!(keys["keys"][0].get("d").is_none());
    for path in ["/token", "/register", "/revoke"] {
        let got = browser.send("OPTIONS", &format!("{}{path}", world.base), "", &page).await;
        assert_eq!((got.status, got.header("access-control-allow-origin")), (204, Some("*")));
    }
    // Endpoints that use cookies do not allow other origins.
    for path in ["/authorize", "/consent", "/callback"] {
        let got = browser.send("OPTIONS", &format!("{}{path}", world.base), "", &page).await;
        assert_eq!((got.status, got.header("access-control-allow-origin")), (405, None), "{path}");
    }
    assert_eq!(browser.get(&format!("{}/token", world.base)).await.status, 405);
}

#[test]
fn build_rejects_unsafe_settings() {
    let build = |resource: &str, issuer: &str| {
        let upstream = Provider::discover(issuer, "the-one");
        AuthProxy::builder(resource, upstream).build().map(drop).map_err(|error| error.to_string())
    };
    build("https://mcp.example/mcp", "https://id.example").unwrap();
    assert!(build("http://mcp.example/mcp", "https://id.example").unwrap_err().contains("https:"));
    assert!(build("https://mcp.example/mcp", "http://id.example").unwrap_err().contains("https:"));
    let upstream = || Provider::discover("https://id.example", "the-one");
    let short = AuthProxy::builder("https://mcp.example/mcp", upstream()).secret([1; 31]).build();
    assert!(short.unwrap_err().to_string().contains("too short"));
    let notes = outlive_auth_proxy::MemoryLoginStore::new(10);
    let kept = AuthProxy::builder("https://mcp.example/mcp", upstream()).login_store(notes).build();
    assert!(kept.unwrap_err().to_string().contains("secret"));
}
