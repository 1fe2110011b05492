//! Validates a builder and creates the server.

use std::sync::{Arc, Weak, atomic::AtomicUsize};

use outlive_protocol::{InputMode, Profile, Seal, VersionRules};
use outlive_tasks::store::WorkerId;
use outlive_wire::Meta;

use crate::server::{
    api::{
        builder::ServerBuilder,
        notifications::Notifications,
        notify,
        server::{Server, WeakServer},
        skills,
    },
    build_error::BuildError,
    config::TaskConfig,
    dispatch::{
        core::{Description, Hooks, ServerCore},
        resume::CallRunner,
        stack,
    },
    env::{
        environment::Env, public_address::PublicAddress, task_backend::TaskBackend,
        task_notifier::TaskNotifier,
    },
    metrics::Counters,
    random::{CallIds, random_id},
    register::{
        catalog_port::CatalogPort,
        registries::{Registries, UnlistedResources},
        registry::Notifier,
        tool::Tool,
    },
    throttle::Throttle,
};

/// Random IDs that the server needs besides its seal keys.
///
/// Random bytes have no fallback: two workers with one ID would share leases, and two calls with
/// one ID would share idempotency keys.
struct RandomIds {
    worker_id: WorkerId,
    call_ids: CallIds,
}

impl RandomIds {
    fn new() -> Result<Self, BuildError> {
        let none = || {
            BuildError("the operating system has no random bytes for worker and call IDs".into())
        };
        let call_ids = CallIds::new().ok_or_else(none)?;
        let worker_id = random_id().ok_or_else(none)?;
        Ok(Self { worker_id: WorkerId::new(worker_id), call_ids })
    }
}

/// Experimental capability of servers that accept `dev.outlive/idempotencyKey`.
const IDEMPOTENCY: &str = "dev.outlive/idempotency";

impl ServerBuilder {
    /// Validates the configuration and creates the server.
    ///
    /// # Errors
    ///
    /// Returns an error if two items have the same name, a schema is invalid, or a handler needs
    /// state that the builder lacks. Also fails if no protocol version is enabled, or if the
    /// operating system has no random bytes. The message names the remedy.
    pub fn build(mut self) -> Result<Server, BuildError> {
        let unlisted = skills::register(&mut self)?;
        self.declare_idempotency()?;
        self.check()?;
        let tools = std::mem::take(&mut self.tools);
        let resources = std::mem::take(&mut self.resources);
        let templates = std::mem::take(&mut self.templates);
        let prompts = std::mem::take(&mut self.prompts);
        let seal = match self.seal_keys.take() {
            Some(keys) => keys.into_seal(),
            None => Seal::random()
                .map_err(|error| BuildError(format!("no random bytes for a key: {error}")))?,
        };
        let ids = RandomIds::new()?;
        let server = Server::of(Arc::new_cyclic(|core| self.core(core, seal, unlisted, ids)));
        tools.into_iter().try_for_each(|tool| server.add_new_tool(tool))?;
        resources.into_iter().try_for_each(|resource| server.add_new_resource(resource))?;
        templates.into_iter().try_for_each(|template| server.add_new_template(template))?;
        prompts.into_iter().try_for_each(|prompt| server.add_new_prompt(prompt))?;
        Ok(server)
    }

    /// Checks the settings that can be checked before the server exists.
    fn check(&self) -> Result<(), BuildError> {
        if self.versions.is_empty() {
            return Err(BuildError("`protocol_versions` has no version; name at least one".into()));
        }
        if let Some(name) = &self.asking_method {
            return Err(BuildError(format!(
                "method `{name}`: its handler takes `Durable`; only tools, prompts and resources can"
            )));
        }
        notify::check(self)?;
        self.extensions.keys().try_for_each(|name| check_extension(name))?;
        for (name, settings) in self.extensions.iter().chain(&self.experimental) {
            if !settings.is_object() {
                return Err(BuildError(format!(
                    "the settings of `{name}` must be an object, `{{}}` for none, not {settings}"
                )));
            }
        }
        let suspends = |rules: &VersionRules| rules.input_mode == InputMode::RoundTrip;
        if self.seal_keys.is_none()
            && self.versions.any(suspends)
            && self.tools.iter().any(Tool::may_ask)
        {
            tracing::warn!(
                "request states become invalid when this process ends; set `seal_keys` on the builder"
            );
        }
        Ok(())
    }

    /// Creates the core of the server without registered items.
    fn core(
        self,
        core: &Weak<ServerCore>,
        seal: Seal,
        unlisted: Option<Arc<dyn UnlistedResources>>,
        ids: RandomIds,
    ) -> ServerCore {
        let (info, stamps) = (self.info, self.stamp_identity);
        let profile = Profile::new(info, self.versions, self.limits, self.clock, seal, stamps);
        let (profile, counters) = (Arc::new(profile), Arc::<Counters>::default());
        let registered = Registries::new(unlisted, |change| {
            Notifier::new(change, profile.bus.clone(), Arc::clone(&profile.clock), self.debounce)
        });
        let has_console = self.tasks.as_ref().is_some_and(|config| config.indexed);
        let console = has_console.then_some(self.console_path);
        let address = PublicAddress { url: self.public_url, console };
        let tasks = self.tasks.map(|config| {
            let notifier = self.notify.and_then(|it| notifier(it, &config, core, &profile));
            let runner = Arc::new(CallRunner::new(core.clone()));
            TaskBackend::new(config, &profile, &counters, runner, ids.worker_id).notifier(notifier)
        });
        let env = Arc::new(Env {
            profile,
            states: self.states,
            logging: self.logging,
            cache: self.cache,
            invalid_rounds: Arc::new(Throttle::new(Some(self.invalid_rounds), None)),
            used_states: self.used_states,
            replay_on_input: self.replay_on_input,
            test_hooks: self.test_hooks,
            tasks,
            address,
            approve_destructive: self.approve_destructive.map(Arc::new),
            call_ids: ids.call_ids,
            counters,
        });
        let catalog = self.catalog.map(|catalog| CatalogPort::new(catalog, &env));
        ServerCore {
            env,
            registered,
            catalog,
            description: Description {
                instructions: self.instructions,
                offers: self.offers,
                extensions: self.extensions,
                experimental: self.experimental,
            },
            layers: stack(self.layers, core),
            hooks: Hooks {
                methods: self.methods,
                notifications: self.notifications,
                on_open: self.on_open,
                on_close: self.on_close,
            },
            callers: self.caller_limits.throttle(),
            transports: AtomicUsize::new(0),
        }
    }

    /// Declares the idempotency capability if [`ServerBuilder::idempotency_keys`] is enabled.
    fn declare_idempotency(&mut self) -> Result<(), BuildError> {
        if !self.idempotency_keys {
            return Ok(());
        }
        if self.tasks.is_none() {
            return Err(BuildError(
                "idempotency keys need a store; call `.tasks(…)` with one".to_owned(),
            ));
        }
        self.experimental.insert(IDEMPOTENCY.to_owned(), serde_json::json!({}));
        Ok(())
    }
}

/// Returns the notifications of a server. Their store was checked before.
fn notifier(
    Notifications { targets, composer }: Notifications,
    config: &TaskConfig,
    core: &Weak<ServerCore>,
    profile: &Profile,
) -> Option<TaskNotifier> {
    let store = Arc::clone(config.people.as_ref()?);
    let (composer, clock) = (composer(WeakServer::new(core.clone())), Arc::clone(&profile.clock));
    Some(TaskNotifier { store, targets, composer, clock })
}

/// Checks that an extension name has a prefix and that the prefix is not reserved.
fn check_extension(name: &str) -> Result<(), BuildError> {
    let official = name.starts_with("io.modelcontextprotocol/");
    match (name.contains('/'), Meta::check_key(name)) {
        (false, _) => Err(BuildError(format!(
            "extension `{name}` needs a prefix, as in `com.example/{name}`"
        ))),
        (true, Err(error)) if !official => Err(BuildError(format!("extension `{name}`: {error}"))),
        _ => Ok(()),
    }
}
