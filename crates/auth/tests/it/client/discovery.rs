//! Tests of discovery: every URL at which metadata may be published.

use std::sync::{Arc, Mutex};

use outlive_auth::client::{OAuth, OAuthError};
use serde_json::{Value, json};

use super::kit::{Answer, Robot, Site, Ways, World, answer, link, post, refused};

/// A server that is its own authorization server, with documents at these paths only.
struct Alone {
    site: Site,
    documents: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Alone {
    /// Starts a server. `header` is the challenge; `BASE` is replaced by the URL of the server.
    async fn new(header: &'static str, documents: &[(&str, Value)]) -> Self {
        let given = Arc::new(Mutex::new(Vec::<(String, Value)>::new()));
        let known = Arc::clone(&given);
        let site = Site::start(move |base, seen| {
            let documents = known.lock().unwrap();
            if let Some((_, found)) = documents.iter().find(|(path, _)| *path == seen.path) {
                return answer(200, found.clone());
            }
            tail(base, header, &seen.path)
        })
        .await;
        for (path, document) in documents {
            let text = document.to_string().replace("BASE", &site.url);
            given.lock().unwrap().push(((*path).to_owned(), serde_json::from_str(&text).unwrap()));
        }
        Self { site, documents: given }
    }

    /// Connects, and returns the paths that were fetched before the registration failed.
    async fn asked(&self, path: &str) -> Vec<String> {
        let url = format!("{}{path}", self.site.url);
        let oauth = OAuth::builder(&url).login(Robot::default()).build();
        let error = refused(&link(&url, &oauth), "").await;
        assert!(matches!(error, OAuthError::Refused { .. }), "{error}");
        let lines = self.site.lines();
        let gets = lines.iter().filter_map(|line| line.strip_prefix("GET ")).map(str::to_owned);
        assert!(!self.documents.lock().unwrap().is_empty() || lines.len() == 5);
        gets.collect()
    }
}

fn tail(base: &str, header: &str, path: &str) -> Answer {
    match path {
        // Registration always fails: discovery is complete at that point.
        "/register" | "/as/register" => answer(400, json!({"error": "enough"})),
        path if path.starts_with("/.well-known") || path.contains("/.well-known") => {
            answer(404, Value::Null)
        }
        _ => answer(401, Value::Null).with("www-authenticate", header.replace("BASE", base)),
    }
}

fn server(issuer: &str) -> Value {
    json!({
        "issuer": issuer, "authorization_endpoint": "BASE/authorize", "token_endpoint": "BASE/token",
        "registration_endpoint": "BASE/register", "code_challenge_methods_supported": ["S256"],
    })
}

fn resource(resource: &str, issuer: &str) -> Value {
    json!({"resource": resource, "authorization_servers": [issuer]})
}

const PRM: &str = "/.well-known/oauth-protected-resource";
const RFC: &str = "/.well-known/oauth-authorization-server";
const OIDC: &str = "/.well-known/openid-configuration";

// ACL-03, ACL-04
#[tokio::test]
async fn resource_metadata_is_fetched_from_the_challenge_then_path_then_root() {
    let named = Alone::new(
        r#"Bearer resource_metadata="BASE/elsewhere""#,
        &[("/elsewhere", resource("BASE/x/mcp", "BASE")), (RFC, server("BASE"))],
    )
    .await;
    assert_eq!(named.asked("/x/mcp").await, ["/elsewhere", RFC]);
    let at_path = format!("{PRM}/x/mcp");
    let by_path = [(at_path.as_str(), resource("BASE/x/mcp", "BASE")), (RFC, server("BASE"))];
    let by_path = Alone::new("Bearer", &by_path).await;
    assert_eq!(by_path.asked("/x/mcp").await, [at_path.as_str(), RFC]);
    let by_root = [(PRM, resource("BASE", "BASE")), (RFC, server("BASE"))];
    let by_root = Alone::new("Bearer", &by_root).await;
    assert_eq!(by_root.asked("/x/mcp").await, [at_path.as_str(), PRM, RFC]);
    // A server at the root has only one metadata URL.
    let bare = [(PRM, resource("BASE", "BASE")), (RFC, server("BASE"))];
    assert_eq!(Alone::new("Bearer", &bare).await.asked("/").await, [PRM, RFC]);
}

#[tokio::test]
async fn resource_metadata_url_keeps_the_query_of_the_server() {
    let at_path = format!("{PRM}/x/mcp");
    let documents =
        [(at_path.as_str(), resource("BASE/x/mcp?tenant=a", "BASE")), (RFC, server("BASE"))];
    let by_query = Alone::new("Bearer", &documents).await;
    assert_eq!(by_query.asked("/x/mcp?tenant=a").await, [at_path.as_str(), RFC]);
    assert_eq!(by_query.site.all(&at_path)[0].query, "tenant=a");
    // A server at the root with a query, and a server that publishes at the root only.
    let at_root = [(PRM, resource("BASE/?tenant=a", "BASE")), (RFC, server("BASE"))];
    let at_root = Alone::new("Bearer", &at_root).await;
    assert_eq!(at_root.asked("/?tenant=a").await, [PRM, RFC]);
    assert_eq!(at_root.site.all(PRM)[0].query, "tenant=a");
    let without = [(PRM, resource("BASE", "BASE")), (RFC, server("BASE"))];
    let without = Alone::new("Bearer", &without).await;
    let asked = without.asked("/x/mcp?tenant=a").await;
    assert_eq!(asked, [at_path.as_str(), at_path.as_str(), PRM, RFC]);
}

// ACL-06
#[tokio::test]
async fn authorization_server_metadata_urls_are_tried_in_order() {
    let at = |place: &str, issuer: &str| {
        let (place, issuer) = (place.to_owned(), issuer.to_owned());
        async move {
            let documents = [(PRM, resource("BASE", &issuer)), (place.as_str(), server(&issuer))];
            Alone::new("Bearer", &documents).await.asked("/").await
        }
    };
    let [first, second, third] = [format!("{RFC}/as"), format!("{OIDC}/as"), format!("/as{OIDC}")];
    assert_eq!(at(RFC, "BASE").await, [PRM, RFC]);
    assert_eq!(at(OIDC, "BASE").await, [PRM, RFC, OIDC]);
    assert_eq!(at(&first, "BASE/as").await, [PRM, &first]);
    assert_eq!(at(&second, "BASE/as").await, [PRM, &first, &second]);
    assert_eq!(at(&third, "BASE/as").await, [PRM, &first, &second, &third]);
}

// ACL-26
#[tokio::test]
async fn server_without_resource_metadata_is_its_own_authorization_server() {
    let published = Alone::new("Bearer", &[(RFC, server("BASE"))]).await;
    let at_path = format!("{PRM}/x/mcp");
    assert_eq!(published.asked("/x/mcp").await, [at_path.as_str(), PRM, RFC]);
    let asked = &published.site.all(RFC)[0];
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-03-26"));
    // Without that document too, the default endpoints of 2025-03-26 apply.
    let silent = Alone::new("Bearer", &[]).await;
    assert_eq!(silent.asked("/x/mcp").await, [at_path.as_str(), PRM, RFC]);
    assert_eq!(silent.site.all("/register").len(), 1);
}

// ACL-05
#[tokio::test]
async fn metadata_of_another_server_is_rejected_before_the_issuer_is_contacted() {
    for other in ["https://evil.example.com/mcp", "http://127.0.0.1:1/mcp"] {
        let ways = Ways { resource: json!({"resource": other}), ..Ways::default() };
        let world = World::with(ways).await;
        let error = refused(&link(&world.url(), &world.oauth().build()), "").await;
        assert!(matches!(error, OAuthError::OtherResource { .. }), "{error}");
        assert!(world.issuer.lines().is_empty());
    }
}

// ACL-07
#[tokio::test]
async fn metadata_of_another_authorization_server_is_rejected() {
    let world =
        World::with(Ways { issuer: json!({"issuer": "https://evil.test"}), ..Ways::default() });
    let world = world.await;
    let error = refused(&link(&world.url(), &world.oauth().build()), "").await;
    assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
    assert_eq!(world.issuer.lines().len(), 1);
    // Compared as text: an equivalent URL is another issuer.
    let slash =
        Alone::new("Bearer", &[(PRM, resource("BASE", "BASE")), (RFC, server("BASE/"))]).await;
    let oauth = OAuth::builder(&slash.site.url).login(Robot::default()).build();
    let error = refused(&link(&slash.site.url, &oauth), "").await;
    assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
}

// ACL-29
#[tokio::test]
async fn configured_authorization_server_is_chosen_among_several() {
    let (one, two) = (World::new().await, World::new().await);
    let both = json!({"authorization_servers": [one.issuer.url, two.issuer.url]});
    let world = World::with(Ways { resource: both, ..Ways::default() }).await;
    let oauth = world.oauth().client_id("known").issuer(&two.issuer.url).build();
    // The server rejects these tokens, but the choice of the issuer is visible before that.
    let error = refused(&link(&world.url(), &oauth), "").await;
    assert!(matches!(error, OAuthError::TokenRefused { .. }), "{error}");
    assert_eq!((one.issuer.lines().len(), two.logins()), (0, 1));
}

// ACL-10
#[tokio::test]
async fn resource_identifier_is_sent_verbatim() {
    let ways = |resource: Value| Ways { resource, ..Ways::default() };
    for path in ["", "/", "/mcp", "/mcp/"] {
        let world = World::with(ways(json!({"resource": format!("BASE{path}")}))).await;
        let oauth = world.oauth().build();
        let posted = post(&link(&world.url(), &oauth), "").await;
        assert_eq!(posted.unwrap(), 200, "{path}");
        let expect = Some(format!("{}{path}", world.mcp.url));
        assert_eq!(world.issuer.all("/authorize")[0].asks("resource"), expect);
        assert_eq!(world.issuer.all("/token")[0].field("resource"), expect);
    }
}
