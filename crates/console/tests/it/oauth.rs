//! Sign-in with OAuth against a scripted authorization server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use outlive::server::{
    Principal, Server,
    http::{
        AuthDecision, AuthRejection, Authenticator, HttpConfig, HttpServer, ResponseFuture,
        RouteBody, Routes,
    },
};
use outlive_console::OAuthLogin;
use serde_json::{Value, json};

use crate::desk::{Browser, Desk};

/// An authorization server, which is the authenticator of its tokens too.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    base: String,
    /// Forms of requests to the token endpoint.
    token_requests: Vec<BTreeMap<String, String>>,
    registrations: usize,
    revoked: Vec<String>,
    /// Valid access tokens.
    tokens: Vec<String>,
}

impl Provider {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no test panics here")
    }

    fn reply(&self, path: &str, body: &[u8]) -> Option<Value> {
        let mut state = self.state();
        let base = state.base.clone();
        Some(match path {
            "/.well-known/oauth-protected-resource/mcp" => {
                json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]})
            }
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
            }),
            "/register" => {
                state.registrations += 1;
                let request: Value = serde_json::from_slice(body).ok()?;
                json!({"client_id": "console", "redirect_uris": request["redirect_uris"]})
            }
            "/token" => {
                let form = form(body);
                let number = state.token_requests.len() + 1;
                state.token_requests.push(form);
                let token = format!("access-{number}");
                state.tokens = vec![token.clone()];
                json!({"access_token": token, "token_type": "Bearer", "expires_in": 600,
                    "refresh_token": format!("refresh-{number}")})
            }
            "/revoke" => {
                let token = form(body).remove("token").unwrap_or_default();
                state.revoked.push(token);
                state.tokens.clear();
                json!({})
            }
            _ => return None,
        })
    }
}

fn form(body: &[u8]) -> BTreeMap<String, String> {
    let text = std::str::from_utf8(body).expect("is text");
    outlive::auth::fetch::form::decode(text).into_iter().collect()
}

impl Routes for Provider {
    fn matches(&self, path: &str) -> Option<usize> {
        (path != "/mcp").then_some(1 << 16)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        let reply = self.reply(request.uri().path(), request.body());
        let response = match reply {
            Some(value) => Response::builder()
                .header("content-type", "application/json")
                .body(Bytes::from(value.to_string())),
            None => Response::builder().status(404).body(Bytes::new()),
        };
        Box::pin(async move { response.expect("is a response").map(RouteBody::from) })
    }
}

impl Authenticator for Provider {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        let sent = parts.headers.get("authorization").and_then(|it| it.to_str().ok());
        let token = sent.and_then(|sent| sent.strip_prefix("Bearer "));
        let state = self.state();
        let is_valid = token.is_some_and(|token| state.tokens.iter().any(|it| it == token));
        AuthDecision::Now(match is_valid {
            true => Ok(Principal::named("iss|ann|console").with_person("iss|ann")),
            false => Err(AuthRejection::invalid_token()),
        })
    }
}

struct Site {
    desk: Desk,
    provider: Provider,
    _serving: HttpServer,
}

impl Site {
    async fn start() -> Self {
        let provider = Provider::default();
        let server = Server::builder("idp", "1").build().expect("the server is valid");
        let http = HttpConfig::new().routes(provider.clone());
        let serving = server.serve_http("127.0.0.1:0", http).await.expect("the server listens");
        let base = format!("http://{}", serving.address());
        provider.state().base.clone_from(&base);
        let login = OAuthLogin::new(format!("{base}/mcp"));
        let mut desk = Desk::build(|console| console.login(login), false);
        desk.authenticator = Some(Arc::new(provider.clone()));
        Self { desk, provider, _serving: serving }
    }

    /// Starts a login. Returns the parameters of the login page.
    async fn start_login(&self, browser: &Browser<'_>) -> BTreeMap<String, String> {
        let page = browser.get("/console/in?next=tasks").await;
        assert!(page.text().contains("href=\"./in/start?next=tasks\""), "{}", page.text());
        let reply = browser.get("/console/in/start?next=tasks").await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let url = reply.header("location").expect("a login page");
        form(url.split_once('?').expect("parameters").1.as_bytes())
    }

    fn callback(&self, state: &str) -> String {
        let iss = self.provider.state().base.replace(':', "%3A").replace('/', "%2F");
        format!("/console/in/callback?code=c1&state={state}&iss={iss}")
    }

    async fn sign_in(&self) -> Browser<'_> {
        let browser = self.desk.browser();
        let asked = self.start_login(&browser).await;
        let reply = browser.get(&self.callback(&asked["state"])).await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (303, Some("../tasks")),
            "{}",
            reply.text()
        );
        browser
    }
}

#[tokio::test]
async fn login_uses_pkce_and_keeps_tokens_on_the_server() {
    let site = Site::start().await;
    let browser = site.desk.browser();
    let asked = site.start_login(&browser).await;
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["redirect_uri"], "https://ops.example.com/console/in/callback");
    assert!(asked["resource"].ends_with("/mcp"));
    let reply = browser.get(&site.callback(&asked["state"])).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert_eq!(browser.role().await.as_deref(), Some("person"));
    let me = browser.get("/console/api/v1/me").await.json();
    assert_eq!((&me["person"], &me["may_decide"]), (&json!("iss|ann"), &json!(true)));
    let request = site.provider.state().token_requests[0].clone();
    assert_eq!(
        (request["code"].as_str(), request["grant_type"].as_str()),
        ("c1", "authorization_code")
    );
    assert!(request["code_verifier"].len() >= 43);
    for (name, value) in browser.cookies.borrow().iter() {
        assert!(!value.contains("access-") && !value.contains("refresh-"), "{name}");
    }
}

#[tokio::test]
async fn redirect_of_another_browser_or_login_is_rejected() {
    let site = Site::start().await;
    let (victim, attacker) = (site.desk.browser(), site.desk.browser());
    let asked = site.start_login(&attacker).await;
    victim.get("/console/in").await;
    let reply = victim.get(&site.callback(&asked["state"])).await;
    assert_eq!((reply.status, victim.role().await), (403, None));
    let unknown = attacker.get(&site.callback("unknown")).await;
    assert_eq!((unknown.status, attacker.role().await), (403, None));
    assert!(site.provider.state().token_requests.is_empty());
    let callback = site.callback(&asked["state"]).replace("iss=http", "iss=https");
    assert_eq!(attacker.get(&callback).await.status, 403, "another issuer");
}

#[tokio::test]
async fn redirect_works_once() {
    let site = Site::start().await;
    let browser = site.desk.browser();
    let asked = site.start_login(&browser).await;
    let before = browser.cookies.borrow().clone();
    assert_eq!(browser.get(&site.callback(&asked["state"])).await.status, 303);
    let again = Browser { desk: &site.desk, cookies: before.into() };
    assert_eq!(again.get(&site.callback(&asked["state"])).await.status, 403);
    assert_eq!(site.provider.state().token_requests.len(), 1);
}

#[tokio::test]
async fn client_is_registered_once() {
    let site = Site::start().await;
    site.sign_in().await;
    site.sign_in().await;
    assert_eq!(site.provider.state().registrations, 1);
}

#[tokio::test]
async fn revoked_token_ends_the_session() {
    let site = Site::start().await;
    let browser = site.sign_in().await;
    site.provider.state().tokens.clear();
    assert_eq!(browser.role().await, None);
}

#[tokio::test]
async fn sign_out_revokes_the_tokens() {
    let site = Site::start().await;
    let browser = site.sign_in().await;
    assert_eq!(browser.submit("/console/settings", "action=sign-out").await.status, 303);
    assert_eq!(site.provider.state().revoked, ["refresh-1"]);
    assert_eq!(browser.role().await, None);
}

#[tokio::test]
async fn expiring_token_is_refreshed_by_one_of_concurrent_requests() {
    let site = Site::start().await;
    let browser = site.sign_in().await;
    site.desk.advance(Duration::from_secs(590));
    let (one, two, three) = tokio::join!(browser.role(), browser.role(), browser.role());
    assert!(one.is_some() && two.is_some() && three.is_some());
    let requests = site.provider.state().token_requests.len();
    assert_eq!(requests, 2, "one login and one refresh");
}
