//! Puts a server together.

use std::{any::TypeId, collections::HashMap, fmt, sync::Arc, time::Duration};

use outlive_protocol::{Call, ClientNotification, Clock, Limits, Outcome, Session, VersionSet};
use outlive_transport::TokioClock;
use outlive_wire::{CacheHints, CacheScope, Icon, Implementation, JsonObject};
use serde_json::Value;
use tower_layer::Layer;
use tower_service::Service;

use crate::server::{
    api::{server::Server, skills::Skills},
    config::TaskConfig,
    dispatch::{
        core::{CallerLimits, DEBOUNCE, Offers, SessionHook},
        custom::{self, CustomMethod, NotificationHandler},
        layer::{BoxCallService, BoxError, Layers},
    },
    env::{environment::States, test_hooks::TestHooks, used_states::UsedRequestStates},
    extract::{handler::Handler, response::IntoRawResult},
    register::{
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
    seal_keys::SealKeys,
    throttle::RateLimit,
};

/// Collects what a server offers; [`ServerBuilder::build`] checks it.
#[must_use]
pub struct ServerBuilder {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) skills: Option<Skills>,
    pub(crate) offers: Offers,
    pub(crate) logging: bool,
    pub(crate) extensions: JsonObject,
    pub(crate) experimental: JsonObject,
    pub(crate) cache: CacheHints,
    pub(crate) seal_keys: Option<SealKeys>,
    pub(crate) methods: HashMap<Box<str>, CustomMethod>,
    /// A method whose handler wants to ask, which it cannot.
    pub(crate) asking_method: Option<String>,
    pub(crate) notifications: HashMap<Box<str>, NotificationHandler>,
    pub(crate) states: States,
    pub(crate) layers: Layers,
    pub(crate) limits: Limits,
    pub(crate) caller_limits: CallerLimits,
    pub(crate) invalid_rounds: RateLimit,
    pub(crate) used_states: Option<UsedRequestStates>,
    pub(crate) replay_on_input: bool,
    pub(crate) test_hooks: Option<Arc<TestHooks>>,
    pub(crate) tasks: Option<TaskConfig>,
    /// Whether clients are told of idempotency keys; `None` if the store decides.
    pub(crate) idempotency_keys: bool,
    pub(crate) versions: VersionSet,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) debounce: Duration,
    pub(crate) stamp_identity: bool,
    pub(crate) on_open: Vec<SessionHook>,
    pub(crate) on_close: Vec<SessionHook>,
}

impl Server {
    /// Starts to build a server with a name and a version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version)
    }
}

impl ServerBuilder {
    fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            skills: None,
            offers: Offers { subscriptions: true, ..Offers::default() },
            logging: false,
            extensions: JsonObject::new(),
            experimental: JsonObject::new(),
            cache: CacheHints { ttl_ms: 0, cache_scope: CacheScope::Private },
            seal_keys: None,
            methods: HashMap::new(),
            asking_method: None,
            notifications: HashMap::new(),
            states: States::new(),
            layers: Layers::default(),
            limits: Limits::default(),
            caller_limits: CallerLimits::default(),
            invalid_rounds: RateLimit::per_second(1.0).burst(30),
            used_states: None,
            replay_on_input: false,
            test_hooks: None,
            tasks: None,
            idempotency_keys: false,
            versions: VersionSet::default(),
            clock: Arc::new(TokioClock::new()),
            debounce: DEBOUNCE,
            stamp_identity: true,
            on_open: Vec::new(),
            on_close: Vec::new(),
        }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What the server is.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where to read about it.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds a picture.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// How to use the server, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds a template of resources.
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// State that handlers take as `State<T>`. One of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.insert(TypeId::of::<T>(), Arc::new(state));
        self
    }

    /// Offers tools though there may be none at first, because some will be added.
    pub fn advertise_tools(mut self) -> Self {
        self.offers.tools = true;
        self
    }

    /// Offers resources though there may be none at first, because some will be added.
    pub fn advertise_resources(mut self) -> Self {
        self.offers.resources = true;
        self
    }

    /// Offers prompts though there may be none at first, because some will be added.
    pub fn advertise_prompts(mut self) -> Self {
        self.offers.prompts = true;
        self
    }

    /// Whether clients may subscribe to single resources; on by default.
    pub fn subscriptions(mut self, enabled: bool) -> Self {
        self.offers.subscriptions = enabled;
        self
    }

    /// Whether handlers may send log messages to clients that ask for them. Off by default: the
    /// protocol has deprecated it, and `tracing` is better for your own logs.
    pub fn logging(mut self, enabled: bool) -> Self {
        self.logging = enabled;
        self
    }

    /// How long clients may keep lists, and the contents of resources that do not say otherwise.
    pub fn default_cache_hints(mut self, cache: CacheHints) -> Self {
        self.cache = cache;
        self
    }

    /// Declares an extension, with its settings: an object, `{}` for none.
    pub fn extension(mut self, name: impl Into<String>, settings: Value) -> Self {
        self.extensions.insert(name.into(), settings);
        self
    }

    /// Declares an experimental capability.
    pub fn experimental(mut self, name: impl Into<String>, settings: Value) -> Self {
        self.experimental.insert(name.into(), settings);
        self
    }

    /// Handles a method yourself: one of your own, or one of the specification instead of us. The
    /// handler takes `RawParams`, or `Args<T>` read from the parameters, and returns an object.
    pub fn custom_method<M, H>(mut self, name: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoRawResult,
    {
        if H::needs().durable {
            self.asking_method = Some(name.to_owned());
        }
        self.methods.insert(name.into(), custom::method(handler));
        self
    }

    /// Does something when a notification comes. Must not block.
    pub fn on_notification(
        mut self,
        name: &str,
        handle: impl Fn(&ClientNotification<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.notifications.insert(name.into(), Box::new(handle));
        self
    }

    /// Wraps a tower layer around every call. Layers see calls, not HTTP requests; those are
    /// wrapped where the HTTP service is mounted.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<BoxCallService> + Send + 'static,
        L::Service: Service<Arc<Call>, Response = Outcome> + Clone + Send + 'static,
        <L::Service as Service<Arc<Call>>>::Error: Into<BoxError>,
        <L::Service as Service<Arc<Call>>>::Future: Send + 'static,
    {
        self.layers.add(layer);
        self
    }

    /// What the server accepts and keeps.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// How often each caller may call tools, all of them together.
    pub fn rate_limit_per_caller(mut self, limit: RateLimit) -> Self {
        self.caller_limits.rate = Some(limit);
        self
    }

    /// How many tool calls each caller may have running at once, of all tools together.
    pub fn max_concurrent_per_caller(mut self, calls: u32) -> Self {
        self.caller_limits.concurrent = Some(calls);
        self
    }

    /// Runs tasks: tools whose [`task`](Tool::task) policy allows it outlive their requests. Legacy
    /// sessions are kept in the same store: every replica on it knows them, and so does the next
    /// process after a restart.
    pub fn tasks(mut self, config: TaskConfig) -> Self {
        self.tasks = Some(config);
        self
    }

    /// Sets whether clients are told that the server knows idempotency keys, with the experimental
    /// capability `dev.outlive/idempotency`. A client of ours then repeats calls whose outcome it does
    /// not know. Off by default: clients that know nothing of it are told nothing of it. A server with
    /// a store ([`ServerBuilder::tasks`]) honors the keys in any case.
    pub fn idempotency_keys(mut self, enabled: bool) -> Self {
        self.idempotency_keys = enabled;
        self
    }

    /// How often each caller may come back to a call without an answer to what was asked, or with
    /// a state that cannot be opened. Once a second by default, after thirty at once.
    pub fn rate_limit_invalid_rounds(mut self, limit: RateLimit) -> Self {
        self.invalid_rounds = limit;
        self
    }

    /// Remembers in this process which rounds of calls have been used, for tools that are
    /// [`single_use`](Tool::single_use_request_state). Other replicas do not know of it.
    pub fn track_used_request_states(mut self) -> Self {
        self.used_states = Some(UsedRequestStates::default());
        self
    }

    /// Runs every handler that takes `Durable` again from the top whenever one of its questions is
    /// answered, on every revision: what would break on 2026-07-28 or after a crash breaks at the
    /// author's desk. For development.
    pub fn replay_on_input(mut self) -> Self {
        self.replay_on_input = true;
        self
    }

    /// Sets the protocol versions that the server serves; all of them if this is not called.
    pub fn protocol_versions(mut self, versions: VersionSet) -> Self {
        self.versions = versions;
        self
    }

    /// The keys that seal what clients carry for the server: cursors, the ids of events, and the
    /// state of calls that wait for answers.
    ///
    /// Replicas share them. Without this each process makes its own key, and everything sealed with
    /// it ends with the process.
    pub fn seal_keys(mut self, keys: SealKeys) -> Self {
        self.seal_keys = Some(keys);
        self
    }

    /// Whether every result repeats the server's name and version; on by default.
    pub fn server_info_in_results(mut self, enabled: bool) -> Self {
        self.stamp_identity = enabled;
        self
    }

    /// How long changes of a list are gathered before clients are told.
    pub fn list_changed_debounce(mut self, pause: Duration) -> Self {
        self.debounce = pause;
        self
    }

    /// Where time comes from; tests bring one they move by hand.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Runs when a legacy session has been opened, or has come here from another replica.
    pub fn on_session_open(mut self, hook: impl Fn(&Arc<Session>) + Send + Sync + 'static) -> Self {
        self.on_open.push(Box::new(hook));
        self
    }

    /// Runs when a legacy session has ended here; other replicas may still know it.
    pub fn on_session_close(
        mut self,
        hook: impl Fn(&Arc<Session>) + Send + Sync + 'static,
    ) -> Self {
        self.on_close.push(Box::new(hook));
        self
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("info", &self.info)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
