//! Validation of a tool, and its registration.

use std::{fmt, sync::Arc};

use outlive_schema::Schema;
use outlive_wire::{TaskSupport, ToolExecution};

use crate::server::{
    build_error::BuildError,
    env::environment::Env,
    exec::{
        executable::{ExecPolicy, Executable},
        gate::policy::Gate,
    },
    hosts::{AnswerBy, RESERVED_TOOL_NAMES},
    meter::ToolMeter,
    policy::{OnCrash, TaskPolicy},
    register::{
        registered_tool::{RegisteredTool, ToolLimits, ToolSchema},
        tool::{Tool, no_arguments},
        widened_schema::widened,
    },
    throttle::{RateLimit, Throttle},
};

/// Member of a tool's `_meta` that raises the size limit of its results in Claude Code.
const MAX_RESULT_SIZE: &str = "anthropic/maxResultSizeChars";

/// Largest limit that Claude Code accepts.
const MAX_RESULT_CHARS: usize = 500_000;

impl Tool {
    /// Validates a tool that the application registers.
    pub(crate) fn register(self, env: &Env) -> Result<RegisteredTool, BuildError> {
        let name = self.info.name.as_str();
        if env.hosts().is_some() && RESERVED_TOOL_NAMES.contains(&name) {
            let reason = "a server with `.hosts(…)` adds a tool of this name; choose another name";
            return Err(BuildError::tool(name, &reason));
        }
        self.validate(env)
    }

    /// Validates the tool and compiles its schemas.
    pub(crate) fn validate(mut self, env: &Env) -> Result<RegisteredTool, BuildError> {
        let name = self.info.name.clone();
        let invalid = |error: &dyn fmt::Display| BuildError::tool(&name, error);
        if name.is_empty() {
            return Err(invalid(&"its name is empty"));
        }
        warn_of_name(&name);
        self.check(env).map_err(|reason| invalid(&reason))?;
        let mut schema = self.schema().map_err(|reason| invalid(&reason))?;
        self.info.execution = execution(self.policy);
        self.announce_schemas(&schema);
        self.announce_max_inline();
        let answers = self.answers_of_people();
        let gate = self.gate(env, &schema).map_err(|reason| invalid(&reason))?;
        // People must not decide about a call that its handler would reject.
        schema.typed_input &= gate.is_none();
        let schema = Arc::new(schema);
        let rejects_pending_results = self.rejects_pending_results();
        let (handler, contract) = (self.handler, Arc::clone(&schema));
        let exec = Executable {
            name,
            policy: ExecPolicy {
                is_tool: true,
                task: self.policy,
                is_durable: self.needs.durable,
                has_run: self.needs.durable || self.needs.emits || self.returns_input,
                gate,
                repeat: self.repeat,
                max_inline: self.max_inline,
                answers,
                rejects_pending_results,
                has_output_schema: self.info.output_schema.is_some(),
                promotes_at_step: self
                    .promotes_at_step
                    .unwrap_or(self.once || self.clean_up.is_some()),
                streams_content: self.incremental,
                immediate_response: self.immediate,
                resumes: resumes(&self.info, self.on_crash, self.needs.durable),
                resumes_after_segments: self.needs.durable || self.on_crash == Some(OnCrash::Rerun),
                cleanup: self.clean_up,
                tags: self.tags,
                replay: self.replay,
            },
            start: Box::new(move |cx| handler(cx, &contract)),
        };
        let info = Arc::new(self.info);
        Ok(RegisteredTool {
            meter: ToolMeter::new(&info.name, self.upstream),
            limits: ToolLimits {
                all: throttle(self.rate, self.concurrency),
                per_caller: throttle(self.rate_per_caller, self.concurrency_per_caller),
            },
            bridged_info: bridged_info(&info, &exec.policy),
            info,
            schema,
            access: self.access,
            exec: Arc::new(exec),
            command_words: self.command_words,
        })
    }

    /// Returns the gate of the tool: its own rule, else that of destructive tools.
    fn gate(&mut self, env: &Env, schema: &ToolSchema) -> Result<Option<Arc<Gate>>, String> {
        let shared = || env.approve_destructive.clone().filter(|_| is_destructive(&self.info));
        let own = self.approve.take().map(Arc::new);
        let Some(approve) = own.or_else(shared) else { return Ok(None) };
        if env.tasks.as_ref().is_none_or(|tasks| tasks.people.is_none()) {
            return Err(
                "its calls need approval, but the server has no store with decisions; call \
                        `.tasks(…)` with `TaskConfig::open` or `TaskConfig::people`"
                    .to_owned(),
            );
        }
        let revision = self.replay.revision.as_deref().unwrap_or_default();
        let definition = self.definition.as_deref().unwrap_or_default();
        let parts = [self.info.name.as_str(), revision, definition];
        Gate::new(approve, &parts, schema.input.text().get()).map(Arc::new).map(Some)
    }

    /// Returns the ways to answer input requests. A destructive tool has none, so that answers of the
    /// server do not apply.
    fn answers_of_people(&mut self) -> Option<Arc<[AnswerBy]>> {
        match is_destructive(&self.info) {
            true => Some(Arc::default()),
            false => self.answers.take(),
        }
    }

    /// Returns whether clients reject pending results, because the output schema cannot allow them.
    fn rejects_pending_results(&self) -> bool {
        self.info.output_schema.as_ref().is_some_and(|schema| widened(schema).is_none())
    }

    /// Announces the compiled schemas. Those of another server are already in its definition.
    fn announce_schemas(&mut self, schema: &ToolSchema) {
        if !self.relays {
            let output = schema.output.as_ref();
            self.info.input_schema = Arc::clone(schema.input.text());
            self.info.output_schema = output.map(|output| Arc::clone(output.text()));
        }
    }

    /// Announces the size of results that the tool delivers uncut, in its `_meta`.
    fn announce_max_inline(&mut self) {
        let Some(bytes) = self.max_inline else { return };
        let meta = self.info.meta.get_or_insert_default();
        meta.0.insert(MAX_RESULT_SIZE.to_owned(), bytes.min(MAX_RESULT_CHARS).into());
    }

    /// Checks that the server provides the tool's requirements.
    fn check(&self, env: &Env) -> Result<(), String> {
        self.needs.check(env)?;
        self.check_answers()?;
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

    /// Checks the settings for clients without tasks.
    fn check_answers(&self) -> Result<(), String> {
        let answers = self.answers.as_ref().is_some_and(|answers| !answers.is_empty());
        if answers && is_destructive(&self.info) {
            return Err("it is destructive, so a link or a tool must not answer its input requests; remove `.answers(…)`".into());
        }
        Ok(())
    }

    /// Compiles the schemas.
    fn schema(&mut self) -> Result<ToolSchema, String> {
        if self.relays {
            return Ok(self.relayed_schema());
        }
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

    /// Returns the schemas of another server, against which nothing is validated.
    fn relayed_schema(&self) -> ToolSchema {
        ToolSchema {
            name: self.info.name.clone(),
            input: Schema::relayed_input(Arc::clone(&self.info.input_schema)),
            typed_input: true,
            output: None,
            typed_output: true,
            replay: self.replay.clone(),
        }
    }
}

/// Returns the task support that clients see.
fn execution(policy: TaskPolicy) -> Option<ToolExecution> {
    let support = match policy {
        TaskPolicy::Never => return None,
        TaskPolicy::Auto { .. } => TaskSupport::Optional,
        TaskPolicy::Always => TaskSupport::Required,
    };
    Some(ToolExecution { task_support: Some(support) })
}

fn throttle(rate: Option<RateLimit>, concurrent: Option<u32>) -> Option<Arc<Throttle>> {
    (rate.is_some() || concurrent.is_some()).then(|| Arc::new(Throttle::new(rate, concurrent)))
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

/// Returns whether the author declared the tool destructive.
fn is_destructive(info: &outlive_wire::Tool) -> bool {
    info.annotations.as_ref().is_some_and(|hints| hints.destructive_hint == Some(true))
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

/// Returns the definition of a tool for clients without tasks: its results may be pending, and
/// calls without tasks are accepted.
fn bridged_info(info: &Arc<outlive_wire::Tool>, policy: &ExecPolicy) -> Arc<outlive_wire::Tool> {
    if !policy.has_tasks() {
        return Arc::clone(info);
    }
    let mut bridged = outlive_wire::Tool::clone(info);
    if policy.task != TaskPolicy::Never {
        bridged.execution = Some(ToolExecution { task_support: Some(TaskSupport::Optional) });
    }
    if let Some(wide) = bridged.output_schema.as_ref().and_then(widened) {
        bridged.output_schema = Some(wide);
    }
    Arc::new(bridged)
}
