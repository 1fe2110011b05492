//! Tests of grants, with and without a user.

use outlive_auth::{
    client::{Assertion, ClientMetadataDocument, EnterpriseAuthorization, OAuth, OAuthError},
    jose::{Algorithm, Algorithms, Claims, JwkSet, Jws, SigningKey},
};
use serde_json::{Value, json};

use super::kit::{BACK, Site, Ways, World, answer, link, post, refused};

// ACL-01, ACL-03, ACL-08, ACL-10, ACL-16, ACL-21, ACL-22
#[tokio::test]
async fn unauthorized_request_triggers_a_login_and_is_retried() {
    let world = World::new().await;
    let link = link(&world.url(), &world.oauth().build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(
        world.mcp.lines(),
        ["POST /mcp", "GET /.well-known/oauth-protected-resource/mcp", "POST /mcp"]
    );
    assert_eq!(
        world.issuer.lines(),
        [
            "GET /.well-known/oauth-authorization-server",
            "POST /register",
            "GET /authorize",
            "POST /token"
        ]
    );
    let registered: Value = serde_json::from_str(&world.issuer.all("/register")[0].body).unwrap();
    assert_eq!(
        registered,
        json!({
            "client_name": "Test", "redirect_uris": [BACK], "response_types": ["code"],
            "grant_types": ["authorization_code", "refresh_token"], "application_type": "native",
            "token_endpoint_auth_method": "none",
        })
    );
    let page = &world.issuer.all("/authorize")[0];
    assert_eq!(page.asks("resource"), Some(world.url()));
    assert_eq!(page.asks("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(page.asks("client_id").as_deref(), Some("client-1"));
    assert!(page.asks("state").unwrap().len() >= 22 && page.asks("scope").is_none());
    let form = &world.issuer.all("/token")[0];
    assert_eq!(form.field("resource"), Some(world.url()));
    assert_eq!(form.field("redirect_uri").as_deref(), Some(BACK));
    assert_eq!(form.field("client_id").as_deref(), Some("client-1"));
    assert!(form.field("client_secret").is_none() && form.header("authorization").is_none());
    let sent = world.mcp.all("/mcp");
    assert!(sent[0].header("authorization").is_none());
    assert!(sent[1].header("authorization").unwrap().starts_with("Bearer secret-token-"));
    assert!(sent.iter().all(|sent| sent.query.is_empty()));
    // All later requests carry the token, whatever their method.
    link.get(http::HeaderMap::new()).await.unwrap();
    link.delete(http::HeaderMap::new()).await.unwrap();
    assert!(world.mcp.all("/mcp")[2..].iter().all(|sent| sent.header("authorization").is_some()));
    assert_eq!(world.logins(), 1);
}

// ACL-14, ACL-15, ACL-25
#[tokio::test]
async fn client_prefers_configured_id_then_document_then_registration() {
    const DOCUMENT: &str = "https://app.test/client.json";
    let reads = json!({"client_id_metadata_document_supported": true});
    for (issuer, by_hand, id) in
        [(&reads, true, "mine"), (&reads, false, DOCUMENT), (&json!({}), false, "client-1")]
    {
        let world = World::with(Ways { issuer: issuer.clone(), ..Ways::default() }).await;
        let mut builder = world.oauth().client_metadata_url(DOCUMENT);
        if by_hand {
            builder = builder.client_id("mine");
        }
        assert_eq!(post(&link(&world.url(), &builder.build()), "").await.unwrap(), 200);
        assert_eq!(world.issuer.all("/authorize")[0].asks("client_id").as_deref(), Some(id));
        assert_eq!(world.issuer.all("/register").len(), usize::from(id == "client-1"));
    }
    let none = json!({"registration_endpoint": null});
    let world = World::with(Ways { issuer: none, ..Ways::default() }).await;
    let error = refused(&link(&world.url(), &world.oauth().build()), "").await;
    assert!(error.to_string().contains("`client_id`"), "{error}");
    let world = World::with(Ways { issuer: reads, ..Ways::default() }).await;
    let builder = world.oauth().client_metadata_url("http://app.test/client.json");
    let error = refused(&link(&world.url(), &builder.build()), "").await;
    assert!(matches!(error, OAuthError::BadDocument { .. }), "{error}");
}

// ACL-15, ACL-31
#[tokio::test]
async fn client_with_document_authenticates_with_its_key_if_supported() {
    const DOCUMENT: &str = "https://app.test/client.json";
    let key = || SigningKey::generate(Algorithm::Es256).unwrap().with_id("k-1");
    let with = |methods: Value, registers: bool| {
        let mut issuer = json!({
            "client_id_metadata_document_supported": true,
            "token_endpoint_auth_methods_supported": methods,
        });
        if !registers {
            issuer["registration_endpoint"] = Value::Null;
        }
        World::with(Ways { issuer, ..Ways::default() })
    };
    let world = with(json!(["none", "private_key_jwt"]), true).await;
    let mine = key();
    let public = mine.public();
    let oauth = world.oauth().client_metadata_url(DOCUMENT).client_metadata_key(mine).build();
    let link_here = link(&world.url(), &oauth);
    assert_eq!(post(&link_here, "").await.unwrap(), 200);
    world.expire();
    assert_eq!(post(&link_here, "").await.unwrap(), 200);
    let forms = world.issuer.all("/token");
    let grants: Vec<_> = forms.iter().map(|form| form.field("grant_type").unwrap()).collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    let mut shown = std::collections::HashSet::new();
    for form in &forms {
        assert_eq!(form.field("client_id").as_deref(), Some(DOCUMENT));
        let assertion = form.field("client_assertion").unwrap();
        let jws = Jws::parse(&assertion).unwrap();
        assert_eq!(jws.header().key_id.as_deref(), Some("k-1"));
        let claims = Claims::read(jws.verify([&public], Algorithms::ALL).unwrap()).unwrap();
        assert_eq!(
            (claims.iss.as_deref(), claims.sub.as_deref()),
            (Some(DOCUMENT), Some(DOCUMENT))
        );
        assert!(claims.aud.contains(&world.issuer.url));
        assert!(shown.insert(assertion), "each assertion is used once");
    }
    // If the server does not accept the key, the client registers dynamically, or fails with a
    // reason.
    let world = with(json!(["none"]), true).await;
    let oauth = world.oauth().client_metadata_url(DOCUMENT).client_metadata_key(key()).build();
    assert_eq!(post(&link(&world.url(), &oauth), "").await.unwrap(), 200);
    assert_eq!(world.issuer.all("/token")[0].field("client_id").as_deref(), Some("client-1"));
    let world = with(json!(["none"]), false).await;
    let oauth = world.oauth().client_metadata_url(DOCUMENT).client_metadata_key(key()).build();
    let error = refused(&link(&world.url(), &oauth), "").await;
    assert!(matches!(error, OAuthError::Unsuitable { .. }), "{error}");
}

// ACL-15
#[test]
fn metadata_document_contains_required_members_and_no_secrets() {
    const DOCUMENT: &str = "https://app.test/client.json";
    let read = |document: ClientMetadataDocument| -> Value {
        serde_json::from_str(&document.to_json()).unwrap()
    };
    let plain =
        ClientMetadataDocument::new(DOCUMENT, "App").redirect_uri("http://127.0.0.1/callback");
    let usual = json!({
        "client_id": DOCUMENT,
        "client_name": "App",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    assert_eq!(read(plain.clone()), usual);
    let key = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k-1");
    let keys = JwkSet::new([key.public()]);
    let mut with_keys = usual.clone();
    with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
    let mut elsewhere = with_keys.clone();
    with_keys["jwks"] = serde_json::from_str(&keys.to_json()).unwrap();
    assert_eq!(with_keys["jwks"]["keys"][0]["kid"], "k-1");
    assert!(with_keys["jwks"]["keys"][0].get("d").is_none());
    assert_eq!(read(plain.clone().keys(&keys)), with_keys);
    elsewhere["jwks_uri"] = json!("https://app.test/keys.json");
    assert_eq!(read(plain.keys(&keys).keys_at("https://app.test/keys.json")), elsewhere);
}

// ACL-16
#[tokio::test]
async fn rejected_registration_reports_the_reason() {
    let said = json!({"error": "invalid_redirect_uri", "error_description": "use localhost"});
    let ways = Ways { no_registration: Some((400, said)), ..Ways::default() };
    let world = World::with(ways).await;
    let error = refused(&link(&world.url(), &world.oauth().build()), "").await.to_string();
    assert!(error.contains("invalid_redirect_uri (use localhost)"), "{error}");
}

// ACL-31
#[tokio::test]
async fn client_uses_an_authentication_method_of_the_server() {
    for (takes, answered, expect) in [
        (json!(["client_secret_basic"]), json!({"client_secret": "s:1"}), "basic"),
        (json!(["client_secret_post"]), json!({"client_secret": "s:1"}), "post"),
        (json!(["none"]), json!({}), "none"),
        (
            json!(null),
            json!({"client_secret": "s:1", "token_endpoint_auth_method": "client_secret_post"}),
            "post",
        ),
    ] {
        let issuer = json!({"token_endpoint_auth_methods_supported": takes});
        let world = World::with(Ways { issuer, registration: answered, ..Ways::default() }).await;
        assert_eq!(post(&link(&world.url(), &world.oauth().build()), "").await.unwrap(), 200);
        let form = &world.issuer.all("/token")[0];
        // base64 of `client-1:s%3A1`
        let basic = (expect == "basic").then_some("Basic Y2xpZW50LTE6cyUzQTE=");
        assert_eq!(form.header("authorization"), basic, "{expect}");
        let secret = (expect == "post").then(|| "s:1".to_owned());
        assert_eq!(form.field("client_secret"), secret, "{expect}");
        assert_eq!(form.field("client_id").is_some(), expect != "basic", "{expect}");
    }
    let issuer = json!({"token_endpoint_auth_methods_supported": ["tls_client_auth"]});
    let world = World::with(Ways { issuer, ..Ways::default() }).await;
    let error = refused(&link(&world.url(), &world.oauth().build()), "").await;
    assert!(matches!(error, OAuthError::Unsuitable { .. }), "{error}");
}

// ACL-27
#[tokio::test]
async fn client_credentials_grant_uses_a_key_or_a_secret() {
    let issuer = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic"]});
    let world = World::with(Ways { issuer, ..Ways::default() }).await;
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let public = key.public();
    let oauth = OAuth::builder(world.url()).client_id("robot").client_key(key).client_credentials();
    let oauth = oauth.scopes(["a", "b"]).build();
    assert_eq!(oauth.extension(), Some("io.modelcontextprotocol/oauth-client-credentials"));
    assert_eq!(post(&link(&world.url(), &oauth), "").await.unwrap(), 200);
    let form = &world.issuer.all("/token")[0];
    assert_eq!(form.field("grant_type").as_deref(), Some("client_credentials"));
    assert_eq!(form.field("scope").as_deref(), Some("a b"));
    assert_eq!(form.field("resource"), Some(world.url()));
    let assertion = form.field("client_assertion").unwrap();
    let jws = Jws::parse(&assertion).unwrap();
    let verified = jws.verify([&public], Algorithms::ALL).unwrap();
    let claims = Claims::read(verified).unwrap();
    assert_eq!(claims.iss.as_deref(), Some("robot"));
    assert_eq!(claims.sub.as_deref(), Some("robot"));
    assert!(claims.aud.contains(&world.issuer.url));
    assert_eq!(world.logins(), 0);

    let oauth =
        OAuth::builder(world.url()).client_id("robot").client_secret("hush").client_credentials();
    assert_eq!(post(&link(&world.url(), &oauth.build()), "").await.unwrap(), 200);
    assert!(world.issuer.all("/token")[1].header("authorization").unwrap().starts_with("Basic "));
}

#[tokio::test]
async fn workload_identity_grant_is_not_retried_after_a_rejection() {
    let world = World::new().await;
    let oauth =
        OAuth::builder(world.url()).client_id("pod").workload_identity(Assertion::fixed("a.b.c"));
    let link = link(&world.url(), &oauth.build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    let form = &world.issuer.all("/token")[0];
    assert_eq!(
        form.field("grant_type").as_deref(),
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer")
    );
    assert_eq!(form.field("assertion").as_deref(), Some("a.b.c"));
    world.expire();
    world.book.lock().unwrap().refresh.clear();
    world.book.lock().unwrap().refuse = vec![(400, "invalid_grant"), (400, "invalid_grant")];
    let error = refused(&link, "").await;
    assert!(error.to_string().contains("invalid_grant") && !error.to_string().contains("a.b.c"));
    // One attempt to refresh and one to acquire; neither is repeated.
    assert_eq!(world.issuer.all("/token").len(), 3);
}

// ACL-28
#[tokio::test]
async fn enterprise_grant_exchanges_the_id_token_of_the_user() {
    let world = World::new().await;
    let provider = Site::start(|_, _| {
        answer(200, json!({"access_token": "jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"}))
    })
    .await;
    let endpoint = format!("{}/token", provider.url);
    let enterprise =
        EnterpriseAuthorization::new(endpoint, "at-idp", Assertion::fixed("id.to.ken"));
    let oauth =
        OAuth::builder(world.url()).client_id("here").client_secret("hush").enterprise(enterprise);
    assert_eq!(post(&link(&world.url(), &oauth.build()), "").await.unwrap(), 200);
    let asked = &provider.all("/token")[0];
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token", "id.to.ken"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("audience", &world.issuer.url),
        ("resource", &world.url()),
        ("client_id", "at-idp"),
    ] {
        assert_eq!(asked.field(name).as_deref(), Some(value), "{name}");
    }
    let form = &world.issuer.all("/token")[0];
    assert_eq!(form.field("assertion").as_deref(), Some("jag"));
    assert!(form.header("authorization").unwrap().starts_with("Basic "));
    assert_eq!(world.logins(), 0);
}

#[tokio::test]
async fn client_without_login_method_reports_login_required() {
    let world = World::new().await;
    let link = link(&world.url(), &OAuth::builder(world.url()).build());
    let error = refused(&link, "").await;
    assert!(matches!(error, OAuthError::LoginRequired { .. }), "{error}");
    assert!(error.to_string().contains("log in"), "{error}");
}
