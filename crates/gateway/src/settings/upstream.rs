//! Settings of one upstream.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use outlive::client::{Version, transport::SecretString};

use super::{auth::UpstreamAuth, policy::Policy, tool::ToolSettings};

/// An upstream: an existing MCP server behind the gateway.
///
/// ```
/// use outlive_gateway::{Isolation, ToolSettings, Upstream};
///
/// let files = Upstream::command("files", ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"])
///     .only(["read_*", "list_*"])
///     .tool("read_file", ToolSettings::new().name("read"));
/// let tracker = Upstream::url("tracker", "https://tracker.example/mcp").isolation(Isolation::Shared);
/// # let _ = (files, tracker);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) endpoint: Endpoint,
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) inherit_env: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) credential: Credential,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) allow_http: bool,
    pub(crate) version: Option<Version>,
    pub(crate) prefix: Option<String>,
    pub(crate) only: Vec<String>,
    pub(crate) hide: Vec<String>,
    pub(crate) isolation: Isolation,
    pub(crate) start: Start,
    pub(crate) start_timeout: Duration,
    pub(crate) idle_stop: Duration,
    pub(crate) max_processes: usize,
    pub(crate) max_concurrent: usize,
    pub(crate) input: InputForwarding,
    pub(crate) pin: Pin,
    pub(crate) max_result: usize,
    pub(crate) max_tools: usize,
    pub(crate) instructions: bool,
    pub(crate) log: LogLevel,
    pub(crate) policy: Policy,
    pub(crate) tools: BTreeMap<String, ToolSettings>,
}

/// Location of an upstream.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Program and arguments.
    Command(Vec<OsString>),
    Url(String),
    /// The reason why the upstream cannot be used.
    Misconfigured(String),
}

/// Credential that the gateway sends to an HTTP upstream.
#[derive(Clone)]
pub(crate) enum Credential {
    None,
    Token(SecretString),
    /// A file that contains the token. It is read for every connection.
    File(PathBuf),
    OAuth(Box<UpstreamAuth>),
}

/// Clients that share one upstream connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// All clients of a principal.
    #[default]
    Principal,
    /// One legacy session; without a session as [`Isolation::Principal`].
    Session,
    /// All clients. Such a connection gets no input requests, except from an upstream over
    /// Streamable HTTP.
    Shared,
}

/// Time of the first connection to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// When a client lists or calls its tools.
    #[default]
    FirstUse,
    /// When the gateway starts. Its lists are then read for clients that declare no capabilities.
    AtStart,
}

/// Input capabilities that the gateway declares to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputForwarding {
    /// Those of the client.
    #[default]
    Client,
    /// None. One upstream connection serves all clients of a principal.
    Never,
}

/// Reaction to a changed definition of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pin {
    /// The status names the tool.
    #[default]
    Warn,
    /// The tool is hidden until the change is accepted.
    Deny,
    /// None.
    Off,
}

/// Level at which the standard error of an upstream enters the gateway's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogLevel {
    /// Not logged.
    Off,
    /// As errors.
    Error,
    /// As warnings.
    #[default]
    Warn,
    /// As information.
    Info,
    /// For debugging.
    Debug,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments, variables and headers may contain secrets.
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Creates an upstream that is a program, which speaks over its standard input and output. The
    /// program is started without a shell, in a clean environment.
    pub fn command<A: Into<OsString>>(
        name: impl Into<Arc<str>>,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(name.into(), Endpoint::Command(command.into_iter().map(Into::into).collect()))
    }

    /// Creates an upstream at a URL: Streamable HTTP of either era, or HTTP+SSE.
    pub fn url(name: impl Into<Arc<str>>, url: impl Into<String>) -> Self {
        Self::new(name.into(), Endpoint::Url(url.into()))
    }

    /// Creates an upstream that cannot be used, such as one with an unset variable. The status shows
    /// `reason`.
    pub fn misconfigured(name: impl Into<Arc<str>>, reason: impl Into<String>) -> Self {
        Self::new(name.into(), Endpoint::Misconfigured(reason.into()))
    }

    fn new(name: Arc<str>, endpoint: Endpoint) -> Self {
        Self {
            name,
            endpoint,
            working_dir: None,
            env: Vec::new(),
            inherit_env: false,
            headers: HeaderMap::new(),
            credential: Credential::None,
            ca_file: None,
            allow_http: false,
            version: None,
            prefix: None,
            only: Vec::new(),
            hide: Vec::new(),
            isolation: Isolation::default(),
            start: Start::default(),
            start_timeout: Duration::from_secs(60),
            idle_stop: Duration::from_secs(10 * 60),
            max_processes: 16,
            max_concurrent: 64,
            input: InputForwarding::default(),
            pin: Pin::default(),
            max_result: 16 << 20,
            max_tools: 1_000,
            instructions: true,
            log: LogLevel::default(),
            policy: Policy::new(),
            tools: BTreeMap::new(),
        }
    }

    /// Sets the working directory of the program.
    pub fn working_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(folder.into());
        self
    }

    /// Sets an environment variable of the program.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets whether the program inherits the variables of this process, except `OUTLIVE_*`. By
    /// default it gets only a short list, such as `PATH` and `HOME`.
    pub fn inherit_env(mut self, inherit: bool) -> Self {
        self.inherit_env = inherit;
        self
    }

    /// Adds a header to every HTTP request.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the bearer token for HTTP.
    pub fn token(mut self, token: impl Into<SecretString>) -> Self {
        self.credential = Credential::Token(token.into());
        self
    }

    /// Sets a file that contains the bearer token. It is read for every upstream connection.
    pub fn token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.credential = Credential::File(file.into());
        self
    }

    /// Uses OAuth for HTTP.
    pub fn auth(mut self, auth: UpstreamAuth) -> Self {
        self.credential = Credential::OAuth(Box::new(auth));
        self
    }

    /// Sets a PEM file with the trusted certificates for `https:`.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// Allows `http:` to another machine, which sends tokens in clear text.
    pub fn allow_http(mut self, allow: bool) -> Self {
        self.allow_http = allow;
        self
    }

    /// Uses only this protocol version. By default the gateway detects it.
    pub fn protocol_version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets the prefix of the names; empty for none. The default is the name of the upstream.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Limits the tools and prompts to those whose name matches one of the globs.
    pub fn only<G: Into<String>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.only = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Hides the tools and prompts whose name matches one of the globs.
    pub fn hide<G: Into<String>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.hide = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets which clients share one upstream connection.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets when the upstream is connected for the first time.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets the time until the handshake is complete. The default is 60 seconds.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the time without a call or a subscription after which a process is stopped. The default
    /// is 10 minutes.
    pub fn idle_stop(mut self, idle: Duration) -> Self {
        self.idle_stop = idle;
        self
    }

    /// Sets the maximum number of processes of this upstream. The default is 16.
    pub fn max_processes(mut self, processes: usize) -> Self {
        self.max_processes = processes.max(1);
        self
    }

    /// Sets the maximum number of calls on one upstream connection. The default is 64. Further
    /// calls wait, at most 256.
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = calls.max(1);
        self
    }

    /// Sets which input capabilities the gateway declares to the upstream.
    pub fn input(mut self, input: InputForwarding) -> Self {
        self.input = input;
        self
    }

    /// Sets the reaction to changed definitions of tools.
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the bytes of the largest result that the gateway reads. The default is 16 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = bytes;
        self
    }

    /// Sets the maximum number of tools. The default is 1,000. Further tools are left out and
    /// reported.
    pub fn max_tools(mut self, tools: usize) -> Self {
        self.max_tools = tools;
        self
    }

    /// Sets whether the instructions of the upstream are appended to those of the server, at most 4
    /// KiB. The default is `true`.
    pub fn instructions(mut self, appended: bool) -> Self {
        self.instructions = appended;
        self
    }

    /// Sets the level at which the standard error enters the gateway's log.
    pub fn log(mut self, level: LogLevel) -> Self {
        self.log = level;
        self
    }

    /// Sets the policy of all tools of the upstream. Its scopes apply to everything that the
    /// upstream lists.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the settings of one tool, by the upstream's own name.
    pub fn tool(mut self, name: impl Into<String>, settings: ToolSettings) -> Self {
        self.tools.insert(name.into(), settings);
        self
    }

    /// Returns the name of the upstream.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of the upstream, if it has one.
    pub fn address(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Url(url) => Some(url),
            Endpoint::Command(_) | Endpoint::Misconfigured(_) => None,
        }
    }

    /// Returns the prefix of the names, without the separator.
    pub(crate) fn shown_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns the bytes of the largest result that any tool may return.
    pub(crate) fn max_message(&self) -> usize {
        let of_tools = self.tools.values().filter_map(|tool| tool.max_result);
        of_tools.fold(self.max_result, usize::max)
    }

    /// Returns the settings of OAuth.
    pub(crate) fn oauth(&self) -> Option<&UpstreamAuth> {
        match &self.credential {
            Credential::OAuth(auth) => Some(auth),
            _ => None,
        }
    }

    /// Returns whether the credential belongs to the principal of a call.
    pub(crate) fn has_user_credentials(&self) -> bool {
        self.oauth().is_some_and(UpstreamAuth::is_of_users)
    }

    /// Returns whether calls reach a process of this machine.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.endpoint, Endpoint::Command(_))
    }

    /// Returns whether a change from `other` requires new upstream connections.
    pub(crate) fn connects_as(&self, other: &Self) -> bool {
        let same_credential = match (&self.credential, &other.credential) {
            (Credential::None, Credential::None) => true,
            (Credential::Token(a), Credential::Token(b)) => a.expose() == b.expose(),
            (Credential::File(a), Credential::File(b)) => a == b,
            (Credential::OAuth(a), Credential::OAuth(b)) => a == b,
            _ => false,
        };
        same_credential
            && self.endpoint == other.endpoint
            && self.working_dir == other.working_dir
            && self.env == other.env
            && self.inherit_env == other.inherit_env
            && self.headers == other.headers
            && self.ca_file == other.ca_file
            && self.version == other.version
            && self.isolation == other.isolation
            && self.input == other.input
            && self.max_concurrent == other.max_concurrent
            && self.max_message() == other.max_message()
    }

    /// Returns the bytes that identify the program or address, for the hash of a definition.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match &self.endpoint {
            Endpoint::Command(words) => words.iter().for_each(|word| {
                bytes.extend_from_slice(word.as_encoded_bytes());
                bytes.push(0);
            }),
            Endpoint::Url(url) => bytes.extend_from_slice(url.as_bytes()),
            Endpoint::Misconfigured(_) => {}
        }
        bytes
    }

    /// Returns the location of the upstream for people, without arguments, user information and
    /// query, which may contain secrets.
    pub(crate) fn target(&self) -> String {
        match &self.endpoint {
            Endpoint::Command(words) => {
                words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Endpoint::Url(url) => origin(url),
            Endpoint::Misconfigured(_) => String::new(),
        }
    }
}

/// Returns scheme, host and port of a URL.
pub(crate) fn origin(url: &str) -> String {
    match url.parse::<http::Uri>() {
        Ok(uri) => {
            let scheme = uri.scheme_str().unwrap_or("https");
            let host = uri.host().unwrap_or_default();
            match uri.port_u16() {
                Some(port) => format!("{scheme}://{host}:{port}"),
                None => format!("{scheme}://{host}"),
            }
        }
        Err(_) => String::new(),
    }
}
