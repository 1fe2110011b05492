//! Which server is meant, and how it is reached: a URL, or a command line.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{HeaderName, HeaderValue};
use outlive::{
    auth::client::{OAuth, OAuthError},
    client::{
        Client, ClientBuilder, ClientError, Error, ServerError, ServerErrorKind, Target,
        transport::{ChildProcess, TransportErrorKind},
    },
    wire::Version,
};

use super::{older::OlderServers, screen::Screen};
use crate::{
    auth::{self, Credentials, Person},
    error::{CliError, Kind, Result},
};

/// How to get there.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The environment variable that has the bearer token
    #[arg(long, value_name = "VARIABLE", conflicts_with = "token_file")]
    pub(super) token_env: Option<String>,
    /// The file that has the bearer token
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// A header of every HTTP request; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A PEM file of the certificates to trust, in place of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// Uses this protocol version and no other
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol_version: Option<String>,
    /// Whether nobody is asked to log in: for what only looks
    #[arg(skip)]
    pub(crate) without_login: bool,
}

/// A server, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// By which its calls are found again; a command line can be split again into what it was.
    pub(crate) text: String,
    place: Place,
    /// Where a command is started, if not here.
    folder: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Url(String),
    Command(Vec<String>),
}

impl Server {
    /// Reads a URL or a command line in one word.
    pub(crate) fn read(text: &str) -> Result<Self> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let place = Place::Url(text.to_owned());
            return Ok(Self { text: text.to_owned(), place, folder: None });
        }
        // A command may have an address among its words.
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let is_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
        if scheme.is_some_and(|scheme| scheme.chars().all(is_scheme))
            && !text.contains(char::is_whitespace)
        {
            return Err(CliError::usage(format!("`{text}` is no address of a server"))
                .remedy("addresses begin with http:// or https://"));
        }
        let words = split(text).ok_or_else(|| {
            CliError::usage(format!("the command line `{text}` has a quote that does not end"))
        })?;
        Self::command(words)
    }

    /// A command to start.
    pub(crate) fn command(words: Vec<String>) -> Result<Self> {
        if words.is_empty() {
            return Err(CliError::usage("there is no server").remedy(
                "name a URL, or the command that starts a server on standard input and output",
            ));
        }
        let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        Ok(Self { text, place: Place::Command(words), folder: None })
    }

    /// Starts it in this folder, if it is a command.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The server of a command line whose first word is one, unless a command stands behind `--`; and
    /// the other words.
    pub(crate) fn of_words(words: &[String], command: Vec<String>) -> Result<(Self, &[String])> {
        match (command.is_empty(), words) {
            (false, words) => Ok((Self::command(command)?, words)),
            (true, [server, words @ ..]) => Ok((Self::read(server)?, words)),
            (true, []) => Self::command(Vec::new()).map(|server| (server, words)),
        }
    }

    /// Where it is, unless it is a command.
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
                let (program, arguments) = words.split_first().expect("a command has a word");
                let screen = Arc::clone(screen);
                let mut program = ChildProcess::new(program).args(arguments.iter().cloned());
                if let Some(folder) = &self.folder {
                    program = program.current_dir(folder);
                }
                program.on_stderr(move |line| screen.quote(line)).into()
            }
        }
    }

    /// Returns the remedy for a server that does not serve the path.
    fn path_remedy(&self) -> String {
        let url = self.url().unwrap_or_default();
        format!("a server is there, but no MCP at this path; check the path of {url}, often /mcp")
    }

    /// What to try when there is no way.
    fn remedy(&self) -> String {
        match &self.place {
            Place::Url(url) => {
                format!("is it running? `outlive serve` starts one; the address was {url}")
            }
            Place::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                match program.contains(':') || program.starts_with("localhost") {
                    true => format!("an address begins with http://, like http://{program}"),
                    false => format!(
                        "is `{program}` a program that speaks MCP on standard input and output?"
                    ),
                }
            }
        }
    }
}

impl Connection {
    /// Connects.
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

    /// The login that is kept for a server, and a new one where somebody is here who could log in.
    fn oauth(&self, server: &Server, screen: &Arc<Screen>) -> Result<Option<OAuth>> {
        let Some(url) = server.url().filter(|_| !self.has_authorization()) else { return Ok(None) };
        // Where nothing can be kept, nobody is logged in.
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

    /// Whether the user says who is calling.
    pub(super) fn has_credentials(&self) -> bool {
        self.token_env.is_some() || self.token_file.is_some() || self.has_authorization()
    }

    /// Whether the user says who is calling in a header.
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
                _ => Err(CliError::usage(format!("the variable {variable} has no token"))
                    .remedy(format!("{variable}=… outlive …"))),
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
            .remedy(format!("one of {}", all.join(", ")))
    })
}

fn read_header(text: &str) -> Result<(HeaderName, HeaderValue)> {
    let parts = text.split_once(':').and_then(|(name, value)| {
        Some((name.trim().parse().ok()?, HeaderValue::from_str(value.trim()).ok()?))
    });
    // The value may be a secret.
    parts.ok_or_else(|| {
        CliError::usage("a header is not written as one").remedy("--header 'Name: value'")
    })
}

/// What went wrong between here and a server, for people.
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
            trouble.remedy("--token-env VARIABLE or --token-file FILE")
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

/// Whether a refusal says that there is no MCP at this path.
fn is_elsewhere(refused: &ServerError) -> bool {
    matches!(refused.status, Some(404 | 405)) && refused.kind == ServerErrorKind::Request
}

/// What to try when TLS failed: a certificate, or no TLS at all.
fn tls_remedy(error: &Error, server: Option<&Server>) -> String {
    // What rustls says of an answer that is no TLS.
    let is_plain = error.to_string().contains("InvalidContentType");
    match server.and_then(Server::url).and_then(|url| url.strip_prefix("https://")) {
        Some(rest) if is_plain => format!("it speaks no TLS there: http://{rest}"),
        _ => "--ca-file FILE, if its certificate is your own".to_owned(),
    }
}

/// Splits a command line as a shell would, without anything else that a shell does; `None` if a quote
/// does not end.
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

/// A word that `split`, like a shell, makes one word of.
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
    fn a_command_line_is_split_into_its_words_and_back() {
        let words =
            ["my server", "--stdio", "", "it's", "a\\b", "\"x\""].map(str::to_owned).to_vec();
        let server = Server::command(words.clone()).unwrap();
        assert_eq!(Server::read(&server.text).unwrap().place, Place::Command(words));
        assert_eq!(split("a 'b"), None);
        assert_eq!(split(r#"a "b \" c" d"#).unwrap(), ["a", "b \" c", "d"]);
    }

    #[test]
    fn command_with_an_address_among_its_words_is_a_command() {
        let server = Server::read("npx mcp-remote http://127.0.0.1:8000/mcp").unwrap();
        let words = ["npx", "mcp-remote", "http://127.0.0.1:8000/mcp"].map(str::to_owned);
        assert_eq!(server.place, Place::Command(words.to_vec()));
        assert!(Server::read("./run --to=http://example.com").is_ok());
    }

    #[test]
    fn what_is_no_address_and_no_command_is_refused() {
        assert!(Server::read("ftp://example.com").is_err());
        assert!(Server::read("  ").is_err());
        assert!(matches!(Server::read("https://example.com/mcp").unwrap().place, Place::Url(_)));
    }
}
