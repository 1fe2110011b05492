//! The builder of a server.

use std::{any::TypeId, collections::HashMap, fmt, sync::Arc, time::Duration};

use outlive_protocol::{ClientNotification, Clock, Limits, Session, VersionSet};
use outlive_transport::TokioClock;
use outlive_wire::{CacheHints, CacheScope, Icon, Implementation, JsonObject};
use serde_json::Value;
#[cfg(feature = "tower")]
use {
    crate::server::dispatch::layer::{BoxCallService, BoxError},
    outlive_protocol::{Call, Outcome},
    tower_layer::Layer,
    tower_service::Service,
};

use crate::server::{
    api::{notifications::Notifications, server::Server, skills::Skills},
    approve::Approve,
    config::TaskConfig,
    dispatch::{
        core::{CallerLimits, DEBOUNCE, Offers, SessionHook},
        custom::{self, CustomMethod, NotificationHandler},
        layer::Layers,
    },
    env::{environment::States, test_hooks::TestHooks, used_states::UsedRequestStates},
    extract::{handler::Handler, response::IntoRawResult},
    register::{
        catalog::Catalog,
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
    seal_keys::SealKeys,
    throttle::RateLimit,
};

/// Builder of a [`Server`]; [`ServerBuilder::build`] validates the settings.
#[must_use]
pub struct ServerBuilder {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) catalog: Option<Arc<dyn Catalog>>,
    pub(crate) skills: Option<Skills>,
    pub(crate) offers: Offers,
    pub(crate) logging: bool,
    pub(crate) extensions: JsonObject,
    pub(crate) experimental: JsonObject,
    pub(crate) cache: CacheHints,
    pub(crate) seal_keys: Option<SealKeys>,
    pub(crate) methods: HashMap<Box<str>, CustomMethod>,
    /// Custom method whose handler takes `Durable`; `build` rejects it.
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
    pub(crate) notify: Option<Notifications>,
    pub(crate) public_url: Option<String>,
    pub(crate) console_path: String,
    pub(crate) approve_destructive: Option<Approve>,
    /// Whether the server declares the idempotency capability.
    pub(crate) idempotency_keys: bool,
    pub(crate) versions: VersionSet,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) debounce: Duration,
    pub(crate) stamp_identity: bool,
    pub(crate) on_open: Vec<SessionHook>,
    pub(crate) on_close: Vec<SessionHook>,
}

impl Server {
    /// Returns a builder for a server with this name and version.
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
            catalog: None,
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
            notify: None,
            public_url: None,
            console_path: "/console".to_owned(),
            approve_destructive: None,
            idempotency_keys: false,
            versions: VersionSet::default(),
            clock: Arc::new(TokioClock::new()),
            debounce: DEBOUNCE,
            stamp_identity: true,
            on_open: Vec::new(),
            on_close: Vec::new(),
        }
    }

    /// Sets the display name of the server.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description of the server.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of the server's website.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets the instructions that tell the model how to use the server.
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

    /// Adds a resource template.
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Adds state that handlers extract as `State<T>`. A second value of the same type replaces the
    /// first.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.insert(TypeId::of::<T>(), Arc::new(state));
        self
    }

    /// Sets the catalog: items that depend on the call, in addition to the registered ones.
    ///
    /// The server then declares tools, prompts, resources, completion and logging even while their
    /// lists are empty.
    pub fn catalog(mut self, catalog: Arc<dyn Catalog>) -> Self {
        self.catalog = Some(catalog);
        self.offers = Offers { tools: true, resources: true, prompts: true, ..self.offers };
        self.logging = true;
        self
    }

    /// Advertises the tools capability even if the server starts without tools.
    pub fn advertise_tools(mut self) -> Self {
        self.offers.tools = true;
        self
    }

    /// Advertises the resources capability even if the server starts without resources.
    pub fn advertise_resources(mut self) -> Self {
        self.offers.resources = true;
        self
    }

    /// Advertises the prompts capability even if the server starts without prompts.
    pub fn advertise_prompts(mut self) -> Self {
        self.offers.prompts = true;
        self
    }

    /// Sets whether clients may subscribe to single resources; on by default.
    pub fn subscriptions(mut self, enabled: bool) -> Self {
        self.offers.subscriptions = enabled;
        self
    }

    /// Sets whether handlers may send log messages to clients that request them. Off by default:
    /// the protocol deprecated this feature. Use `tracing` for server logs.
    pub fn logging(mut self, enabled: bool) -> Self {
        self.logging = enabled;
        self
    }

    /// Sets the cache hints of lists, and of resource contents that have none.
    pub fn default_cache_hints(mut self, cache: CacheHints) -> Self {
        self.cache = cache;
        self
    }

    /// Declares an extension with its settings, a JSON object that may be empty.
    pub fn extension(mut self, name: impl Into<String>, settings: Value) -> Self {
        self.extensions.insert(name.into(), settings);
        self
    }

    /// Declares an experimental capability with its settings, a JSON object.
    pub fn experimental(mut self, name: impl Into<String>, settings: Value) -> Self {
        self.experimental.insert(name.into(), settings);
        self
    }

    /// Handles a custom method, or replaces the built-in handling of a specified method. The
    /// handler takes `RawParams`, or `Args<T>` decoded from the parameters, and returns an object.
    /// It cannot take `Durable`.
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

    /// Runs `handle` for every notification of this name. The function must not block.
    pub fn on_notification(
        mut self,
        name: &str,
        handle: impl Fn(&ClientNotification<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.notifications.insert(name.into(), Box::new(handle));
        self
    }

    /// Wraps a tower layer around every call. A layer sees calls, not HTTP requests. Wrap HTTP
    /// requests where the HTTP service is mounted.
    #[cfg(feature = "tower")]
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

    /// Changes the limits on messages, sessions, input requests and request states.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Limits the rate of tool calls per caller, over all tools.
    pub fn rate_limit_per_caller(mut self, limit: RateLimit) -> Self {
        self.caller_limits.rate = Some(limit);
        self
    }

    /// Limits the concurrent tool calls per caller, over all tools.
    pub fn max_concurrent_per_caller(mut self, calls: u32) -> Self {
        self.caller_limits.concurrent = Some(calls);
        self
    }

    /// Enables tasks: calls of tools whose [`task`](Tool::task) policy allows it outlive their
    /// requests. The store also holds legacy sessions, so they survive a restart and every replica
    /// on the store can serve them.
    pub fn tasks(mut self, config: TaskConfig) -> Self {
        self.tasks = Some(config);
        self
    }

    /// Sets whether the server declares the experimental capability `dev.outlive/idempotency`. An
    /// Outlive client then retries calls whose outcome it does not know. Off by default. A server
    /// with a store ([`ServerBuilder::tasks`]) accepts idempotency keys even if this is off.
    pub fn idempotency_keys(mut self, enabled: bool) -> Self {
        self.idempotency_keys = enabled;
        self
    }

    /// Limits the rate of invalid rounds per caller. A round is invalid if it lacks the requested
    /// input responses or its request state cannot be opened. The default is one per second, with a
    /// burst of thirty.
    pub fn rate_limit_invalid_rounds(mut self, limit: RateLimit) -> Self {
        self.invalid_rounds = limit;
        self
    }

    /// Records used request states in this process, for tools with
    /// [`single_use_request_state`](Tool::single_use_request_state). Other replicas do not see the
    /// record.
    pub fn track_used_request_states(mut self) -> Self {
        self.used_states = Some(UsedRequestStates::default());
        self
    }

    /// Replays every handler that takes `Durable` after each input response, in every protocol
    /// version. For development: nondeterminism appears at once instead of on 2026-07-28 or after a
    /// crash.
    pub fn replay_on_input(mut self) -> Self {
        self.replay_on_input = true;
        self
    }

    /// Sets the rule for calls of [`destructive`](Tool::destructive) tools that have no rule of their
    /// own: they wait for approval, as with [`Tool::approve`].
    pub fn approve_destructive(mut self, approve: Approve) -> Self {
        self.approve_destructive = Some(approve);
        self
    }

    /// Sets the protocol versions that the server serves; all of them by default.
    pub fn protocol_versions(mut self, versions: VersionSet) -> Self {
        self.versions = versions;
        self
    }

    /// Sets the keys that seal the data that clients hold for the server: pagination cursors, event
    /// IDs and request states.
    ///
    /// Replicas share the keys. Without this setting, each process creates a random key, and data
    /// sealed with it becomes invalid when the process ends.
    pub fn seal_keys(mut self, keys: SealKeys) -> Self {
        self.seal_keys = Some(keys);
        self
    }

    /// Sets whether every result repeats the server's name and version; on by default.
    pub fn server_info_in_results(mut self, enabled: bool) -> Self {
        self.stamp_identity = enabled;
        self
    }

    /// Sets how long list changes are collected before one `list_changed` notification is sent.
    pub fn list_changed_debounce(mut self, pause: Duration) -> Self {
        self.debounce = pause;
        self
    }

    /// Sets the clock. Tests use a clock that they advance manually.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Runs `hook` when a legacy session opens, or moves to this replica.
    pub fn on_session_open(mut self, hook: impl Fn(&Arc<Session>) + Send + Sync + 'static) -> Self {
        self.on_open.push(Box::new(hook));
        self
    }

    /// Runs `hook` when a legacy session closes in this process. Other replicas may still serve the
    /// session.
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
