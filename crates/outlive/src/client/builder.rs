//! Builder of a client: identity, capabilities, limits and target.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_protocol::{
    VersionRules,
    era::client::{CapabilityClass, Declared},
};
use outlive_transport::client::{
    SecretString, StaticToken, TokenSource, Tokens, http::HttpOptions,
};
use outlive_wire::{
    ClientCapabilities, ElicitationCapability, Implementation, JsonObject, RootsCapability,
    SamplingCapability, Version,
};
use serde_json::Value;

use super::{
    call_store::CallStore,
    core::{Client, Core},
    dispatch::Dispatch,
    env::{ClientEnv, Settings},
    error::{ClientError, Result},
    input::{DynAnswerer, InputCapabilities, InputHandler},
    limits::ClientLimits,
    relay::InputSender,
    segment::PARTIALS,
    server_info::Handshake,
    target::Target,
    version_cache::VersionCache,
};

/// Builder for [`Client`].
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    info: Implementation,
    with_info: bool,
    answerer: Option<Arc<dyn DynAnswerer>>,
    declared_input: Option<InputCapabilities>,
    extensions: JsonObject,
    experimental: JsonObject,
    limits: ClientLimits,
    version: Option<Version>,
    eras: VersionCache,
    older_first: bool,
    tokens: Option<Tokens>,
    headers: HeaderMap,
    roots: Option<std::path::PathBuf>,
    http_sse: bool,
    knows_keys: Option<bool>,
    account: Option<String>,
    label: Option<String>,
    hosts_tasks: bool,
    streams: bool,
    notebook: Option<Arc<dyn CallStore>>,
    class: Option<CapabilityClass>,
    inputs: Option<InputSender>,
    reconnects: bool,
    first_id: u64,
    handshake: Option<Handshake>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("info", &self.info).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, version),
            with_info: true,
            answerer: None,
            declared_input: None,
            extensions: JsonObject::new(),
            experimental: JsonObject::new(),
            limits: ClientLimits::default(),
            version: None,
            eras: VersionCache::shared(),
            older_first: false,
            tokens: None,
            headers: HeaderMap::new(),
            roots: None,
            http_sse: true,
            knows_keys: None,
            account: None,
            label: None,
            hosts_tasks: false,
            streams: false,
            notebook: None,
            class: None,
            inputs: None,
            reconnects: true,
            first_id: 1,
            handshake: None,
        }
    }

    /// Sets the name and version that the client sends. `None` omits them where the protocol
    /// version allows it.
    pub fn client_info(mut self, info: impl Into<Option<Implementation>>) -> Self {
        let info = info.into();
        self.with_info = info.is_some();
        self.info = info.unwrap_or(self.info);
        self
    }

    /// Sets the input handler. Without one, the client declares no input capabilities.
    pub fn input_handler(mut self, answerer: impl InputHandler) -> Self {
        self.answerer = Some(Arc::new(answerer));
        self
    }

    /// Declares input capabilities without an input handler, for calls that use
    /// [`input_as_events`](crate::client::request::RequestBuilder::input_as_events). An input
    /// handler declares its own capabilities.
    pub fn input_capabilities(mut self, capabilities: InputCapabilities) -> Self {
        self.declared_input = Some(capabilities);
        self
    }

    /// Declares exactly this capability class, for programs that relay requests. Legacy servers
    /// see it in the handshake, modern ones in each request that names no other.
    pub fn capability_class(mut self, class: CapabilityClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Sets the receiver of the input requests of legacy servers that arrive on no relayed
    /// request's own stream. No input handler gets any then.
    pub fn input_channel(mut self, sender: InputSender) -> Self {
        self.inputs = Some(sender);
        self
    }

    /// Sets whether the client starts a program again that exited, and opens a stream again that
    /// ended. Enabled by default. A new handshake after a server forgot a session over HTTP does
    /// not depend on it.
    pub fn reconnect(mut self, enabled: bool) -> Self {
        self.reconnects = enabled;
        self
    }

    /// Sets the ID of the first request, for several clients that share a pipe. Later requests have
    /// the following IDs. The default is 1.
    pub fn first_request_id(mut self, id: u64) -> Self {
        self.first_id = id;
        self
    }

    /// Continues on a pipe after the handshake of another process, which
    /// [`Client::handshake`] returned. The client sends no handshake.
    pub fn restore(mut self, handshake: Handshake) -> Self {
        self.handshake = Some(handshake);
        self
    }

    /// Declares an extension with its settings; 2025-11-25 and 2026-07-28.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.extensions.insert(name.into(), Value::Object(settings));
        self
    }

    /// Declares an experimental capability.
    pub fn experimental(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.experimental.insert(name.into(), Value::Object(settings));
        self
    }

    /// Changes the limits and timeouts.
    pub fn limits(mut self, change: impl FnOnce(&mut ClientLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Uses only this protocol version. By default the client negotiates the newest common version.
    pub fn protocol_version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets the cache for the eras of servers, in place of the process-wide cache.
    pub fn version_cache(mut self, memory: VersionCache) -> Self {
        self.eras = memory;
        self
    }

    /// Tries the legacy handshake first, for a server that another process found to be legacy. This
    /// spares legacy servers a `server/discover` request, which they log as unknown. The client
    /// still detects a modern server.
    pub fn older_first(mut self) -> Self {
        self.older_first = true;
        self
    }

    /// Sets the bearer token for HTTP.
    pub fn token(self, token: impl Into<SecretString>) -> Self {
        self.token_source(StaticToken::new(token))
    }

    /// Sets the source of bearer tokens for HTTP.
    pub fn token_source(mut self, source: impl TokenSource) -> Self {
        self.tokens = Some(Tokens::new(source));
        self
    }

    /// Adds a header to every HTTP request.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets a PEM file with the trusted certificates for `https:`, in place of the system's.
    pub fn ca_file(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.roots = Some(file.into());
        self
    }

    /// Enables the fallback to HTTP+SSE, the transport of 2024-11-05, if Streamable HTTP fails.
    /// Enabled by default.
    pub fn http_sse(mut self, enabled: bool) -> Self {
        self.http_sse = enabled;
        self
    }

    /// Sets whether servers support `dev.outlive/idempotencyKey`. By default the client checks for
    /// the extension or experimental capability `dev.outlive/idempotency`.
    pub fn idempotency_keys(mut self, known: bool) -> Self {
        self.knows_keys = Some(known);
        self
    }

    /// Sets the account of this client. The client does not resume calls that another account
    /// saved.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// Sets the name of the server in input requests. Defaults to its address.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Requests partial results: with the extension `dev.outlive/task-partials` since 2026-07-28,
    /// and with response modes on 2025-11-25. Other servers ignore the request.
    pub fn partial_results(mut self) -> Self {
        self.streams = true;
        self.extension(PARTIALS, JsonObject::new())
    }

    /// Sets whether the client responds to input requests with tasks if a server of 2025-11-25
    /// requests it. The server then holds no request open while the user decides.
    pub fn host_tasks(mut self, enabled: bool) -> Self {
        self.hosts_tasks = enabled;
        self
    }

    /// Sets the store for calls. Another process can resume a stored call.
    pub fn call_store(mut self, notebook: impl CallStore) -> Self {
        self.notebook = Some(Arc::new(notebook));
        self
    }

    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// If the server is unreachable or shares no protocol version with the client.
    pub async fn connect(self, target: impl Into<Target>) -> Result<Client> {
        let target = target.into();
        let rules = |version: Version| {
            let no_rules = || ClientError::NoCommonVersion(vec![version.to_string()]);
            VersionRules::find(version.as_str()).ok_or_else(no_rules)
        };
        let pinned = self.version.map(rules).transpose()?;
        let handler = self.answerer.as_ref().map(|answerer| answerer.can());
        let can = handler.or(self.declared_input).unwrap_or_default();
        let mut capabilities = capabilities(can);
        capabilities.extensions = (!self.extensions.is_empty()).then_some(self.extensions);
        capabilities.experimental = (!self.experimental.is_empty()).then_some(self.experimental);
        if let Some(class) = self.class {
            class.apply(&mut capabilities);
        }
        let mut declared = Declared::new(self.info, capabilities, self.with_info, self.hosts_tasks);
        declared.streams = self.streams;
        let mut http = HttpOptions::default();
        http.connect_timeout = self.limits.connect_timeout;
        http.message_bytes = self.limits.max_message_bytes;
        http.ca_file = self.roots;
        http.tokens = self.tokens;
        let dispatch = Arc::new(Dispatch::new(
            self.label.unwrap_or_else(|| target.label()),
            self.answerer,
            self.declared_input,
            &self.limits,
        ));
        let settings = Settings {
            limits: self.limits,
            pinned,
            eras: self.eras,
            older_first: self.older_first,
            headers: self.headers,
            http,
            with_http_sse: self.http_sse,
            knows_keys: self.knows_keys,
            account: self.account,
            notebook: self.notebook,
            input_events: self.inputs.map(|inputs| inputs.sender),
            reconnects: self.reconnects,
            first_id: self.first_id,
            handshake: self.handshake,
        };
        let core = Arc::new(Core::new(ClientEnv::new(target, settings, declared, dispatch)));
        core.established().await?;
        Ok(Client::of(core))
    }
}

/// Returns the capabilities that the client declares for its input capabilities.
fn capabilities(can: InputCapabilities) -> ClientCapabilities {
    let yes = |can: bool| can.then(JsonObject::new);
    ClientCapabilities {
        roots: can.roots.then(RootsCapability::default),
        sampling: can
            .sampling
            .then(|| SamplingCapability { context: None, tools: yes(can.sampling_tools) }),
        elicitation: (can.form || can.url)
            .then(|| ElicitationCapability { form: yes(can.form), url: yes(can.url) }),
        ..ClientCapabilities::default()
    }
}
