//! The builder of a tool.

use std::{fmt, sync::Arc};

use outlive_protocol::CallFuture;
use outlive_schema::Schema;
use outlive_wire::{Icon, Meta, RawJson, TaskSupport, ToolAnnotations, ToolExecution};
use serde_json::value::RawValue;

use crate::server::{
    access::{Access, access_setters},
    build_error::BuildError,
    durable::cleanup::{Hook, IntoCleanupResult},
    env::environment::Env,
    exec::executable::{ExecPolicy, Executable},
    extract::{
        cx::Cx,
        extractor::HandlerRequirements,
        handler::Handler,
        response::{IntoToolResult, OutputSchema},
    },
    meter::ToolMeter,
    policy::{OnCrash, TaskPolicy},
    register::{
        registered_tool::{RegisteredTool, ToolLimits, ToolSchema},
        tool_handler::{start, start_durable, start_emitting},
    },
    run::replay_policy::{ReplayPolicy, ResumePolicy},
    throttle::{RateLimit, Throttle},
};

/// A tool: its name, its handler and its description for clients.
///
/// ```
/// use outlive::server::{Args, Server, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// async fn add(Args(add): Args<Add>) -> String {
///     (add.a + add.b).to_string()
/// }
///
/// let server = Server::builder("calculator", "1.0.0")
///     .tool(Tool::new("add", add).description("Adds two numbers"))
///     .build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
#[must_use]
pub struct Tool {
    info: outlive_wire::Tool,
    handler: ToolHandler,
    needs: HandlerRequirements,
    replay: ReplayPolicy,
    /// Whether the handler returns input requests.
    returns_input: bool,
    once: bool,
    policy: TaskPolicy,
    on_crash: Option<OnCrash>,
    clean_up: Option<Hook>,
    immediate: Option<String>,
    incremental: bool,
    promotes_at_step: Option<bool>,
    output: Option<OutputSchema>,
    written_input: Option<RawJson>,
    written_output: Option<RawJson>,
    access: Access,
    rate: Option<RateLimit>,
    concurrency: Option<u32>,
    rate_per_caller: Option<RateLimit>,
    concurrency_per_caller: Option<u32>,
}

/// A handler with its types erased. The schema lets it validate the result.
type ToolHandler = Box<dyn Fn(&Cx, &Arc<ToolSchema>) -> CallFuture + Send + Sync>;

impl Tool {
    /// Returns a tool that runs `handler`.
    pub fn new<M: 'static, H>(name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoToolResult,
    {
        let needs = H::needs();
        let handler = Arc::new(handler);
        let handler: ToolHandler = match (needs.durable || H::Output::ASKS, needs.emits) {
            (true, _) => Box::new(move |cx, schema| start_durable(&handler, cx, schema)),
            (false, true) => Box::new(move |cx, schema| start_emitting(&*handler, cx, schema)),
            (false, false) => Box::new(move |cx, schema| start(&*handler, cx, schema)),
        };
        Self {
            info: outlive_wire::Tool::new(name, no_arguments()),
            handler,
            needs,
            replay: ReplayPolicy::default(),
            returns_input: H::Output::ASKS,
            once: false,
            policy: TaskPolicy::Never,
            on_crash: None,
            clean_up: None,
            immediate: None,
            incremental: false,
            promotes_at_step: None,
            output: H::Output::output_schema(),
            written_input: None,
            written_output: None,
            access: Access::default(),
            rate: None,
            concurrency: None,
            rate_per_caller: None,
            concurrency_per_caller: None,
        }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description, from which a model decides whether to call the tool.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets hints about the tool's effects. Clients must not trust them.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.info.annotations = Some(annotations);
        self
    }

    /// Sets the hint that the tool does not modify its environment.
    pub fn read_only(mut self) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.read_only_hint = Some(true);
        self
    }

    /// Sets the hint that a repeated call with the same arguments has no additional effect.
    pub fn idempotent(mut self) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.idempotent_hint = Some(true);
        self
    }

    /// Sets the hint whether the tool may perform destructive updates.
    pub fn destructive(mut self, destructive: bool) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.destructive_hint = Some(destructive);
        self
    }

    /// Sets the hint whether the tool interacts with external entities.
    pub fn open_world(mut self, open: bool) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.open_world_hint = Some(open);
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets custom metadata for clients.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.info.meta = Some(meta);
        self
    }

    /// Sets the JSON Schema of the arguments in place of the one derived from the handler's type.
    /// Clients receive it unchanged, and arguments are validated against it.
    pub fn input_schema(mut self, schema: RawJson) -> Self {
        self.written_input = Some(schema);
        self
    }

    /// Sets the JSON Schema of the structured result in place of the derived one.
    pub fn output_schema(mut self, schema: RawJson) -> Self {
        self.written_output = Some(schema);
        self
    }

    access_setters!("tool", access);

    /// Limits the rate of calls, over all callers.
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate = Some(limit);
        self
    }

    /// Limits the concurrent calls, over all callers.
    pub fn max_concurrent(mut self, calls: u32) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// Limits the rate of calls per caller.
    pub fn rate_limit_per_caller(mut self, limit: RateLimit) -> Self {
        self.rate_per_caller = Some(limit);
        self
    }

    /// Limits the concurrent calls per caller.
    pub fn max_concurrent_per_caller(mut self, calls: u32) -> Self {
        self.concurrency_per_caller = Some(calls);
        self
    }

    /// Sets which calls become tasks. The server needs a store for tasks: [`ServerBuilder::tasks`].
    ///
    /// [`ServerBuilder::tasks`]: crate::server::ServerBuilder::tasks
    pub fn task(mut self, policy: TaskPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the version label of the handler. Journal entries of another revision pass through
    /// [`Tool::migrate_journal`] before they are decoded.
    pub fn handler_revision(mut self, revision: impl Into<Arc<str>>) -> Self {
        self.replay.revision = Some(revision.into());
        self
    }

    /// Migrates journal entries of another handler revision. `migrate` takes the label of that
    /// revision (empty if it had none), the key and the value, and returns the new value.
    pub fn migrate_journal(
        mut self,
        migrate: impl Fn(&str, &str, &RawValue) -> Option<RawJson> + Send + Sync + 'static,
    ) -> Self {
        self.replay.migrate = Some(Arc::new(migrate));
        self
    }

    /// Sets which handler revisions may resume a started task; any revision by default.
    pub fn resume_policy(mut self, resume: ResumePolicy) -> Self {
        self.replay.resume = resume;
        self
    }

    /// Sets the bound arguments: the arguments that must stay the same for a request state to be
    /// valid. By default, all arguments are bound.
    pub fn bind_request_state_to(mut self, arguments: &[&str]) -> Self {
        let names = arguments.iter().map(|name| (*name).to_owned());
        self.replay.bound_args = Some(names.collect());
        self
    }

    /// Accepts each request state once. A server with a store records used request states for all
    /// replicas, and a repeated round gets the outcome of the first. A server without a store needs
    /// [`ServerBuilder::track_used_request_states`].
    ///
    /// [`ServerBuilder::track_used_request_states`]: crate::server::ServerBuilder::track_used_request_states
    pub fn single_use_request_state(mut self) -> Self {
        self.replay.single_use = true;
        self
    }

    /// Sets what happens to a task whose worker crashed. By default, a task resumes if its handler
    /// takes [`Durable`](crate::server::Durable) or the tool is [`read_only`](Tool::read_only) or
    /// [`idempotent`](Tool::idempotent). Other tasks fail.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = Some(on_crash);
        self
    }

    /// Sets the cleanup: an async function that runs after a started task was cancelled or expired.
    /// It takes extractors as handlers do, with [`Cleanup`](crate::server::durable::Cleanup) in
    /// place of [`Durable`](crate::server::Durable).
    ///
    /// The cleanup does not run after a task that completed or failed, or after an inline call. It
    /// starts when the task has ended and its run is gone, in any process on the store. It runs
    /// again if that process crashes. It has one minute (`EngineConfig::cleanup_timeout`). A failed
    /// cleanup is logged and audited, has no effect on the client, and is not retried.
    pub fn cleanup<M: 'static, H>(mut self, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCleanupResult,
    {
        self.clean_up = Some(Hook::new(handler));
        self
    }

    /// Sets a text for the model while a task runs. Clients of 2025-11-25 may pass it on:
    /// `io.modelcontextprotocol/model-immediate-response`.
    pub fn immediate_response(mut self, text: impl Into<String>) -> Self {
        self.immediate = Some(text.into());
        self
    }

    /// Declares that the tool emits its content while it runs. Clients can then receive it
    /// incrementally: [`ResponseMode::Streaming`](crate::server::tasks::ResponseMode::Streaming).
    pub fn streams_content(mut self) -> Self {
        self.incremental = true;
        self
    }

    /// Sets whether a call with [`TaskPolicy::Auto`] becomes a task before its first step. Step
    /// results are then in the store and survive a crash.
    ///
    /// The default is `true` for a tool with a cleanup or with
    /// [`uses_step_once`](Tool::uses_step_once), and `false` for every other tool. Choose `false`
    /// only if a crash before the promotion leaves nothing for the cleanup to remove.
    pub fn promote_at_first_step(mut self, promote: bool) -> Self {
        self.promotes_at_step = Some(promote);
        self
    }

    /// Declares that the handler calls `step_once`. Building a server without a store then fails,
    /// instead of the step.
    pub fn uses_step_once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Returns whether the handler takes `Durable`.
    pub(crate) fn may_ask(&self) -> bool {
        self.needs.durable
    }

    /// Validates the tool and compiles its schemas.
    pub(crate) fn register(mut self, env: &Env) -> Result<RegisteredTool, BuildError> {
        let name = self.info.name.clone();
        let invalid = |error: &dyn fmt::Display| BuildError::tool(&name, error);
        if name.is_empty() {
            return Err(invalid(&"its name is empty"));
        }
        warn_of_name(&name);
        self.check(env).map_err(|reason| invalid(&reason))?;
        let schema = Arc::new(self.schema().map_err(|reason| invalid(&reason))?);
        self.info.execution = match self.policy {
            TaskPolicy::Never => None,
            TaskPolicy::Auto { .. } => Some(TaskSupport::Optional),
            TaskPolicy::Always => Some(TaskSupport::Required),
        }
        .map(|support| ToolExecution { task_support: Some(support) });
        self.info.input_schema = Arc::clone(schema.input.text());
        self.info.output_schema = schema.output.as_ref().map(|output| Arc::clone(output.text()));
        let throttle = |rate: Option<RateLimit>, concurrent: Option<u32>| {
            (rate.is_some() || concurrent.is_some())
                .then(|| Arc::new(Throttle::new(rate, concurrent)))
        };
        let (handler, contract) = (self.handler, Arc::clone(&schema));
        let exec = Executable {
            name,
            policy: ExecPolicy {
                is_tool: true,
                task: self.policy,
                is_durable: self.needs.durable,
                has_run: self.needs.durable || self.needs.emits || self.returns_input,
                promotes_at_step: self
                    .promotes_at_step
                    .unwrap_or(self.once || self.clean_up.is_some()),
                streams_content: self.incremental,
                immediate_response: self.immediate,
                resumes: resumes(&self.info, self.on_crash, self.needs.durable),
                resumes_after_segments: self.needs.durable || self.on_crash == Some(OnCrash::Rerun),
                cleanup: self.clean_up,
                replay: self.replay,
            },
            start: Box::new(move |cx| handler(cx, &contract)),
        };
        Ok(RegisteredTool {
            meter: ToolMeter::new(&self.info.name),
            limits: ToolLimits {
                all: throttle(self.rate, self.concurrency),
                per_caller: throttle(self.rate_per_caller, self.concurrency_per_caller),
            },
            info: Arc::new(self.info),
            schema,
            access: self.access,
            exec: Arc::new(exec),
        })
    }

    /// Checks that the server provides the tool's requirements.
    fn check(&self, env: &Env) -> Result<(), String> {
        self.needs.check(env)?;
        if let Some(hook) = &self.clean_up {
            hook.needs.check(env)?;
            if hook.needs.durable {
                return Err("its cleanup takes `Durable`; take `Cleanup` instead".into());
            }
            if self.policy == TaskPolicy::Never {
                return Err(
                    "it has a cleanup, but its calls never become tasks; set a policy with `.task(…)`"
                        .into(),
                );
            }
        }
        if self.once && env.tasks.is_none() {
            return Err("it uses `step_once`, which needs a store; call `.tasks(…)`, or use `step` and `idempotency_key`".into());
        }
        if self.policy != TaskPolicy::Never && env.tasks.is_none() {
            return Err(
                "its calls become tasks, but the server has no store; call `.tasks(…)`".into()
            );
        }
        if self.replay.single_use && env.used_states.is_none() && env.tasks.is_none() {
            return Err("it uses `single_use_request_state`, but the server does not record used states; call `.track_used_request_states()`, or add a store with `.tasks(…)`".into());
        }
        Ok(())
    }

    /// Compiles the schemas.
    fn schema(&mut self) -> Result<ToolSchema, String> {
        let typed_input = self.written_input.is_none() && self.needs.input.is_some();
        let input = match (&self.written_input, self.needs.input.take()) {
            (Some(written), _) => Schema::input_from_json(written),
            (None, Some(typed)) => typed,
            (None, None) => Schema::input_from_json(&no_arguments()),
        };
        let output = match &self.written_output {
            Some(written) => Some(Schema::output_from_json(written)),
            None => self.output.take().map(|output| output.0),
        };
        let input = input.map_err(|error| error.to_string())?;
        let output = output.transpose().map_err(|error| error.to_string())?;
        if output.as_ref().is_some_and(|output| !output.text().get().starts_with('{')) {
            return Err("its output schema is not an object; write `{}` for any value".into());
        }
        Ok(ToolSchema {
            name: self.info.name.clone(),
            input,
            typed_input,
            output,
            typed_output: self.written_output.is_none(),
            replay: self.replay.clone(),
        })
    }
}

/// Returns whether a task of the tool runs again after its worker crashed.
fn resumes(info: &outlive_wire::Tool, on_crash: Option<OnCrash>, is_durable: bool) -> bool {
    let hints = info.annotations.as_ref();
    let can = is_durable
        || hints.is_some_and(|hints| {
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        });
    on_crash.map_or(can, |chosen| chosen == OnCrash::Rerun)
}

/// Returns the schema of tools without arguments.
fn no_arguments() -> RawJson {
    RawValue::from_string(r#"{"type":"object","additionalProperties":false}"#.into())
        .expect("the literal is valid JSON")
}

/// Warns about names outside the specification's recommendation, which some clients reject.
fn warn_of_name(name: &str) {
    let fine = name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if !fine {
        tracing::warn!(name, "tool names should be 1 to 128 letters, digits, `_`, `-` or `.`");
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.info.name).finish_non_exhaustive()
    }
}
