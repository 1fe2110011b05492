//! A provider, a server behind its proxy, and a browser.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive::{
    http::{HttpConfig, Serving},
    server::{Cx, Server, Tool},
};
use outlive_auth::{
    client::{Login, OAuthError, Prepared, Redirected},
    fetch::form,
    jose::{Algorithm, SigningKey, encode_base64url},
    proxy::{MemoryNotes, Notes, Noting, Proxy, ProxyBuilder, Upstream},
    server::ResourceServer,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    client::kit::{Answer, Seen, Site, answer},
    server::support::StandingClock,
};

/// What every token of the provider begins with.
pub(crate) const SECRET: &str = "provider-secret";

/// Where a program on the user's machine listens; nobody does.
pub(crate) const LOOPBACK: &str = "http://127.0.0.1:9/callback";

pub(crate) const VERIFIER: &str = "a-verifier-that-is-long-enough-for-everybody-here";

/// What the provider knows, and how it is to behave.
pub(crate) struct Idp {
    made: usize,
    codes: HashMap<String, Seen>,
    pub(crate) refresh: Vec<String>,
    pub(crate) revoked: Vec<String>,
    pub(crate) renewals: usize,
    /// What people are sent back with in place of a code.
    pub(crate) error: Option<&'static str>,
    /// What tokens are refused with.
    pub(crate) refuses: Option<(u16, &'static str)>,
    pub(crate) expires_in: Option<u64>,
    pub(crate) refreshes: bool,
    /// Put over the claims of ID tokens.
    pub(crate) claims: Value,
}

fn provider(base: &str, seen: &Seen, idp: &mut Idp, key: &SigningKey) -> Answer {
    match seen.path.as_str() {
        "/.well-known/openid-configuration" => answer(
            200,
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "revocation_endpoint": format!("{base}/revoke"),
            }),
        ),
        "/authorize" => {
            idp.made += 1;
            let code = format!("provider-code-{}", idp.made);
            idp.codes.insert(code.clone(), seen.clone());
            let (said, state) = match idp.error {
                Some(error) => (("error", error.to_owned()), seen.asks("state").unwrap()),
                None => (("code", code), seen.asks("state").unwrap()),
            };
            let query = form::encode([(said.0, said.1.as_str()), ("state", &state)]);
            let back = format!("{}?{query}", seen.asks("redirect_uri").unwrap());
            answer(302, Value::Null).with("location", back)
        }
        "/token" => token(base, seen, idp, key),
        "/userinfo" => {
            let expected = format!("Bearer {SECRET}-access-");
            let good = seen.header("authorization").is_some_and(|it| it.starts_with(&expected));
            if good {
                answer(200, json!({"id": 7, "login": "ann"}))
            } else {
                answer(401, Value::Null)
            }
        }
        "/revoke" => {
            idp.revoked.push(seen.field("token").unwrap());
            answer(200, Value::Null)
        }
        _ => answer(404, Value::Null),
    }
}

fn token(base: &str, seen: &Seen, idp: &mut Idp, key: &SigningKey) -> Answer {
    let refused = |error: &str| answer(400, json!({"error": error}));
    // "the-one:hush", in a header or in the form.
    let in_header = seen.header("authorization") == Some("Basic dGhlLW9uZTpodXNo");
    let in_form = seen.field("client_id").as_deref() == Some("the-one")
        && seen.field("client_secret").as_deref() == Some("hush");
    if !in_header && !in_form {
        return refused("invalid_client");
    }
    if let Some((status, error)) = idp.refuses {
        return answer(status, json!({"error": error}));
    }
    let mut nonce = None;
    if seen.field("grant_type").as_deref() == Some("refresh_token") {
        let token = seen.field("refresh_token").unwrap();
        let Some(at) = idp.refresh.iter().position(|known| *known == token) else {
            return refused("invalid_grant");
        };
        // Each is good for one time.
        idp.refresh.remove(at);
        idp.renewals += 1;
    } else {
        let Some(asked) = idp.codes.remove(&seen.field("code").unwrap()) else {
            return refused("invalid_grant");
        };
        let challenge = hash(&seen.field("code_verifier").unwrap());
        assert_eq!(asked.asks("code_challenge"), Some(challenge));
        assert_eq!(asked.asks("code_challenge_method").as_deref(), Some("S256"));
        assert_eq!(asked.asks("client_id").as_deref(), Some("the-one"));
        assert_eq!(asked.asks("redirect_uri"), seen.field("redirect_uri"));
        nonce = asked.asks("nonce");
    }
    idp.made += 1;
    let refresh = format!("{SECRET}-refresh-{}", idp.made);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": base, "sub": "ann", "aud": "the-one", "exp": now + 3600, "nonce": nonce,
        "email": "ann@example.com",
    });
    for (name, value) in idp.claims.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let mut given = json!({
        "access_token": format!("{SECRET}-access-{}", idp.made), "token_type": "bearer",
        "id_token": key.sign("JWT", &claims).unwrap(),
    });
    if let Some(span) = idp.expires_in {
        given["expires_in"] = json!(span);
    }
    if idp.refreshes {
        idp.refresh.push(refresh.clone());
        given["refresh_token"] = json!(refresh);
    }
    answer(200, given)
}

pub(crate) fn hash(text: &str) -> String {
    encode_base64url(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}

/// Notes that can be read over somebody's shoulder.
pub(crate) struct WatchedNotes {
    inner: MemoryNotes,
    pub(crate) written: Mutex<Vec<(String, String)>>,
}

impl WatchedNotes {
    pub(crate) fn new(clock: &StandingClock) -> Arc<Self> {
        let inner = MemoryNotes::with_clock(1_000, Arc::new(clock.clone()));
        Arc::new(Self { inner, written: Mutex::default() })
    }

    fn note(&self, key: &str, note: &str) {
        self.written.lock().unwrap().push((key.to_owned(), note.to_owned()));
    }
}

impl Notes for WatchedNotes {
    fn keep<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, bool> {
        self.note(key, &note);
        self.inner.keep(key, note, ttl)
    }

    fn replace<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, ()> {
        self.note(key, &note);
        self.inner.replace(key, note, ttl)
    }

    fn kept<'a>(&'a self, key: &'a str) -> Noting<'a, Option<String>> {
        self.inner.kept(key)
    }

    fn forget<'a>(&'a self, key: &'a str) -> Noting<'a, ()> {
        self.inner.forget(key)
    }
}

/// A provider, and a server behind its proxy.
pub(crate) struct World {
    pub(crate) provider: Site,
    pub(crate) idp: Arc<Mutex<Idp>>,
    pub(crate) proxy: Proxy,
    pub(crate) notes: Arc<WatchedNotes>,
    pub(crate) clock: StandingClock,
    /// The issuer: where the proxy is.
    pub(crate) base: String,
    _serving: Serving,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|proxy| proxy).await
    }

    pub(crate) async fn with(change: impl Fn(ProxyBuilder) -> ProxyBuilder) -> Self {
        Self::behind(
            |provider| Upstream::discovered(provider, "the-one").client_secret("hush"),
            change,
        )
        .await
    }

    pub(crate) async fn behind(
        upstream: impl Fn(&str) -> Upstream,
        change: impl Fn(ProxyBuilder) -> ProxyBuilder,
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
        let notes = WatchedNotes::new(&clock);
        let build = |url: &str| {
            let builder = Proxy::builder(url, upstream(&provider.url))
                .scopes(["mcp", "write"])
                .secret([7; 32])
                .notes(Arc::clone(&notes))
                .clock(Arc::new(clock.clone()));
            change(builder).build().unwrap()
        };
        let (serving, proxy, base) = serve(&clock, build).await;
        Self { provider, idp, proxy, notes, clock, base, _serving: serving }
    }

    /// Another replica of the proxy, with the same secret and the same notes.
    pub(crate) async fn replica(&self) -> (Serving, String) {
        let build = |url: &str| {
            let upstream =
                Upstream::discovered(&self.provider.url, "the-one").client_secret("hush");
            let builder = Proxy::builder(url, upstream).issuer(&self.base).scopes(["mcp", "write"]);
            let builder = builder.secret([7; 32]).notes(Arc::clone(&self.notes));
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

    /// Registers a client, and says what it is called.
    pub(crate) async fn register(&self, redirect_uri: &str) -> String {
        let body = json!({"client_name": "Test", "redirect_uris": [redirect_uri]});
        let got = Browser::default().post_json(&format!("{}/register", self.base), &body).await;
        assert_eq!(got.status, 201, "{}", got.body);
        got.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// The address at which a client has somebody log in; `changes` are put over what it says.
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

    /// Logs somebody in, and has the code.
    pub(crate) async fn code(&self, client: &str, uri: &str) -> String {
        let back = Browser::default().log_in(&self.authorize(client, uri, &[])).await;
        asked(&back, "code").unwrap_or_else(|| panic!("{back}"))
    }

    /// Asks for tokens; `changes` are put over what is said, and an empty value takes it away.
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

/// Listens at an address that it knows before.
async fn serve(clock: &StandingClock, build: impl Fn(&str) -> Proxy) -> (Serving, Proxy, String) {
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
                    match proxy.upstream(cx.principal()).await {
                        Ok(token) => format!("{} bytes", token.expose().len()),
                        Err(error) => error.to_string(),
                    }
                }
            }))
            .build()
            .unwrap();
        let config = HttpConfig::new().authenticator(auth).routes(proxy.clone());
        // Somebody else may have taken it meanwhile.
        if let Ok(serving) = server.serve_http(free, config).await {
            return (serving, proxy, base);
        }
    }
    panic!("no address is free");
}

/// A parameter of an address.
pub(crate) fn asked(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    form::decode(query).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn location(&self) -> &str {
        self.header("location").unwrap_or_else(|| panic!("{self:?}"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }

    /// The sealed request in the form of a page.
    pub(crate) fn form(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"request\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

/// A browser: it keeps cookies, by host and port, and goes where it is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: HashMap<(String, String), String>,
    /// All that it was ever sent.
    pub(crate) seen: Vec<Got>,
}

impl Browser {
    pub(crate) async fn get(&mut self, url: &str) -> Got {
        self.send("GET", url, "", &[]).await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Got {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.send("POST", url, form, &[kind]).await
    }

    pub(crate) async fn post_json(&mut self, url: &str, body: &Value) -> Got {
        self.send("POST", url, &body.to_string(), &[("content-type", "application/json")]).await
    }

    pub(crate) async fn send(
        &mut self,
        verb: &str,
        url: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Got {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let ours = self.cookies.iter().filter(|((at, _), _)| at == host);
        let ours: Vec<String> = ours.map(|((_, name), value)| format!("{name}={value}")).collect();
        if !ours.is_empty() {
            head.push_str(&format!("cookie: {}\r\n", ours.join("; ")));
        }
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // A server that does not read all of a request closes before it is sent.
        let _ = stream.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply:?}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let got = Got { status, headers, body: body.to_owned() };
        for (name, value) in &got.headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                let (name, rest) = value.split_once('=').unwrap();
                let key = (host.to_owned(), name.to_owned());
                match value.contains("Max-Age=0;") {
                    true => drop(self.cookies.remove(&key)),
                    false => {
                        let value = rest.split(';').next().unwrap().to_owned();
                        self.cookies.insert(key, value);
                    }
                }
            }
        }
        self.seen.push(got.clone());
        got
    }

    /// Says what to a page that asks.
    pub(crate) async fn decide(&mut self, base: &str, page: &Got, decision: &str) -> Got {
        let form = form::encode([("request", page.form().as_str()), ("decision", decision)]);
        self.post(&format!("{base}/consent"), &form).await
    }

    /// Goes where it is sent until that is a place at which nobody is, and allows what it is asked.
    pub(crate) async fn log_in(&mut self, url: &str) -> String {
        let mut url = url.to_owned();
        for _ in 0..5 {
            let mut got = self.get(&url).await;
            if got.status == 200 {
                let base = url.split_once("/authorize").unwrap().0.to_owned();
                got = self.decide(&base, &got, "allow").await;
            }
            url = got.location().to_owned();
            if !url.starts_with("http://127.0.0.1:") || url.starts_with(LOOPBACK) {
                return url;
            }
        }
        panic!("it goes on and on: {url}");
    }
}

/// Logs in with a browser of its own.
#[derive(Clone, Default)]
pub(crate) struct Person;

impl Login for Person {
    async fn prepare(&self, _: Option<&str>) -> Result<Prepared, OAuthError> {
        Ok(Prepared::new(LOOPBACK, move |page| async move {
            Ok(Redirected::from_url(&Browser::default().log_in(&page).await))
        }))
    }
}
