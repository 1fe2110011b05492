//! An MCP server, its authorization server, and an automatic login.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use outlive_auth::{
    client::{Login, OAuth, OAuthBuilder, OAuthError, PendingLogin, RedirectParams},
    fetch::form,
};
use outlive_transport::client::{
    Tokens, TransportError, TransportErrorKind,
    http::{HttpLink, HttpOptions},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) use crate::support::site::{Answer, Seen, Site, answer};

/// Returns the `Location` of a GET request, as a browser would follow it.
pub(crate) async fn location(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let line = reply.lines().find_map(|line| line.strip_prefix("location: "));
    line.unwrap_or(&reply).to_owned()
}

/// Settings of the two test servers.
pub(crate) struct Ways {
    /// Members that override the resource metadata.
    pub(crate) resource: Value,
    /// Members that override the authorization server metadata; `null` removes a member.
    pub(crate) issuer: Value,
    /// Scope in the 401 challenge.
    pub(crate) challenge: Option<&'static str>,
    /// Lifetime of tokens.
    pub(crate) expires_in: Option<u64>,
    /// Whether refresh tokens are issued.
    pub(crate) refreshes: bool,
    /// Scopes of all tokens, regardless of the request, and whether the response contains them.
    pub(crate) granted: Option<(&'static str, bool)>,
    /// Members of the registration response, in addition to the client ID.
    pub(crate) registration: Value,
    /// Status and body that replace the registration response.
    pub(crate) no_registration: Option<(u16, Value)>,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            resource: json!({}),
            issuer: json!({}),
            challenge: None,
            expires_in: Some(3600),
            refreshes: true,
            granted: None,
            registration: json!({}),
            no_registration: None,
        }
    }
}

/// State of the authorization server.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) made: usize,
    /// Codes with their challenge and scopes.
    codes: HashMap<String, (String, String)>,
    /// Valid tokens with their scopes.
    pub(crate) good: HashMap<String, String>,
    pub(crate) refresh: HashSet<String>,
    /// Errors for the next token requests.
    pub(crate) refuse: Vec<(u16, &'static str)>,
}

/// A server at `/mcp` and its authorization server.
pub(crate) struct World {
    pub(crate) mcp: Site,
    pub(crate) issuer: Site,
    pub(crate) book: Arc<Mutex<Book>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Ways::default()).await
    }

    pub(crate) async fn with(ways: Ways) -> Self {
        let (book, ways) = (Arc::new(Mutex::new(Book::default())), Arc::new(ways));
        let (known, other) = (Arc::clone(&book), Arc::clone(&ways));
        let issuer = Site::start(move |base, seen| authorization(base, seen, &other, &known)).await;
        let (known, at) = (Arc::clone(&book), issuer.url.clone());
        let mcp = Site::start(move |base, seen| protected(base, &at, seen, &ways, &known)).await;
        Self { mcp, issuer, book }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.mcp.url)
    }

    /// Returns a builder with an automatic login.
    pub(crate) fn oauth(&self) -> OAuthBuilder {
        OAuth::builder(self.url()).client_name("Test").login(Robot::default())
    }

    /// Invalidates all tokens.
    pub(crate) fn expire(&self) {
        self.book.lock().unwrap().good.clear();
    }

    pub(crate) fn logins(&self) -> usize {
        self.issuer.all("/authorize").len()
    }
}

fn patch(mut document: Value, with: &Value) -> Value {
    for (name, value) in with.as_object().unwrap() {
        match value {
            Value::Null => {
                document.as_object_mut().unwrap().remove(name);
            }
            value => document[name] = value.clone(),
        }
    }
    document
}

fn protected(base: &str, issuer: &str, seen: &Seen, ways: &Ways, book: &Mutex<Book>) -> Answer {
    if seen.path == "/.well-known/oauth-protected-resource/mcp" {
        let usual = json!({"resource": format!("{base}/mcp"), "authorization_servers": [issuer]});
        let whole = patch(usual, &ways.resource).to_string().replace("BASE", base);
        return answer(200, serde_json::from_str(&whole).unwrap());
    }
    if seen.path != "/mcp" {
        return answer(404, Value::Null);
    }
    let token = seen.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let scopes = token.and_then(|token| book.lock().unwrap().good.get(token).cloned());
    let Some(scopes) = scopes else {
        let scope = ways.challenge.map(|scope| format!(", scope=\"{scope}\"")).unwrap_or_default();
        let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{place}\"{scope}");
        return answer(401, Value::Null).with("www-authenticate", challenge);
    };
    // The body contains the scope that the request requires.
    if !seen.body.is_empty() && !scopes.split(' ').any(|it| it == seen.body) {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", seen.body);
        return answer(403, Value::Null).with("www-authenticate", challenge);
    }
    answer(200, json!({"ok": true}))
}

fn authorization(base: &str, seen: &Seen, ways: &Ways, book: &Mutex<Book>) -> Answer {
    let mut book = book.lock().unwrap();
    match seen.path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let usual = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            });
            answer(200, patch(usual, &ways.issuer))
        }
        "/register" => {
            if let Some((status, body)) = &ways.no_registration {
                return answer(*status, body.clone());
            }
            book.made += 1;
            let usual = json!({"client_id": format!("client-{}", book.made)});
            answer(201, patch(usual, &ways.registration))
        }
        "/authorize" => {
            book.made += 1;
            let code = format!("code-{}", book.made);
            let challenge = seen.asks("code_challenge").unwrap();
            let scopes = seen.asks("scope").unwrap_or_default();
            book.codes.insert(code.clone(), (challenge, scopes));
            let state = seen.asks("state").unwrap();
            let query = form::encode([("code", code.as_str()), ("state", &state), ("iss", base)]);
            let back = format!("{}?{query}", seen.asks("redirect_uri").unwrap());
            answer(302, Value::Null).with("location", back)
        }
        "/token" => token(seen, ways, &mut book),
        "/revoke" => {
            let token = seen.field("token").unwrap();
            book.refresh.remove(&token);
            answer(200, Value::Null)
        }
        _ => answer(404, Value::Null),
    }
}

fn token(seen: &Seen, ways: &Ways, book: &mut Book) -> Answer {
    if let Some((status, error)) = book.refuse.pop() {
        return answer(status, json!({"error": error}));
    }
    let refused = |error: &str| answer(400, json!({"error": error}));
    let scopes = match seen.field("grant_type").as_deref() {
        Some("authorization_code") => {
            let verifier = seen.field("code_verifier").unwrap();
            let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
            let challenge = outlive_auth::jose::encode_base64url(digest);
            match book.codes.remove(&seen.field("code").unwrap()) {
                Some((expected, scopes)) if expected == challenge => scopes,
                _ => return refused("invalid_grant"),
            }
        }
        Some("refresh_token") => {
            // A refresh token is valid once.
            if !book.refresh.remove(&seen.field("refresh_token").unwrap()) {
                return refused("invalid_grant");
            }
            String::new()
        }
        _ => seen.field("scope").unwrap_or_default(),
    };
    book.made += 1;
    let (token, refresh) =
        (format!("secret-token-{}", book.made), format!("secret-refresh-{}", book.made));
    let scopes = ways.granted.map_or(scopes, |(granted, _)| granted.to_owned());
    let mut given = json!({"access_token": token, "token_type": "bearer"});
    if ways.granted.is_some_and(|(_, is_reported)| is_reported) {
        given["scope"] = json!(scopes);
    }
    book.good.insert(token.clone(), scopes);
    if let Some(span) = ways.expires_in {
        given["expires_in"] = json!(span);
    }
    if ways.refreshes {
        book.refresh.insert(refresh.clone());
        given["refresh_token"] = json!(refresh);
    }
    answer(200, given)
}

/// A login that completes immediately.
#[derive(Clone, Default)]
pub(crate) struct Robot {
    pub(crate) pages: Arc<Mutex<Vec<String>>>,
}

pub(crate) const BACK: &str = "http://127.0.0.1:9/callback";

impl Login for Robot {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let pages = Arc::clone(&self.pages);
        Ok(PendingLogin::new(BACK, move |page| async move {
            pages.lock().unwrap().push(page.clone());
            Ok(RedirectParams::from_url(&location(&page).await))
        }))
    }
}

/// Returns a link that takes its tokens from `oauth`.
pub(crate) fn link(url: &str, oauth: &OAuth) -> HttpLink {
    let mut options = HttpOptions::default();
    options.tokens = Some(Tokens::new(oauth.clone()));
    HttpLink::new(url, options).unwrap()
}

/// Posts a body and returns the status.
pub(crate) async fn post(
    link: &HttpLink,
    body: &'static str,
) -> Result<StatusCode, TransportError> {
    let mut reply = link.post(HeaderMap::new(), Bytes::from_static(body.as_bytes())).await?;
    let status = reply.status;
    reply.bytes().await?;
    Ok(status)
}

/// Posts a body and returns the error of the token source.
pub(crate) async fn refused(link: &HttpLink, body: &'static str) -> OAuthError {
    let error = post(link, body).await.unwrap_err();
    let TransportErrorKind::Token(token) = error.kind() else { panic!("{error}") };
    token.downcast_ref::<OAuthError>().unwrap().clone()
}
