//! Helpers: an issuer that signs every requested token, an MCP server that accepts its tokens, and
//! a script as browser.
//!
//! The script writes the URL of the login page to a file, and the test follows it.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use outlive::{
    auth::{
        fetch::form,
        jose::{Algorithm, JwkSet, SigningKey},
        server::{Issuer, ResourceServer},
    },
    server::{
        Cx, Server, Tool,
        http::{HttpConfig, HttpServer},
    },
};
use serde_json::{Value, json};

use crate::call::stage::{GUARD, Outlive};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) fields: HashMap<String, String>,
}

impl Seen {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Options of an issuer.
#[derive(Clone, Copy)]
pub(crate) struct Ways {
    /// Lifetime of tokens in seconds.
    pub(crate) expires_in: u64,
    /// Whether clients can register dynamically.
    pub(crate) registers: bool,
}

impl Default for Ways {
    fn default() -> Self {
        Self { expires_in: 3600, registers: true }
    }
}

/// An authorization server.
pub(crate) struct Authority {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Authority {
    pub(crate) fn start(ways: Ways) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (base, noted) = (url.clone(), Arc::clone(&seen));
        let key = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k1");
        let mut desk =
            Desk { base, ways, key, codes: HashMap::new(), refresh: HashMap::new(), made: 0 };
        // The thread runs until the test process ends.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                noted.lock().unwrap().push(request.clone());
                let (status, body) = desk.answer(&request);
                let (kind, text) = match &body {
                    Value::String(location) => (format!("location: {location}"), String::new()),
                    body => ("content-type: application/json".to_owned(), body.to_string()),
                };
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status} X\r\n{kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
            }
        });
        Self { url, seen }
    }

    /// Returns a token for a server, as after a login.
    #[cfg(target_os = "linux")] // for the tests of `outlive serve`, which run only on Linux
    pub(crate) fn token(&self, audience: &str, scope: &str) -> String {
        let asked =
            [("resource", audience), ("scope", scope), ("redirect_uri", "http://127.0.0.1:9/")];
        let back = agreed(&format!("{}/authorize?{}", self.url, form::encode(asked)));
        let (_, back) = back.split_once('?').unwrap();
        let given = get(&format!("{}/token?grant_type=authorization_code&{back}", self.url));
        let (_, given) = given.split_once("\r\n\r\n").unwrap();
        let given: Value = serde_json::from_str(given).unwrap();
        given["access_token"].as_str().unwrap().to_owned()
    }

    /// Returns all received requests for a path.
    pub(crate) fn all(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }
}

struct Desk {
    base: String,
    ways: Ways,
    key: SigningKey,
    /// Scopes and audience of the unused codes and refresh tokens.
    codes: HashMap<String, (String, String)>,
    refresh: HashMap<String, (String, String)>,
    made: usize,
}

impl Desk {
    fn answer(&mut self, seen: &Seen) -> (u16, Value) {
        let base = &self.base;
        match seen.path.as_str() {
            "/.well-known/oauth-authorization-server" => {
                let mut document = json!({
                    "issuer": base,
                    "jwks_uri": format!("{base}/keys"),
                    "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"),
                    "revocation_endpoint": format!("{base}/revoke"),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                });
                if self.ways.registers {
                    document["registration_endpoint"] = json!(format!("{base}/register"));
                }
                (200, document)
            }
            "/keys" => {
                (200, serde_json::from_str(&JwkSet::new([self.key.public()]).to_json()).unwrap())
            }
            "/register" => (201, json!({"client_id": "registered"})),
            "/authorize" => {
                self.made += 1;
                let code = format!("code-{}", self.made);
                let what = (seen.field("scope").to_owned(), seen.field("resource").to_owned());
                self.codes.insert(code.clone(), what);
                let query =
                    [("code", code.as_str()), ("state", seen.field("state")), ("iss", base)];
                (302, json!(format!("{}?{}", seen.field("redirect_uri"), form::encode(query))))
            }
            "/token" => self.token(seen),
            // The only opaque token that introspection accepts.
            "/introspect" => (
                200,
                json!({"active": seen.field("token") == "opaque-and-good",
                "sub": "ann", "client_id": "c", "scope": "mcp", "aud": "https://mcp.test/mcp"}),
            ),
            // Returns the same user for every token, as an identity provider without OpenID Connect
            // does.
            "/userinfo" => {
                (200, json!({"id": 7, "email": "ann@example.com", "email_verified": true}))
            }
            "/revoke" => {
                self.refresh.remove(seen.field("token"));
                (200, json!({}))
            }
            _ => (404, json!({})),
        }
    }

    fn token(&mut self, seen: &Seen) -> (u16, Value) {
        let known = match seen.field("grant_type") {
            "authorization_code" => self.codes.remove(seen.field("code")),
            "urn:ietf:params:oauth:grant-type:token-exchange" => {
                Some((seen.field("scope").to_owned(), seen.field("resource").to_owned()))
            }
            _ => self.refresh.remove(seen.field("refresh_token")),
        };
        let Some(what) = known else { return (400, json!({"error": "invalid_grant"})) };
        self.made += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({"iss": self.base, "sub": "ann", "client_id": "c", "scope": what.0,
            "aud": what.1, "exp": now + self.ways.expires_in, "jti": self.made.to_string()});
        let token = self.key.sign("at+jwt", &claims).unwrap();
        let refresh = format!("secret-refresh-{}", self.made);
        let given = json!({"access_token": token, "token_type": "Bearer", "scope": what.0,
            "expires_in": self.ways.expires_in, "refresh_token": refresh});
        self.refresh.insert(refresh, what);
        (200, given)
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        lines.read_line(&mut header).ok()?;
        match header.trim_end().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut fields: HashMap<String, String> = form::decode(query).into_iter().collect();
    fields.extend(form::decode(&String::from_utf8_lossy(&body)));
    Some(Seen { path: path.to_owned(), fields })
}

/// Sends a GET request. Returns the response with head and body.
pub(crate) fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// Returns the redirect of a login page after consent.
pub(crate) fn agreed(page: &str) -> String {
    let reply = get(page);
    let location = reply.lines().find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// An issuer, a server that accepts its tokens, and the program.
pub(crate) struct World {
    pub(crate) issuer: Authority,
    pub(crate) outlive: Outlive,
    pub(crate) url: String,
    // The fields are dropped in this order.
    _serving: HttpServer,
    _runtime: tokio::runtime::Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Ways::default())
    }

    pub(crate) fn with(ways: Ways) -> Self {
        let (issuer, outlive) = (Authority::start(ways), Outlive::new());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (serving, url) = runtime.block_on(protected(&issuer.url));
        let script = format!(
            "#!/bin/sh\nprintf %s \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n",
            outlive.folder.file("page")
        );
        let browser = outlive.folder.file("browser");
        fs::write(&browser, script).unwrap();
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
        Self { issuer, outlive, url, _serving: serving, _runtime: runtime }
    }

    /// Returns the value of BROWSER.
    pub(crate) fn browser(&self) -> String {
        self.outlive.folder.file("browser")
    }

    /// Starts the program with the browser script.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.outlive.command(arguments);
        command.env("BROWSER", self.browser()).stdin(Stdio::piped());
        command
    }

    /// Waits for the login page, consents, and follows the redirect. Returns the final page.
    pub(crate) fn browse(&self) -> String {
        let page = self.outlive.folder.file("page");
        let start = Instant::now();
        let url = loop {
            if let Ok(url) = fs::read_to_string(&page) {
                break url;
            }
            assert!(start.elapsed() < GUARD, "no page was opened");
            thread::sleep(Duration::from_millis(20));
        };
        fs::remove_file(page).unwrap();
        get(&agreed(&url))
    }

    /// Logs in with the browser script. Returns the exit code and the output.
    pub(crate) fn log_in(&self, more: &[&str]) -> (i32, String) {
        let arguments = [&["login", self.url.as_str()][..], more].concat();
        let login = self.start(&arguments);
        let said = self.browse();
        assert!(said.contains("You may close this page"), "{said}");
        let ended = login.wait_with_output().unwrap();
        let talk = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        (ended.status.code().unwrap(), talk)
    }

    /// Returns the path of the file with the credentials.
    pub(crate) fn credentials(&self) -> String {
        self.outlive.folder.file("data/credentials.json")
    }

    pub(crate) fn logins(&self) -> usize {
        self.issuer.all("/authorize").len()
    }

    /// Returns the grant types of all token requests.
    pub(crate) fn grants(&self) -> Vec<String> {
        let asked = self.issuer.all("/token");
        asked.iter().map(|seen| seen.field("grant_type").to_owned()).collect()
    }
}

/// Starts a server with authorization, at a URL chosen before it listens.
async fn protected(issuer: &str) -> (HttpServer, String) {
    let says = async |cx: Cx| cx.principal().scopes().to_string();
    let server = Server::builder("protected", "1")
        .tool(Tool::new("scopes", says))
        .tool(Tool::new("write", says).scopes(["write"]).always_listed())
        .build()
        .unwrap();
    for _ in 0..100 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{free}/mcp");
        let auth = ResourceServer::builder(&url).issuer(Issuer::new(issuer)).scopes(["mcp"]);
        let config = HttpConfig::new().authenticator(auth.build().unwrap());
        // Another process may have taken the port meanwhile.
        if let Ok(serving) = server.serve_http(free, config).await {
            return (serving, url);
        }
    }
    panic!("no free port found");
}
