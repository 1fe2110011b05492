//! A console over a store in memory, called through its routes, and a browser that keeps cookies.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, RwLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, header, request::Parts};
use outlive::{
    server::{
        SealKeys, Server,
        http::{AuthDecision, Authenticator, EventSource, Routes, StaticTokens},
        tasks::TaskConfig,
    },
    store::{Audience, Binding, MemoryStore, NewInputRequest, NewTask, TaskId, TaskStore as _},
    wire::InputRequest,
};
use outlive_console::{Console, ConsoleBuilder};
use serde_json::{Value, json, value::to_raw_value};

use crate::support::Wall;

/// Keys of the server.
pub(crate) const KEYS: [u8; 32] = [7; 32];

/// Deciding tokens, and the MCP token of ann.
pub(crate) const ANN: &str = "ann-decides-0123456789";
pub(crate) const BEN: &str = "ben-decides-0123456789";
pub(crate) const ADA: &str = "ada-decides-0123456789";
pub(crate) const ANN_MCP: &str = "ann-mcp-token-0123456789";

/// Authenticator whose tokens a test replaces.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<RwLock<StaticTokens>>);

impl Tokens {
    pub(crate) fn set(&self, tokens: StaticTokens) {
        *self.0.write().expect("no test panics here") = tokens;
    }
}

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        let tokens = self.0.read().expect("no test panics here");
        match tokens.authenticate(parts) {
            AuthDecision::Now(result) => AuthDecision::Now(result),
            AuthDecision::Later(_) => unreachable!("tokens are in memory"),
        }
    }
}

/// The tokens of all people.
pub(crate) fn everyone() -> StaticTokens {
    StaticTokens::new()
        .with_deciding("ann", ANN)
        .with_deciding("ben", BEN)
        .with_deciding("ada", ADA)
        .with("ann", ANN_MCP)
}

/// A console and its server.
pub(crate) struct Desk {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) wall: Wall,
    pub(crate) tokens: Tokens,
    pub(crate) console: Console,
    pub(crate) authenticator: Option<Arc<dyn Authenticator>>,
    pub(crate) host: &'static str,
}

impl Desk {
    /// A console of a server with tokens, behind TLS. Ada is an operator.
    pub(crate) fn new() -> Self {
        Self::build(|console| console.operator("ada"), true)
    }

    /// A console of a server without an authenticator, on this machine.
    pub(crate) fn local() -> Self {
        Self { host: "127.0.0.1:8000", ..Self::build(|console| console, false) }
    }

    pub(crate) fn build(
        configure: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder,
        has_tokens: bool,
    ) -> Self {
        let (store, wall) = (Arc::new(MemoryStore::new()), Wall::default());
        let server = Server::builder("shop", "1")
            .clock(wall.clone())
            .seal_keys(SealKeys::new(KEYS))
            .tasks(TaskConfig::people(Arc::clone(&store) as _))
            .build()
            .expect("the server is valid");
        let console = configure(Console::new(&server)).build().expect("the console is valid");
        let tokens = Tokens::default();
        tokens.set(everyone());
        let authenticator = has_tokens.then(|| Arc::new(tokens.clone()) as Arc<dyn Authenticator>);
        Self { store, wall, tokens, console, authenticator, host: "ops.example.com" }
    }

    /// Moves the clocks of server and store.
    pub(crate) fn advance(&self, span: Duration) {
        self.wall.advance(span);
        self.store.advance_clock(span);
    }

    pub(crate) async fn send(&self, ask: Ask) -> Reply {
        let Ask { method, path, headers, body, address } = ask;
        let mut request = Request::builder().method(method).uri(path).header("host", self.host);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let mut request = request.body(Bytes::from(body)).expect("is a request");
        request.extensions_mut().insert(address);
        if let Some(authenticator) = &self.authenticator {
            request.extensions_mut().insert(Arc::clone(authenticator));
        }
        assert!(self.console.matches(request.uri().path()).is_some(), "{}", request.uri());
        let (parts, body) = self.console.respond(request).await.into_parts();
        let bytes = body.as_bytes().cloned();
        let events = body.into_events();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Reply { status, headers, body: bytes.unwrap_or_default(), events }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Ask::get(path)).await
    }

    pub(crate) fn browser(&self) -> Browser<'_> {
        Browser { desk: self, cookies: RefCell::default() }
    }

    /// Returns a browser that is signed in with a token.
    pub(crate) async fn signed_in(&self, token: &str) -> Browser<'_> {
        let browser = self.browser();
        let reply = browser.sign_in(token).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        browser
    }

    /// Creates a task of a person that waits for an approval by `names`.
    pub(crate) async fn approval(&self, id: &str, person: &str, names: &[&str], count: u32) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let request = NewInputRequest::new("#approval", "#approval", Some(elicitation("Approve?")))
            .audience(Audience::Names(names))
            .binding(Some(Binding::new(format!("digest-{id}"), "definition").count(count)));
        self.create(id, person, Some(request)).await;
    }

    /// Creates a task of a person, which waits for the request.
    pub(crate) async fn create(&self, id: &str, person: &str, request: Option<NewInputRequest>) {
        let call = json!({"version": "2026-07-28", "message": {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "deploy", "arguments": {"version": "1.4.2", "env": "prod"}},
        }});
        let call = to_raw_value(&call).expect("is JSON");
        let principal = format!("name:{person}");
        let task = NewTask::new(TaskId::new(id), principal, "deploy", "test", call)
            .person(Some(person.to_owned()))
            .indexed(true)
            .input_requests(request.into_iter().collect());
        assert!(self.store.create(task).await.expect("the store responds").is_new());
    }
}

/// Returns an elicitation with one field.
pub(crate) fn elicitation(message: &str) -> InputRequest {
    let request = json!({"method": "elicitation/create", "params": {
        "message": message,
        "requestedSchema": {"type": "object", "properties": {"quarter": {"type": "integer"}}},
    }});
    serde_json::from_value(request).expect("is an elicitation")
}

/// A request.
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
    address: IpAddr,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: &str, body: &str) -> Self {
        let (path, body) = (path.to_owned(), body.to_owned());
        Self { method, path, headers: Vec::new(), body, address: [127, 0, 0, 1].into() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path, "")
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self::new("POST", path, body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self) -> Self {
        self.header("content-type", "application/json")
    }

    pub(crate) fn same_origin(self) -> Self {
        self.header("sec-fetch-site", "same-origin")
    }

    pub(crate) fn from(mut self, address: impl Into<IpAddr>) -> Self {
        self.address = address.into();
        self
    }
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) events: Option<Box<dyn EventSource>>,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the header that sets a cookie.
    pub(crate) fn set_cookie(&self, name: &str) -> Option<&str> {
        let all = self.headers.get_all(header::SET_COOKIE).iter();
        let mut all = all.filter_map(|value| value.to_str().ok());
        all.find(|value| value.starts_with(&format!("{name}=")))
    }

    /// Returns the form token of a page.
    #[track_caller]
    pub(crate) fn form_token(&self) -> String {
        let (_, rest) = self
            .text()
            .split_once("name=\"form_token\" value=\"")
            .unwrap_or_else(|| panic!("no form: {}", self.text()));
        rest.split('"').next().expect("a value").to_owned()
    }
}

/// A browser.
pub(crate) struct Browser<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) cookies: RefCell<BTreeMap<String, String>>,
}

impl Browser<'_> {
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Ask::get(path)).await
    }

    pub(crate) async fn send(&self, ask: Ask) -> Reply {
        let pair = |(name, value): (&String, &String)| format!("{name}={value}");
        let pairs: Vec<_> = self.cookies.borrow().iter().map(pair).collect();
        let ask = match pairs.is_empty() {
            true => ask,
            false => ask.header("cookie", &pairs.join("; ")),
        };
        let reply = self.desk.send(ask).await;
        for set in reply.headers.get_all(header::SET_COOKIE) {
            let set = set.to_str().expect("cookies are text");
            let (name, value) =
                set.split(';').next().and_then(|it| it.split_once('=')).expect("a cookie");
            match set.contains("Max-Age=0;") {
                true => drop(self.cookies.borrow_mut().remove(name)),
                false => drop(self.cookies.borrow_mut().insert(name.into(), value.into())),
            }
        }
        reply
    }

    /// Opens a page, and submits its form with these values.
    pub(crate) async fn submit(&self, path: &str, values: &str) -> Reply {
        let token = self.get(path).await.form_token();
        self.post(path, &format!("form_token={token}&{values}")).await
    }

    /// Submits a form from a page of the console.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.send(Ask::post(path, body).same_origin()).await
    }

    pub(crate) async fn sign_in(&self, token: &str) -> Reply {
        self.submit("/console/in", &format!("token={token}")).await
    }

    /// Returns the role of the visitor; `None` if the browser is not signed in.
    pub(crate) async fn role(&self) -> Option<String> {
        let reply = self.get("/console/api/v1/me").await;
        (reply.status == 200).then(|| reply.json()["role"].as_str().unwrap_or("").to_owned())
    }
}
