//! An authorization server that signs the requested tokens, and an upstream that accepts them.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderValue, header, request::Parts};
use outlive::{
    auth::{
        client::{Login, OAuthError, PendingLogin, RedirectParams},
        fetch::form,
        jose::{Algorithm, Algorithms, Jwk, JwkSet, Jws, SigningKey},
        server::{Issuer, ResourceServer},
    },
    server::{
        Cx, Principal, Scopes, Server, Tool,
        http::{AuthDecision, AuthRejection, Authenticator, HttpConfig, HttpServer},
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::site::{Answer, Seen, Site, answer};

/// Client secret that the authorization server knows.
pub(crate) const SECRET: &str = "secret-of-the-gateway";

/// Grant type of a token exchange.
pub(crate) const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Number of the next token of a user.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// An authorization server.
pub(crate) struct Authority {
    pub(crate) site: Site,
    key: Arc<SigningKey>,
    desk: Arc<Mutex<Desk>>,
}

/// State of the authorization server.
struct Desk {
    made: usize,
    /// Lifetime of tokens in seconds.
    expires_in: u64,
    codes: HashMap<String, Grant>,
    refresh: HashMap<String, Grant>,
    /// Key of a client that signs assertions.
    client_key: Option<Jwk>,
    tokens: Vec<String>,
    /// Error for exchanges, and the user that it is for.
    refused: Option<(&'static str, String)>,
    /// Tokens of users that are not exchanged, as if they had expired.
    expired: HashSet<String>,
}

/// User, audience and scopes of a token.
#[derive(Clone)]
struct Grant {
    user: String,
    audience: String,
    scope: String,
    refreshes: bool,
}

impl Authority {
    pub(crate) async fn start(expires_in: u64) -> Self {
        let key = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k1");
        let key = Arc::new(key);
        let desk = Desk {
            made: 0,
            expires_in,
            codes: HashMap::new(),
            refresh: HashMap::new(),
            client_key: None,
            tokens: Vec::new(),
            refused: None,
            expired: HashSet::new(),
        };
        let desk = Arc::new(Mutex::new(desk));
        let (signs, serves) = (Arc::clone(&key), Arc::clone(&desk));
        let site =
            Site::start(move |base, seen| serves.lock().unwrap().respond(base, seen, &signs)).await;
        Self { site, key, desk }
    }

    /// Sets the key of the client that signs assertions.
    pub(crate) fn trust(&self, key: Jwk) {
        self.desk.lock().unwrap().client_key = Some(key);
    }

    /// Returns all tokens and refresh tokens that were issued.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.desk.lock().unwrap().tokens.clone()
    }

    /// Ends all logins.
    pub(crate) fn end_logins(&self) {
        self.desk.lock().unwrap().refresh.clear();
    }

    /// Rejects exchanges of a user.
    pub(crate) fn refuse_exchanges(&self, error: &'static str, user: &str) {
        self.desk.lock().unwrap().refused = Some((error, user.to_owned()));
    }

    /// Rejects the exchange of a token, as if it had expired.
    pub(crate) fn expire(&self, token: &str) {
        self.desk.lock().unwrap().expired.insert(token.to_owned());
    }

    /// Sets the lifetime of the next tokens.
    pub(crate) fn set_lifetime(&self, seconds: u64) {
        self.desk.lock().unwrap().expires_in = seconds;
    }

    /// Returns a token of a user for a server.
    pub(crate) fn token(&self, user: &str, audience: &str, seconds: u64) -> String {
        let grant = Grant {
            user: user.to_owned(),
            audience: audience.to_owned(),
            scope: "mcp".to_owned(),
            refreshes: false,
        };
        // Tokens differ, also those of the same second.
        let id = format!("outside-{}", NEXT.fetch_add(1, Ordering::SeqCst));
        sign(&self.key, &self.site.url, &grant, "app", seconds, &id)
    }

    /// Returns the number of token requests with a grant type.
    pub(crate) fn grants(&self, kind: &str) -> usize {
        let asked = self.site.all("/token");
        asked.iter().filter(|seen| seen.field("grant_type").as_deref() == Some(kind)).count()
    }

    pub(crate) fn logins(&self) -> usize {
        self.site.all("/authorize").len()
    }
}

impl Desk {
    fn respond(&mut self, base: &str, seen: &Seen, key: &SigningKey) -> Answer {
        match seen.path.as_str() {
            "/.well-known/oauth-authorization-server" => answer(
                200,
                json!({
                    "issuer": base,
                    "jwks_uri": format!("{base}/keys"),
                    "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"),
                    "registration_endpoint": format!("{base}/register"),
                    "revocation_endpoint": format!("{base}/revoke"),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported":
                        ["none", "client_secret_basic", "private_key_jwt"],
                }),
            ),
            "/keys" => {
                answer(200, serde_json::from_str(&JwkSet::new([key.public()]).to_json()).unwrap())
            }
            "/register" => answer(201, json!({"client_id": "registered"})),
            "/authorize" => self.authorize(base, seen),
            "/token" => self.token(base, seen, key),
            "/revoke" => {
                self.refresh.remove(&seen.field("token").unwrap());
                answer(200, Value::Null)
            }
            _ => answer(404, Value::Null),
        }
    }

    fn authorize(&mut self, base: &str, seen: &Seen) -> Answer {
        self.made += 1;
        let code = format!("code-{}", self.made);
        let grant = Grant {
            user: format!("user-{}", self.made),
            audience: seen.asks("resource").unwrap_or_default(),
            scope: seen.asks("scope").unwrap_or_default(),
            refreshes: true,
        };
        self.codes.insert(code.clone(), grant);
        let state = seen.asks("state").unwrap();
        let query = form::encode([("code", code.as_str()), ("state", &state), ("iss", base)]);
        let back = format!("{}?{query}", seen.asks("redirect_uri").unwrap());
        answer(302, Value::Null).with("location", back)
    }

    fn token(&mut self, base: &str, seen: &Seen, key: &SigningKey) -> Answer {
        let refused = |error: &str| answer(400, json!({"error": error}));
        let grant = match seen.field("grant_type").as_deref() {
            Some("authorization_code") => self.codes.remove(&seen.field("code").unwrap()),
            // A refresh token is valid once.
            Some("refresh_token") => self.refresh.remove(&seen.field("refresh_token").unwrap()),
            Some("client_credentials") => {
                if !self.is_authentic(base, seen) {
                    return refused("invalid_client");
                }
                Some(Grant {
                    user: "gateway".to_owned(),
                    audience: seen.field("resource").unwrap_or_default(),
                    scope: seen.field("scope").unwrap_or_default(),
                    refreshes: false,
                })
            }
            Some(EXCHANGE) => match self.exchanged(base, seen, key) {
                Ok(grant) => Some(grant),
                Err(error) => return refused(error),
            },
            _ => return refused("unsupported_grant_type"),
        };
        let Some(grant) = grant else { return refused("invalid_grant") };
        self.made += 1;
        let number = self.made.to_string();
        let client = seen.field("client_id").unwrap_or_else(|| "gateway".to_owned());
        let token = sign(key, base, &grant, &client, self.expires_in, &number);
        let mut given = json!({
            "access_token": token, "token_type": "Bearer", "expires_in": self.expires_in,
        });
        self.tokens.push(token);
        if grant.refreshes {
            let refresh = format!("secret-refresh-{number}");
            given["refresh_token"] = json!(refresh);
            self.tokens.push(refresh.clone());
            self.refresh.insert(refresh, grant);
        }
        answer(200, given)
    }

    /// Returns the grant of an exchange: the same user, for another server.
    fn exchanged(&self, base: &str, seen: &Seen, key: &SigningKey) -> Result<Grant, &'static str> {
        if !self.is_authentic(base, seen) {
            return Err("invalid_client");
        }
        let subject = seen.field("subject_token").unwrap();
        let subject = Jws::parse(&subject).unwrap();
        let claims = subject.verify([&key.public()], Algorithms::ALL);
        let claims: Value = serde_json::from_slice(claims.map_err(|_| "invalid_grant")?).unwrap();
        let user = claims["sub"].as_str().unwrap().to_owned();
        match &self.refused {
            Some((error, only)) if *only == user => return Err(error),
            _ if self.expired.contains(&seen.field("subject_token").unwrap()) => {
                return Err("invalid_grant");
            }
            _ => {}
        }
        let audience = seen.field("resource").unwrap();
        let scope = seen.field("scope").unwrap_or_default();
        Ok(Grant { user, audience, scope, refreshes: false })
    }

    /// Checks the secret or the assertion of the client `gateway`.
    fn is_authentic(&self, base: &str, seen: &Seen) -> bool {
        if let Some(assertion) = seen.field("client_assertion") {
            let jws = Jws::parse(&assertion).unwrap();
            let verified = jws.verify(&self.client_key, Algorithms::ALL);
            let claims: Value = match verified {
                Ok(claims) => serde_json::from_slice(claims).unwrap(),
                Err(_) => return false,
            };
            return claims["aud"] == base && claims["sub"] == "gateway";
        }
        // "gateway:secret-of-the-gateway"
        seen.header("authorization") == Some("Basic Z2F0ZXdheTpzZWNyZXQtb2YtdGhlLWdhdGV3YXk=")
    }
}

fn sign(
    key: &SigningKey,
    issuer: &str,
    grant: &Grant,
    client: &str,
    seconds: u64,
    id: &str,
) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({
        "iss": issuer, "sub": grant.user, "client_id": client, "aud": grant.audience,
        "scope": grant.scope, "exp": now + seconds, "jti": id,
    });
    key.sign("at+jwt", &claims).unwrap()
}

/// An upstream that accepts tokens of an authorization server, and records those that it gets.
pub(crate) struct Protected {
    pub(crate) url: String,
    seen: Arc<Mutex<Tokens>>,
    _serving: HttpServer,
}

#[derive(Default)]
struct Tokens {
    /// `Authorization` of each request, in order.
    sent: Vec<Option<String>>,
    rejected: HashSet<String>,
}

/// Records tokens, and rejects some of them.
struct Recorder {
    inner: ResourceServer,
    tokens: Arc<Mutex<Tokens>>,
}

impl Authenticator for Recorder {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        let sent = parts.headers.get(header::AUTHORIZATION);
        let sent = sent.map(|sent| sent.to_str().unwrap().to_owned());
        let mut tokens = self.tokens.lock().unwrap();
        tokens.sent.push(sent.clone());
        match sent.is_some_and(|sent| tokens.rejected.contains(&sent)) {
            true => AuthDecision::Now(Err(AuthRejection::invalid_token())),
            false => self.inner.authenticate(parts),
        }
    }

    fn document(&self, path: &str) -> Option<bytes::Bytes> {
        self.inner.document(path)
    }

    fn missing_scopes(&self, principal: &Principal, needed: &Scopes) -> Vec<HeaderValue> {
        self.inner.missing_scopes(principal, needed)
    }
}

impl Protected {
    /// Starts a server whose tool `whoami` returns the subject of the token.
    pub(crate) async fn start(authority: &Authority) -> Self {
        let whoami = async |cx: Cx| {
            let name = cx.principal().name().unwrap_or_default().to_owned();
            name.split('|').nth(1).unwrap_or_default().to_owned()
        };
        let server = Server::builder("protected", "1")
            .tool(Tool::new("whoami", whoami))
            .tool(Tool::new("later", whoami))
            .build()
            .unwrap();
        let seen = Arc::new(Mutex::new(Tokens::default()));
        // A port that another process takes meanwhile is replaced.
        for _ in 0..100 {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let url = format!("http://{free}/mcp");
            let inner = ResourceServer::builder(&url).issuer(Issuer::new(&authority.site.url));
            let inner = inner.scopes(["mcp"]).build().unwrap();
            let recorder = Recorder { inner, tokens: Arc::clone(&seen) };
            let config = HttpConfig::new().authenticator(recorder);
            if let Ok(serving) = server.serve_http(free, config).await {
                return Self { url, seen, _serving: serving };
            }
        }
        panic!("no port is free");
    }

    /// Returns the tokens of all requests.
    pub(crate) fn sent(&self) -> Vec<Option<String>> {
        self.seen.lock().unwrap().sent.clone()
    }

    /// Rejects all tokens that it got until now.
    pub(crate) fn reject_known(&self) {
        let mut tokens = self.seen.lock().unwrap();
        let known: Vec<String> = tokens.sent.iter().flatten().cloned().collect();
        tokens.rejected.extend(known);
    }
}

/// A user who logs in at once.
pub(crate) struct Robot;

impl Login for Robot {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        Ok(PendingLogin::new("http://127.0.0.1:9/callback", move |page| async move {
            Ok(RedirectParams::from_url(&location(&page).await))
        }))
    }
}

/// Returns the `Location` of a page.
pub(crate) async fn location(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let found = reply.lines().find_map(|line| line.strip_prefix("location: "));
    found.unwrap_or_else(|| panic!("{reply}")).to_owned()
}
