//! A server behind its proxy, and a provider.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::server::{
    Cx, Server, Tool,
    http::{HttpConfig, HttpServer},
};
use outlive_auth::{
    fetch::form,
    jose::{Algorithm, SigningKey, encode_base64url},
    server::ResourceServer,
};
use outlive_auth_proxy::{
    AuthProxy, AuthProxyBuilder, LoginStore, LoginStoreFuture, MemoryLoginStore, Provider,
};
use serde_json::json;

pub(crate) use crate::browser::{Browser, Got, Person, asked};
use crate::idp::{Idp, provider};
use crate::shared::{clock::StandingClock, site::Site};

/// Prefix of all tokens of the provider.
pub(crate) const SECRET: &str = "provider-secret";

/// Redirect URI of a program on the user's machine. No server listens there.
pub(crate) const LOOPBACK: &str = "http://127.0.0.1:9/callback";

pub(crate) const VERIFIER: &str = "a-verifier-that-is-long-enough-for-everybody-here";

pub(crate) fn hash(text: &str) -> String {
    encode_base64url(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}

/// A login store that records all writes.
pub(crate) struct WatchedLoginStore {
    inner: MemoryLoginStore,
    pub(crate) written: Mutex<Vec<(String, String)>>,
}

impl WatchedLoginStore {
    pub(crate) fn new(clock: &StandingClock) -> Arc<Self> {
        let inner = MemoryLoginStore::with_clock(1_000, Arc::new(clock.clone()));
        Arc::new(Self { inner, written: Mutex::default() })
    }

    fn record(&self, key: &str, value: &str) {
        self.written.lock().unwrap().push((key.to_owned(), value.to_owned()));
    }
}

impl LoginStore for WatchedLoginStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: String,
        ttl: Duration,
    ) -> LoginStoreFuture<'a, bool> {
        self.record(key, &value);
        self.inner.put_if_absent(key, value, ttl)
    }

    fn put<'a>(&'a self, key: &'a str, value: String, ttl: Duration) -> LoginStoreFuture<'a, ()> {
        self.record(key, &value);
        self.inner.put(key, value, ttl)
    }

    fn get<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, Option<String>> {
        self.inner.get(key)
    }

    fn delete<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, ()> {
        self.inner.delete(key)
    }
}

/// A provider, and a server behind its proxy.
pub(crate) struct World {
    pub(crate) provider: Site,
    pub(crate) idp: Arc<Mutex<Idp>>,
    pub(crate) proxy: AuthProxy,
    pub(crate) logins: Arc<WatchedLoginStore>,
    pub(crate) clock: StandingClock,
    /// Issuer, which is the URL of the proxy.
    pub(crate) base: String,
    _serving: HttpServer,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|proxy| proxy).await
    }

    pub(crate) async fn with(change: impl Fn(AuthProxyBuilder) -> AuthProxyBuilder) -> Self {
        Self::behind(
            |provider| Provider::discover(provider, "the-one").client_secret("hush"),
            change,
        )
        .await
    }

    pub(crate) async fn behind(
        upstream: impl Fn(&str) -> Provider,
        change: impl Fn(AuthProxyBuilder) -> AuthProxyBuilder,
    ) -> Self {
        let idp = Arc::new(Mutex::new(Idp {
            made: 0,
            codes: HashMap::new(),
            refresh: Vec::new(),
            revoked: Vec::new(),
            renewals: 0,
            error: None,
            refuses: None,
            expires_in: Some(3600),
            refreshes: true,
            claims: json!({}),
        }));
        let (known, key) = (Arc::clone(&idp), SigningKey::generate(Algorithm::Es256).unwrap());
        let provider =
            Site::start(move |base, seen| provider(base, seen, &mut known.lock().unwrap(), &key))
                .await;
        let clock = StandingClock::new();
        let logins = WatchedLoginStore::new(&clock);
        let build = |url: &str| {
            let builder = AuthProxy::builder(url, upstream(&provider.url))
                .scopes(["mcp", "write"])
                .secret([7; 32])
                .login_store(Arc::clone(&logins))
                .clock(Arc::new(clock.clone()));
            change(builder).build().unwrap()
        };
        let (serving, proxy, base) = serve(&clock, build).await;
        Self { provider, idp, proxy, logins, clock, base, _serving: serving }
    }

    /// Starts another replica of the proxy, with the same secret and login store.
    pub(crate) async fn replica(&self) -> (HttpServer, String) {
        let build = |url: &str| {
            let upstream = Provider::discover(&self.provider.url, "the-one").client_secret("hush");
            let builder =
                AuthProxy::builder(url, upstream).issuer(&self.base).scopes(["mcp", "write"]);
            let builder = builder.secret([7; 32]).login_store(Arc::clone(&self.logins));
            builder.clock(Arc::new(self.clock.clone())).build().unwrap()
        };
        let (serving, _, base) = serve(&self.clock, build).await;
        (serving, base)
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub(crate) fn later(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// Registers a client and returns its ID.
    pub(crate) async fn register(&self, redirect_uri: &str) -> String {
        let body = json!({"client_name": "Test", "redirect_uris": [redirect_uri]});
        let got = Browser::default().post_json(&format!("{}/register", self.base), &body).await;
        assert_eq!(got.status, 201, "{}", got.body);
        got.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// Returns the URL of an authorization request. `changes` override its parameters.
    pub(crate) fn authorize(&self, client: &str, uri: &str, changes: &[(&str, &str)]) -> String {
        let (challenge, resource) = (hash(VERIFIER), self.url());
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", uri),
            ("state", "client-state"),
            ("scope", "mcp"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ];
        for (name, value) in changes {
            match query.iter_mut().find(|(known, _)| known == name) {
                Some(known) => known.1 = value,
                None => query.push((name, value)),
            }
        }
        format!("{}/authorize?{}", self.base, form::encode(query))
    }

    /// Logs a user in and returns the code.
    pub(crate) async fn code(&self, client: &str, uri: &str) -> String {
        let back = Browser::default().log_in(&self.authorize(client, uri, &[])).await;
        asked(&back, "code").unwrap_or_else(|| panic!("{back}"))
    }

    /// Requests tokens. `changes` override the fields; an empty value removes a field.
    pub(crate) async fn token(&self, code: &str, client: &str, changes: &[(&str, &str)]) -> Got {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", client),
            ("redirect_uri", LOOPBACK),
            ("code_verifier", VERIFIER),
        ];
        self.ask("/token", &fields, changes).await
    }

    pub(crate) async fn refresh(&self, token: &str, client: &str, changes: &[(&str, &str)]) -> Got {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)];
        self.ask("/token", &fields, changes).await
    }

    async fn ask(&self, path: &str, fields: &[(&str, &str)], changes: &[(&str, &str)]) -> Got {
        let mut fields = fields.to_vec();
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.extend((!value.is_empty()).then_some((*name, *value)));
        }
        Browser::default().post(&format!("{}{path}", self.base), &form::encode(fields)).await
    }
}

/// Starts a server at an address that is known before it listens.
async fn serve(
    clock: &StandingClock,
    build: impl Fn(&str) -> AuthProxy,
) -> (HttpServer, AuthProxy, String) {
    for _ in 0..100 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (base, url) = (format!("http://{free}"), format!("http://{free}/mcp"));
        let proxy = build(&url);
        let auth = ResourceServer::builder(&url).issuer(proxy.issuer()).scopes(["mcp"]);
        let auth = auth.clock(Arc::new(clock.clone())).build().unwrap();
        let asked = proxy.clone();
        let server = Server::builder("behind", "1")
            .tool(Tool::new("whoami", async |cx: Cx| cx.principal().to_string()))
            .tool(Tool::new("upstream", move |cx: Cx| {
                let proxy = asked.clone();
                async move {
                    match proxy.provider_token(cx.principal()).await {
                        Ok(token) => format!("{} bytes", token.expose().len()),
                        Err(error) => error.to_string(),
                    }
                }
            }))
            .build()
            .unwrap();
        let config = HttpConfig::new().authenticator(auth).routes(proxy.clone());
        // Another process may have taken the port meanwhile.
        if let Ok(serving) = server.serve_http(free, config).await {
            return (serving, proxy, base);
        }
    }
    panic!("no port is free");
}
