//! The server of a command, as a URL or a command line, and the connection to it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use outlive::{
    auth::client::{OAuth, OAuthError, Tokens},
    client::{
        Client, ClientBuilder, ClientError, Error, ServerError, ServerErrorKind, Target,
        transport::{ChildProcess, StaticToken, TransportErrorKind},
    },
    wire::Version,
};
use outlive_transport::client::http::HttpOptions;

use super::{older::OlderServers, screen::Screen};
use crate::{
    auth::{self, Credentials, Person},
    error::{CliError, Kind, Result},
};

/// Connection options.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Environment variable with the bearer token
    #[arg(long, value_name = "VARIABLE", conflicts_with = "token_file")]
    pub(super) token_env: Option<String>,
    /// File with the bearer token
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Header for every HTTP request; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// PEM file of the certificates to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// Uses only this protocol version
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol_version: Option<String>,
    /// Whether to skip the interactive login: for commands that only display.
    #[arg(skip)]
    pub(crate) without_login: bool,
}

/// A server, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Name under which its calls are saved: the URL, or the command line with quotes.
    pub(crate) text: String,
    place: Place,
    /// Working folder of a command, if it is not the current one.
    folder: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Url(String),
    Command(Vec<String>),
}

impl Server {
    /// Parses a URL, or a command line in one word.
    pub(crate) fn read(text: &str) -> Result<Self> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let place = Place::Url(text.to_owned());
            return Ok(Self { text: text.to_owned(), place, folder: None });
        }
        // A command line may contain a URL.
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let is_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
        if scheme.is_some_and(|scheme| scheme.chars().all(is_scheme))
            && !text.contains(char::is_whitespace)
        {
            return Err(CliError::usage(format!("`{text}` is not the URL of a server"))
                .remedy("write a URL that starts with http:// or https://"));
        }
        let words = split(text).ok_or_else(|| {
            CliError::usage(format!("the command line `{text}` has an unclosed quote"))
        })?;
        Self::command(words)
    }

    /// Creates a server that is a command.
    pub(crate) fn command(words: Vec<String>) -> Result<Self> {
        if words.is_empty() {
            return Err(CliError::usage("missing argument: the server")
                .remedy("name a URL, or a command that starts a server on stdio"));
        }
        let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        Ok(Self { text, place: Place::Command(words), folder: None })
    }

    /// Sets the working folder of a command.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Splits the server from the other words of a command line. A command after `--` is the
    /// server; otherwise the first word is.
    pub(crate) fn of_words(words: &[String], command: Vec<String>) -> Result<(Self, &[String])> {
        match (command.is_empty(), words) {
            (false, words) => Ok((Self::command(command)?, words)),
            (true, [server, words @ ..]) => Ok((Self::read(server)?, words)),
            (true, []) => Self::command(Vec::new()).map(|server| (server, words)),
        }
    }

    /// Returns the URL, unless the server is a command.
    pub(crate) fn url(&self) -> Option<&str> {
        match &self.place {
            Place::Url(url) => Some(url),
            Place::Command(_) => None,
        }
    }

    fn target(&self, screen: &Arc<Screen>) -> Target {
        match &self.place {
            Place::Url(url) => Target::Url(url.clone()),
            Place::Command(words) => {
                let (program, arguments) =
                    words.split_first().expect("a command line has at least one word");
                let screen = Arc::clone(screen);
                let mut program = ChildProcess::new(program).args(arguments.iter().cloned());
                if let Some(folder) = &self.folder {
                    program = program.current_dir(folder);
                }
                program.on_stderr(move |line| screen.quote(line)).into()
            }
        }
    }

    /// Returns the remedy for a server that does not serve MCP at the path.
    fn path_remedy(&self) -> String {
        let url = self.url().unwrap_or_default();
        format!("check the path of {url}, often /mcp; the server responds, but not with MCP")
    }

    /// Returns the remedy for an unreachable server.
    fn remedy(&self) -> String {
        match &self.place {
            Place::Url(url) => {
                format!("check that a server runs at {url}; `outlive serve` starts one")
            }
            Place::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                match program.contains(':') || program.starts_with("localhost") {
                    true => format!("write a URL with http://, such as http://{program}"),
                    false => {
                        format!("check that `{program}` is a program that serves MCP on stdio")
                    }
                }
            }
        }
    }
}

impl Connection {
    /// Connects to the server. `change` adds options to the client.
    pub(crate) async fn connect(
        &self,
        server: &Server,
        screen: &Arc<Screen>,
        change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client> {
        let mut builder = Client::builder("outlive", env!("CARGO_PKG_VERSION"))
            .label(server.text.as_str())
            .partial_results();
        if let Some(token) = self.token()? {
            builder = builder.token(token);
        } else if let Some(oauth) = self.oauth(server, screen)? {
            builder = builder.token_source(oauth);
        }
        for header in &self.headers {
            let (name, value) = read_header(header)?;
            builder = builder.header(name, value);
        }
        if let Some(file) = &self.ca_file {
            builder = builder.ca_file(file);
        }
        if let Some(version) = &self.protocol_version {
            builder = builder.protocol_version(read_version(version)?);
        }
        let mut older = self.protocol_version.is_none().then(OlderServers::open);
        if older.as_ref().is_some_and(|older| older.has(&server.text)) {
            builder = builder.older_first();
        }
        let failed = |error| trouble(&error, Some(server));
        let client = change(builder).connect(server.target(screen)).await.map_err(failed)?;
        if let Some(older) = &mut older {
            older.note(&server.text, client.is_older().await.map_err(failed)?);
        }
        Ok(client)
    }

    /// Returns the settings of an HTTP client for the pages of a server, and the headers of its
    /// requests.
    pub(crate) fn http(
        &self,
        server: &Server,
        screen: &Arc<Screen>,
    ) -> Result<(HttpOptions, HeaderMap)> {
        let mut options = HttpOptions::default();
        options.ca_file.clone_from(&self.ca_file);
        options.tokens = match self.token()? {
            Some(token) => Some(Tokens::new(StaticToken::new(token))),
            None => self.oauth(server, screen)?.map(Tokens::new),
        };
        let mut headers = HeaderMap::new();
        for header in &self.headers {
            let (name, value) = read_header(header)?;
            headers.append(name, value);
        }
        Ok((options, headers))
    }

    /// Returns the stored login to a server, with an interactive login if there is a terminal.
    fn oauth(&self, server: &Server, screen: &Arc<Screen>) -> Result<Option<OAuth>> {
        let Some(url) = server.url().filter(|_| !self.has_authorization()) else { return Ok(None) };
        // Logins require a data folder.
        let Ok(credentials) = Credentials::open() else { return Ok(None) };
        let mut oauth = credentials.oauth(url)?;
        if let Some(file) = &self.ca_file {
            oauth = oauth.ca_file(file);
        }
        if Screen::can_ask() && !self.without_login {
            oauth = oauth.login(Person::new(url, screen).port(credentials.port(url)?));
        }
        Ok(Some(oauth.build()))
    }

    /// Returns whether the command line has credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        self.token_env.is_some() || self.token_file.is_some() || self.has_authorization()
    }

    /// Returns whether a header on the command line has credentials.
    fn has_authorization(&self) -> bool {
        self.headers.iter().any(|header| {
            let name = header.split(':').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case("authorization")
        })
    }

    fn token(&self) -> Result<Option<String>> {
        if let Some(variable) = &self.token_env {
            return match env::var(variable) {
                Ok(token) if !token.trim().is_empty() => Ok(Some(token.trim().to_owned())),
                _ => Err(CliError::usage(format!(
                    "the environment variable {variable} is not set or empty"
                ))
                .remedy(format!("{variable}=TOKEN outlive …"))),
            };
        }
        let Some(file) = &self.token_file else { return Ok(None) };
        let text = fs::read_to_string(file).map_err(|error| {
            CliError::usage(format!("cannot read the token in {}: {error}", file.display()))
        })?;
        Ok(Some(text.trim().to_owned()))
    }
}

pub(crate) fn read_version(text: &str) -> Result<Version> {
    Version::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Version::ALL.iter().map(|version| version.as_str()).collect();
        CliError::usage(format!("`{text}` is not a protocol version"))
            .remedy(format!("use one of {}", all.join(", ")))
    })
}

fn read_header(text: &str) -> Result<(HeaderName, HeaderValue)> {
    let parts = text.split_once(':').and_then(|(name, value)| {
        Some((name.trim().parse().ok()?, HeaderValue::from_str(value.trim()).ok()?))
    });
    // Not shown, because the value may be a secret.
    parts.ok_or_else(|| {
        CliError::usage("a header is invalid").remedy("write --header 'Name: value'")
    })
}

/// Converts a client error to a message with a remedy.
pub(crate) fn trouble(error: &Error, server: Option<&Server>) -> CliError {
    if let Error::Client(ClientError::NoToken(why)) = error
        && let Some(why) = why.downcast_ref::<OAuthError>()
    {
        return auth::trouble(why);
    }
    let kind = match error {
        Error::Server(refused) if is_elsewhere(refused) => Kind::Unreachable,
        Error::Server(refused) => match refused.kind {
            ServerErrorKind::TaskCancelled => Kind::Cancelled,
            ServerErrorKind::Unauthorized
            | ServerErrorKind::Forbidden
            | ServerErrorKind::RateLimited { .. } => Kind::Unreachable,
            _ => Kind::Failed,
        },
        Error::Client(ClientError::Unanswered(_)) => Kind::Unanswered,
        Error::Client(ClientError::InvalidInputResponse(_) | ClientError::BadArguments(_)) => {
            Kind::Usage
        }
        _ => Kind::Unreachable,
    };
    let trouble = CliError::new(kind, error);
    match error {
        Error::Server(refused) if refused.kind == ServerErrorKind::Unauthorized => {
            trouble.remedy("pass --token-env VARIABLE or --token-file FILE")
        }
        Error::Server(refused) if is_elsewhere(refused) && server.is_some() => {
            trouble.remedy(server.map(Server::path_remedy).unwrap_or_default())
        }
        Error::Transport(failed) => match (failed.kind(), server) {
            (TransportErrorKind::Tls, server) => trouble.remedy(tls_remedy(error, server)),
            (TransportErrorKind::Status(404 | 405), Some(server)) => {
                trouble.remedy(server.path_remedy())
            }
            (_, Some(server)) => trouble.remedy(server.remedy()),
            _ => trouble,
        },
        _ => trouble,
    }
}

/// Returns whether an error means that the path does not serve MCP.
fn is_elsewhere(refused: &ServerError) -> bool {
    matches!(refused.status, Some(404 | 405)) && refused.kind == ServerErrorKind::Request
}

/// Returns the remedy for a TLS failure: another certificate, or HTTP without TLS.
fn tls_remedy(error: &Error, server: Option<&Server>) -> String {
    // The rustls error for a response that is not TLS.
    let is_plain = error.to_string().contains("InvalidContentType");
    match server.and_then(Server::url).and_then(|url| url.strip_prefix("https://")) {
        Some(rest) if is_plain => format!("the server does not use TLS; write http://{rest}"),
        _ => {
            "pass --ca-file FILE if its certificate is self-signed or from a private CA".to_owned()
        }
    }
}

/// Splits a command line into words by the shell's quoting rules only. Returns `None` if a quote is
/// unclosed.
pub(crate) fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, char) if char.is_whitespace() => words.extend(word.take()),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Quotes a word for [`split`] and for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./=:@%+,".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Server, split};

    #[test]
    fn command_line_split_and_quoted_round_trips() {
        let words =
            ["my server", "--stdio", "", "it's", "a\\b", "\"x\""].map(str::to_owned).to_vec();
        let server = Server::command(words.clone()).unwrap();
        assert_eq!(Server::read(&server.text).unwrap().place, Place::Command(words));
        assert_eq!(split("a 'b"), None);
        assert_eq!(split(r#"a "b \" c" d"#).unwrap(), ["a", "b \" c", "d"]);
    }

    #[test]
    fn command_line_containing_url_is_command() {
        let server = Server::read("npx mcp-remote http://127.0.0.1:8000/mcp").unwrap();
        let words = ["npx", "mcp-remote", "http://127.0.0.1:8000/mcp"].map(str::to_owned);
        assert_eq!(server.place, Place::Command(words.to_vec()));
        assert!(Server::read("./run --to=http://example.com").is_ok());
    }

    #[test]
    fn server_neither_url_nor_command_is_rejected() {
        assert!(Server::read("ftp://example.com").is_err());
        assert!(Server::read("  ").is_err());
        assert!(matches!(Server::read("https://example.com/mcp").unwrap().place, Place::Url(_)));
    }
}
