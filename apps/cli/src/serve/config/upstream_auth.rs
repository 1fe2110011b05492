//! `auth` of an upstream: whose tokens the server sends, and how it acquires them.

use std::path::PathBuf;

use http::Uri;
use outlive_gateway::ExchangeSubject;
use serde_json::json;

use super::{
    asked::Asked,
    reader::{At, Problem, Read, Result, Section, Value},
    scopes::scopes,
    server::is_local_host,
};

/// Section of the documentation.
const SECTION: &str = "upstreams.NAME.auth";

/// OAuth at an upstream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpstreamAuthConfig {
    pub(crate) kind: AuthKind,
    pub(crate) scopes: Vec<String>,
    pub(crate) client_id: Option<String>,
    /// Environment variable with the secret of the client.
    pub(crate) client_secret_env: Option<String>,
    /// File with the private key of the client, relative to the folder of the file.
    pub(crate) client_key_file: Option<PathBuf>,
    /// Settings of an exchange; empty for other kinds.
    pub(crate) exchange: ExchangeConfig,
}

/// Way in which the server acquires tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthKind {
    Login,
    ClientCredentials,
    Exchange,
    EachUser,
}

/// Settings of an exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExchangeConfig {
    pub(crate) token_url: String,
    pub(crate) audience: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) subject: ExchangeSubject,
}

/// Sections of the file that make callers known to the server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownCallers {
    /// Whether there is `[auth]`.
    pub(super) has_auth: bool,
    /// Whether there is `[auth.proxy]`.
    pub(super) has_proxy: bool,
    /// Whether the pages of the proxy are at another address than `public_url`.
    pub(super) is_proxy_elsewhere: bool,
}

const KINDS: [(&str, AuthKind); 4] = [
    ("login", AuthKind::Login),
    ("client-credentials", AuthKind::ClientCredentials),
    ("exchange", AuthKind::Exchange),
    ("each-user", AuthKind::EachUser),
];

impl Read for AuthKind {
    fn read(value: Value<'_>) -> Result<Self> {
        let found = KINDS.iter().find(|(word, _)| value.text() == Some(*word));
        found.map(|(_, kind)| *kind).ok_or_else(|| value.unfit(&words()))
    }

    fn schema() -> serde_json::Value {
        json!({"enum": KINDS.map(|(word, _)| word)})
    }
}

/// Returns the kinds for a message.
fn words() -> String {
    KINDS.map(|(word, _)| format!("\"{word}\"")).join(" or ")
}

/// Reads `auth`, and reports mistakes.
pub(super) fn auth(
    table: Option<Section<'_>>,
    allow_http: bool,
    callers: KnownCallers,
    asked: &mut Asked,
) -> Result<Option<UpstreamAuthConfig>> {
    let is_there = table.is_some();
    let mut section = table.unwrap_or_else(Section::empty);
    let kind = section.take_as("kind", AuthKind::schema());
    let lacks_kind = is_there && kind.is_none();
    let kind = section.attempt(|_| kind.map(AuthKind::read).transpose()).flatten();
    let scopes = scopes(&mut section)?;
    let client_id: Option<At<String>> = section.read("client_id")?;
    let client_secret_env: Option<At<String>> = section.read("client_secret_env")?;
    let client_key_file: Option<At<String>> = section.read("client_key_file")?;
    let exchange = exchange(&mut section, kind, allow_http, callers)?;
    if lacks_kind {
        let what = format!("[{}] has no `kind`", section.path());
        let remedy = format!("write kind = {}", words());
        section.report(section.lacks("kind", what).or_remedy(remedy));
    }
    let client = Client {
        line: section.line,
        id: client_id.as_ref().map(|id| id.line),
        secret: client_secret_env.as_ref().map(|secret| secret.line),
        key: client_key_file.as_ref().map(|key| key.line),
    };
    if let Some(kind) = kind {
        section.attempt(|_| client.check(kind));
    }
    if kind == Some(AuthKind::EachUser) {
        let line = section.line;
        section.attempt(|_| check_pages(line, callers));
    }
    asked.note(SECTION, section.finish()?);
    Ok(kind.map(|kind| UpstreamAuthConfig {
        kind,
        scopes,
        client_id: client_id.map(|id| id.value),
        client_secret_env: client_secret_env.map(|secret| secret.value),
        client_key_file: client_key_file.map(|key| PathBuf::from(key.value)),
        exchange,
    }))
}

/// Reads the keys of an exchange, and reports them for other kinds.
fn exchange(
    section: &mut Section<'_>,
    kind: Option<AuthKind>,
    allow_http: bool,
    callers: KnownCallers,
) -> Result<ExchangeConfig> {
    let token_url: Option<At<String>> = section.read("token_url")?;
    let audience: Option<At<String>> = section.read("audience")?;
    let resource: Option<At<String>> = section.read("resource")?;
    let subjects =
        [("principal", ExchangeSubject::Principal), ("provider", ExchangeSubject::Provider)];
    let subject = section.choice("subject", &subjects);
    let line = section.line;
    if kind.is_some_and(|kind| kind != AuthKind::Exchange) {
        let lines = [
            ("token_url", token_url.as_ref().map(|key| key.line)),
            ("audience", audience.as_ref().map(|key| key.line)),
            ("resource", resource.as_ref().map(|key| key.line)),
            ("subject", subject.as_ref().map(|key| key.line)),
        ];
        for (key, line) in lines.iter().filter_map(|(key, line)| Some((key, (*line)?))) {
            let what = format!("`{key}` needs kind = \"exchange\"");
            section.report(Problem::at(line, what).remedy(format_args!("remove `{key}`")));
        }
    }
    if kind == Some(AuthKind::Exchange) {
        if audience.is_none() && resource.is_none() {
            section.report(
                Problem::at(line, "the exchange needs an `audience` or a `resource`")
                    .remedy("add audience = \"…\", the name of the upstream at `token_url`"),
            );
        }
        match &token_url {
            Some(url) => {
                section.attempt(|_| check_token_url(url, allow_http));
            }
            None => section.report(
                Problem::at(line, "the exchange needs a `token_url`")
                    .remedy("add token_url = \"https://…/token\""),
            ),
        }
        section.attempt(|_| check_callers(subject.as_ref(), line, callers));
    }
    Ok(ExchangeConfig {
        token_url: token_url.map(|url| url.value).unwrap_or_default(),
        audience: audience.map(|audience| audience.value),
        resource: resource.map(|resource| resource.value),
        subject: subject.map(|subject| subject.value).unwrap_or_default(),
    })
}

fn check_token_url(url: &At<String>, allow_http: bool) -> Result<()> {
    let uri: Option<Uri> = url.value.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    match uri.as_ref().and_then(Uri::scheme_str).filter(|_| !host.is_empty()) {
        Some("https") => Ok(()),
        Some("http") if allow_http || is_local_host(host) => Ok(()),
        Some("http") => {
            Err(Problem::at(url.line, "`http:` to another machine sends tokens in clear text")
                .remedy("write https://…, or allow_http = true in the upstream"))
        }
        _ => Err(Problem::at(url.line, "`token_url` is not a URL")
            .remedy("write token_url = \"https://…/token\"")),
    }
}

/// Checks that the server knows the tokens that are exchanged.
fn check_callers(
    subject: Option<&At<ExchangeSubject>>,
    line: usize,
    callers: KnownCallers,
) -> Result<()> {
    let line = subject.map_or(line, |subject| subject.line);
    let is_provider = subject.is_some_and(|it| it.value == ExchangeSubject::Provider);
    match (is_provider, callers) {
        (true, KnownCallers { has_proxy: false, .. }) => Err(Problem::at(
            line,
            "`subject = \"provider\"` needs [auth.proxy]: the provider's token is known only there",
        )
        .remedy("add [auth.proxy], or write subject = \"principal\"")),
        (false, KnownCallers { has_auth: false, .. }) => Err(Problem::at(
            line,
            "the exchange needs [auth]: without it, callers have no token to exchange",
        )
        .remedy("add [auth] with an issuer, or use another kind")),
        _ => Ok(()),
    }
}

/// Checks that users can log in on a page of the server.
fn check_pages(line: usize, callers: KnownCallers) -> Result<()> {
    match callers {
        KnownCallers { has_proxy: false, .. } => {
            let what = "kind = \"each-user\" needs [auth.proxy]: without a browser login the server cannot identify the user of the page";
            Err(Problem::at(line, what).remedy("add [auth.proxy], or use kind = \"exchange\""))
        }
        KnownCallers { is_proxy_elsewhere: true, .. } => {
            let what = "`public_url` of [server] is not the origin of `resource` of [auth], where the login page is";
            Err(Problem::at(line, what)
                .remedy("remove `public_url`, or use the same origin in both"))
        }
        _ => Ok(()),
    }
}

/// Lines of the keys that identify the client.
struct Client {
    line: usize,
    id: Option<usize>,
    secret: Option<usize>,
    key: Option<usize>,
}

impl Client {
    fn check(&self, kind: AuthKind) -> Result<()> {
        match (kind, self.id, self.secret, self.key) {
            (_, _, Some(line), Some(_)) => Err(Problem::at(
                line,
                "`client_secret_env` and `client_key_file` exclude each other",
            )
            .remedy("remove one of them")),
            (AuthKind::Login | AuthKind::EachUser, _, _, Some(line)) => {
                let what = "`client_key_file` needs kind = \"client-credentials\" or \"exchange\"";
                Err(Problem::at(line, what)
                    .remedy("remove `client_key_file`, or use `client_secret_env`"))
            }
            (AuthKind::Login | AuthKind::EachUser, None, Some(line), _) => {
                Err(Problem::at(line, "`client_secret_env` needs a `client_id`")
                    .remedy("add client_id = \"…\""))
            }
            (AuthKind::Login | AuthKind::EachUser, ..) => Ok(()),
            (_, None, ..) => Err(Problem::at(self.line, "this kind of `auth` needs a `client_id`")
                .remedy("add client_id = \"…\", the ID of a client that you registered")),
            (_, Some(line), None, None) => {
                let what = "this client needs `client_secret_env` or `client_key_file`";
                Err(Problem::at(line, what).remedy(
                    "add client_secret_env = \"VARIABLE\" or client_key_file = \"key.pem\"",
                ))
            }
            (_, Some(_), ..) => Ok(()),
        }
    }
}

impl UpstreamAuthConfig {
    /// Returns whether the tokens belong to the principal of a call.
    pub(crate) fn is_of_users(&self) -> bool {
        match self.kind {
            AuthKind::Login | AuthKind::ClientCredentials => false,
            AuthKind::Exchange | AuthKind::EachUser => true,
        }
    }
}
