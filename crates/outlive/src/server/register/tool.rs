//! The builder of a tool.

use std::{fmt, sync::Arc};

use outlive_protocol::CallFuture;
use outlive_wire::{Icon, Meta, RawJson, ToolAnnotations};
use serde_json::value::RawValue;

use crate::server::{
    access::{Access, access_setters},
    approve::Approve,
    durable::cleanup::{Hook, IntoCleanupResult},
    exec::executable::TaskTags,
    extract::{
        cx::Cx,
        extractor::HandlerRequirements,
        handler::Handler,
        response::{IntoToolResult, OutputSchema},
    },
    hosts::{AnswerBy, Repeat},
    policy::{OnCrash, TaskPolicy},
    register::{
        registered_tool::{CommandWords, ToolSchema},
        tool_handler::{start, start_durable, start_emitting},
    },
    run::replay_policy::{ReplayPolicy, ResumePolicy},
    throttle::RateLimit,
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
    pub(super) info: outlive_wire::Tool,
    /// Whether the definition is that of another server, which validates its calls itself.
    pub(super) relays: bool,
    pub(super) handler: ToolHandler,
    pub(super) needs: HandlerRequirements,
    pub(super) replay: ReplayPolicy,
    /// Whether the handler returns input requests.
    pub(super) returns_input: bool,
    pub(super) once: bool,
    pub(super) policy: TaskPolicy,
    pub(super) on_crash: Option<OnCrash>,
    pub(super) clean_up: Option<Hook>,
    pub(super) immediate: Option<String>,
    pub(super) incremental: bool,
    pub(super) promotes_at_step: Option<bool>,
    pub(super) repeat: Option<Repeat>,
    pub(super) approve: Option<Approve>,
    pub(super) definition: Option<String>,
    pub(super) max_inline: Option<usize>,
    pub(super) answers: Option<Arc<[AnswerBy]>>,
    pub(super) output: Option<OutputSchema>,
    pub(super) written_input: Option<RawJson>,
    pub(super) written_output: Option<RawJson>,
    pub(super) access: Access,
    pub(super) rate: Option<RateLimit>,
    pub(super) concurrency: Option<u32>,
    pub(super) rate_per_caller: Option<RateLimit>,
    pub(super) concurrency_per_caller: Option<u32>,
    pub(super) command_words: Option<CommandWords>,
    pub(super) upstream: Option<Box<str>>,
    pub(super) tags: Option<TaskTags>,
}

/// A handler with its types erased. The schema lets it validate the result.
pub(super) type ToolHandler = Box<dyn Fn(&Cx, &Arc<ToolSchema>) -> CallFuture + Send + Sync>;

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
            relays: false,
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
            repeat: None,
            approve: None,
            definition: None,
            max_inline: None,
            answers: None,
            output: H::Output::output_schema(),
            written_input: None,
            written_output: None,
            access: Access::default(),
            rate: None,
            concurrency: None,
            rate_per_caller: None,
            concurrency_per_caller: None,
            command_words: None,
            upstream: None,
            tags: None,
        }
    }

    /// Returns a tool with the definition of another server.
    ///
    /// Clients receive the definition as it is, apart from `execution`, which [`Tool::task`]
    /// decides. Arguments and results are not validated here: the handler passes them on, and a
    /// schema that is slightly wrong must not reject a call that works. Only `Mcp-Param-*` headers
    /// are checked.
    pub fn relayed<M: 'static, H>(definition: outlive_wire::Tool, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoToolResult,
    {
        Self { info: definition, relays: true, ..Self::new("", handler) }
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

    /// Sets whether a repeated call joins its run, in place of
    /// [`Hosts::repeat`](crate::server::hosts::Hosts::repeat). Choose [`Repeat::New`] for a tool
    /// whose equal calls are meant to take effect twice.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = Some(repeat);
        self
    }

    /// Sets which calls wait for the approval of people before they start, and who decides.
    ///
    /// Such a call is a stored task from the start, for every client. Building the server fails
    /// without a store for tasks that has decisions, such as
    /// [`TaskConfig::open`](crate::server::tasks::TaskConfig::open) returns.
    pub fn approve(mut self, approve: Approve) -> Self {
        self.approve = Some(approve);
        self
    }

    /// Sets the text that determines what a call executes, such as the command of a tool that runs
    /// one. An approval covers a hash of it, together with the name of the tool and its
    /// [`handler_revision`](Tool::handler_revision): after a change, people decide again.
    pub fn definition(mut self, definition: impl Into<String>) -> Self {
        self.definition = Some(definition.into());
        self
    }

    /// Sets the bytes of a result that is delivered uncut, in place of
    /// [`TaskConfig::results`](crate::server::tasks::TaskConfig::results). The tool announces the
    /// limit to Claude Code, up to 500,000 characters.
    pub fn max_inline(mut self, bytes: usize) -> Self {
        self.max_inline = Some(bytes);
        self
    }

    /// Sets a function that returns the words of the command which a call runs, exactly as the
    /// operating system receives them. People who approve a call see them. Secret arguments are
    /// replaced by a text before `words` gets the arguments.
    pub fn command_words(
        mut self,
        words: impl Fn(&RawValue) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.command_words = Some(Arc::new(words));
        self
    }

    /// Sets the name of the server that executes the tool, for the field `upstream` of the log line
    /// of a call.
    pub fn upstream(mut self, name: impl Into<Box<str>>) -> Self {
        self.upstream = Some(name.into());
        self
    }

    /// Sets a function that returns the tags of a task from the arguments of its call, as
    /// `key=value`. A console lists the tasks with a tag. At most 8 tags of 64 bytes are stored, and
    /// longer ones are left out. [`Cx::tag`](crate::server::Cx::tag) adds a tag while the task runs.
    pub fn tags(mut self, tags: impl Fn(&RawValue) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.tags = Some(Arc::new(tags));
        self
    }

    /// Sets how users of clients without elicitation can answer the tool's input requests, in place
    /// of [`Hosts::answers`](crate::server::hosts::Hosts::answers). Building the server fails if
    /// the tool is [`destructive`](Tool::destructive) and the list is not empty.
    pub fn answers(mut self, answers: impl IntoIterator<Item = AnswerBy>) -> Self {
        self.answers = Some(answers.into_iter().collect());
        self
    }

    /// Returns whether the handler takes `Durable`.
    pub(crate) fn may_ask(&self) -> bool {
        self.needs.durable
    }
}

/// Returns the schema of tools without arguments.
pub(super) fn no_arguments() -> RawJson {
    RawValue::from_string(r#"{"type":"object","additionalProperties":false}"#.into())
        .expect("the literal is valid JSON")
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.info.name).finish_non_exhaustive()
    }
}
