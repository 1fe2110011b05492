//! Tools, as an application registers them.

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

/// A tool: a name, an async function, and what clients should know about it.
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

/// A handler whose types have been forgotten. Takes what it needs to finish the result.
type ToolHandler = Box<dyn Fn(&Cx, &Arc<ToolSchema>) -> CallFuture + Send + Sync>;

impl Tool {
    /// A tool that runs `handler`.
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

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What it does, for the model that chooses.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Hints about its effects. Clients must not trust them.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.info.annotations = Some(annotations);
        self
    }

    /// Hints that it changes nothing.
    pub fn read_only(mut self) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.read_only_hint = Some(true);
        self
    }

    /// Hints that calling it again with the same arguments changes nothing more.
    pub fn idempotent(mut self) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.idempotent_hint = Some(true);
        self
    }

    /// Hints whether it may destroy something.
    pub fn destructive(mut self, destructive: bool) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.destructive_hint = Some(destructive);
        self
    }

    /// Hints whether it reaches beyond this server.
    pub fn open_world(mut self, open: bool) -> Self {
        let annotations = self.info.annotations.get_or_insert_default();
        annotations.open_world_hint = Some(open);
        self
    }

    /// Adds a picture.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Facts of your own for clients.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.info.meta = Some(meta);
        self
    }

    /// The schema of the arguments, written by hand instead of made from the handler's type. It
    /// is sent as it is, and arguments are checked against all of it.
    pub fn input_schema(mut self, schema: RawJson) -> Self {
        self.written_input = Some(schema);
        self
    }

    /// The schema of the structured result, written by hand.
    pub fn output_schema(mut self, schema: RawJson) -> Self {
        self.written_output = Some(schema);
        self
    }

    access_setters!("tool", access);

    /// How often it may be called, by all callers together.
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate = Some(limit);
        self
    }

    /// How many calls of it may run at once, of all callers together.
    pub fn max_concurrent(mut self, calls: u32) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// How often each caller may call it.
    pub fn rate_limit_per_caller(mut self, limit: RateLimit) -> Self {
        self.rate_per_caller = Some(limit);
        self
    }

    /// How many calls of it each caller may have running at once.
    pub fn max_concurrent_per_caller(mut self, calls: u32) -> Self {
        self.concurrency_per_caller = Some(calls);
        self
    }

    /// Whether its calls become tasks. The server has to run tasks for that:
    /// [`ServerBuilder::tasks`].
    ///
    /// [`ServerBuilder::tasks`]: crate::server::ServerBuilder::tasks
    pub fn task(mut self, policy: TaskPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Names this version of the handler. What another version has recorded is given to
    /// [`Tool::migrate_journal`] before it is read.
    pub fn handler_revision(mut self, revision: impl Into<Arc<str>>) -> Self {
        self.replay.revision = Some(revision.into());
        self
    }

    /// Brings what another revision of the handler has recorded up to date, key by key: takes that
    /// revision's name, empty if it had none, the key and the value, and returns the new value.
    pub fn migrate_journal(
        mut self,
        migrate: impl Fn(&str, &str, &RawValue) -> Option<RawJson> + Send + Sync + 'static,
    ) -> Self {
        self.replay.migrate = Some(Arc::new(migrate));
        self
    }

    /// Which revisions may go on with a task that has begun; any, if nothing is said.
    pub fn resume_policy(mut self, resume: ResumePolicy) -> Self {
        self.replay.resume = resume;
        self
    }

    /// Which arguments have to be the same when a client comes back with its answers: these, in
    /// place of all.
    pub fn bind_request_state_to(mut self, arguments: &[&str]) -> Self {
        let names = arguments.iter().map(|name| (*name).to_owned());
        self.replay.bound_args = Some(names.collect());
        self
    }

    /// Lets a client come back with each round of its answers once. The server has to remember
    /// the rounds for that: [`ServerBuilder::track_used_request_states`]. With a store it does, for all
    /// replicas, and who comes back a second time is told what came of the first.
    ///
    /// [`ServerBuilder::track_used_request_states`]: crate::server::ServerBuilder::track_used_request_states
    pub fn single_use_request_state(mut self) -> Self {
        self.replay.single_use = true;
        self
    }

    /// What becomes of its tasks whose worker was lost. If nothing is said, those of handlers that
    /// take [`Durable`](crate::server::Durable), and of tools that are [`read_only`](Tool::read_only) or
    /// [`idempotent`](Tool::idempotent), go on; all others fail.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = Some(on_crash);
        self
    }

    /// What is done after a task of it that was cancelled or has expired once it had begun: an async
    /// function that takes what handlers take, and [`Cleanup`](crate::server::durable::Cleanup) in place of
    /// [`Durable`](crate::server::Durable).
    ///
    /// It is not done after a task that has come to its end, also if that was a failure, nor after
    /// a call that was never a task. It begins when the task has ended and its run is gone, in
    /// whichever process is there, and is done again if that process is lost in the middle of it.
    /// It has a minute (`EngineConfig::cleanup_timeout`). That it fails is in the log and among the events
    /// of the task, and changes nothing for the caller; it is not tried again then.
    pub fn cleanup<M: 'static, H>(mut self, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCleanupResult,
    {
        self.clean_up = Some(Hook::new(handler));
        self
    }

    /// What the model may be told while a task of it runs, where the client hands that on: a hint of
    /// 2025-11-25, `io.modelcontextprotocol/model-immediate-response`.
    pub fn immediate_response(mut self, text: impl Into<String>) -> Self {
        self.immediate = Some(text.into());
        self
    }

    /// Says that its content is emitted bit by bit while it works, so that clients that can take it
    /// as it grows get it so: [`ResponseMode::Streaming`](crate::server::tasks::ResponseMode::Streaming).
    pub fn streams_content(mut self) -> Self {
        self.incremental = true;
        self
    }

    /// Sets whether a call that may become a task ([`TaskPolicy::Auto`]) becomes one before its first
    /// step. What a step records is in the store then, and a crash does not lose it.
    ///
    /// The default is `true` for a tool with a cleanup or with [`uses_step_once`](Tool::uses_step_once),
    /// and `false` for every other tool. Choose `false` only if a crash before the call becomes a task
    /// leaves nothing behind that the cleanup would have to remove.
    pub fn promote_at_first_step(mut self, promote: bool) -> Self {
        self.promotes_at_step = Some(promote);
        self
    }

    /// Says that the handler takes steps which must not be done twice. A server without a store, which
    /// could not remember that they began, refuses it when it is built, not when the step is taken.
    pub fn uses_step_once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Whether its handler may ask its client.
    pub(crate) fn may_ask(&self) -> bool {
        self.needs.durable
    }

    /// Checks everything that can be checked before the first call.
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

    /// Checks what the tool needs of its server.
    fn check(&self, env: &Env) -> Result<(), String> {
        self.needs.check(env)?;
        if let Some(hook) = &self.clean_up {
            hook.needs.check(env)?;
            if hook.needs.durable {
                return Err(
                    "its clean-up can take no steps and ask nothing: let it take `CleanUp`".into(),
                );
            }
            if self.policy == TaskPolicy::Never {
                return Err(
                    "it has a clean-up, and its calls never become tasks; say when with `.task(…)`"
                        .into(),
                );
            }
        }
        if self.once && env.tasks.is_none() {
            return Err("it uses `step_once`, which needs a store that remembers it began; call `.tasks(…)`, or use `step` and `step_key`".into());
        }
        if self.policy != TaskPolicy::Never && env.tasks.is_none() {
            return Err("its calls become tasks, and the server runs none; call `.tasks(…)`".into());
        }
        if self.replay.single_use && env.used_states.is_none() && env.tasks.is_none() {
            return Err("its rounds may be used once only; let the server `remember_rounds`, or give it a store with `.tasks(…)`".into());
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

/// Whether a task of a tool is run again after its worker crashed.
fn resumes(info: &outlive_wire::Tool, on_crash: Option<OnCrash>, is_durable: bool) -> bool {
    let hints = info.annotations.as_ref();
    let can = is_durable
        || hints.is_some_and(|hints| {
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        });
    on_crash.map_or(can, |chosen| chosen == OnCrash::Rerun)
}

/// The schema of tools that take nothing.
fn no_arguments() -> RawJson {
    RawValue::from_string(r#"{"type":"object","additionalProperties":false}"#.into())
        .expect("this is JSON")
}

/// Names that clients may stumble over are allowed, but not without a word.
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
