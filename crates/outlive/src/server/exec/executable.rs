//! A handler and its execution policy.

use std::sync::Arc;

use outlive_protocol::CallFuture;
use outlive_tasks::store::{MAX_TAG_BYTES, MAX_TAGS};
use serde_json::value::RawValue;

use crate::server::{
    durable::cleanup::Hook,
    exec::gate::policy::Gate,
    extract::{cx::Cx, extractor::HandlerRequirements},
    hosts::{AnswerBy, Repeat},
    policy::TaskPolicy,
    run::replay_policy::ReplayPolicy,
    throttle::Permit,
};

/// A handler with its types erased.
pub(crate) type StartHandler = Box<dyn Fn(&Cx) -> CallFuture + Send + Sync>;

/// A handler and the policy for its calls.
pub(crate) struct Executable {
    /// Name of the tool, prompt or resource.
    pub(crate) name: String,
    pub(crate) policy: ExecPolicy,
    pub(crate) start: StartHandler,
}

/// Execution policy of a tool, prompt or resource.
#[derive(Default)]
pub(crate) struct ExecPolicy {
    /// Whether the item is a tool: only tool calls request tasks and carry idempotency keys.
    pub(crate) is_tool: bool,
    /// Which calls become tasks.
    pub(crate) task: TaskPolicy,
    /// Whether the handler can be replayed over its journal.
    pub(crate) is_durable: bool,
    /// Whether the handler needs a run: it is durable, emits segments, or returns input requests.
    pub(crate) has_run: bool,
    /// Which request states and journals the handler accepts.
    pub(crate) replay: ReplayPolicy,
    /// Whether a promotable call becomes a task before its first step.
    pub(crate) promotes_at_step: bool,
    /// Approval of calls before they start.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Policy for repeated calls; `None` for the policy of the server.
    pub(crate) repeat: Option<Repeat>,
    /// Bytes of a result that is delivered uncut; `None` for the limit of the server.
    pub(crate) max_inline: Option<usize>,
    /// Ways to answer input requests; `None` for those of the server, empty for destructive tools.
    pub(crate) answers: Option<Arc<[AnswerBy]>>,
    /// Whether clients reject a pending result, because the output schema does not allow it. It is
    /// sent as an error then.
    pub(crate) rejects_pending_results: bool,
    /// Whether the tool has an output schema, which lists widen only for clients without tasks.
    pub(crate) has_output_schema: bool,
    /// Whether the handler emits its content in segments.
    pub(crate) streams_content: bool,
    /// Text for the model while a task runs.
    pub(crate) immediate_response: Option<String>,
    /// Whether a task runs again after its worker crashed.
    pub(crate) resumes: bool,
    /// Whether a task runs again even if it has emitted segments.
    pub(crate) resumes_after_segments: bool,
    /// Cleanup after a cancelled or expired task.
    pub(crate) cleanup: Option<Hook>,
    /// Returns the tags of a task from its arguments.
    pub(crate) tags: Option<TaskTags>,
}

/// Returns tags as `key=value` from the arguments of a call.
pub(crate) type TaskTags = Arc<dyn Fn(&RawValue) -> Vec<String> + Send + Sync>;

impl ExecPolicy {
    /// Returns the policy of a prompt or resource, whose calls never become tasks.
    pub(crate) fn of_reader(needs: &HandlerRequirements) -> Self {
        Self { is_durable: needs.durable, has_run: needs.durable, ..Self::default() }
    }

    /// Returns whether calls without durable parameters need no run, unless they need approval.
    pub(crate) fn is_plain(&self) -> bool {
        self.task == TaskPolicy::Never && !self.has_run
    }

    /// Returns the tags of a task with these arguments. Tags above the limits are left out.
    pub(crate) fn tags(&self, arguments: &str) -> Vec<String> {
        let Some(tags) = &self.tags else { return Vec::new() };
        let arguments = serde_json::from_str::<&RawValue>(arguments);
        let mut tags = arguments.map(|arguments| tags(arguments)).unwrap_or_default();
        tags.retain(|tag| tag.len() <= MAX_TAG_BYTES && tag.contains('='));
        tags.truncate(MAX_TAGS);
        tags
    }

    /// Returns whether a call of the tool may become a task.
    pub(crate) fn has_tasks(&self) -> bool {
        self.task != TaskPolicy::Never || self.gate.is_some()
    }
}

/// A call that is about to start: its handler and the permits that it holds.
pub(crate) struct Invocation {
    pub(crate) target: Arc<Executable>,
    pub(crate) permits: Option<Vec<Permit>>,
}

impl Invocation {
    /// Starts the handler. The permits are released when the handler ends.
    pub(crate) fn start(self, cx: &Cx) -> CallFuture {
        let work = (self.target.start)(cx);
        match self.permits {
            None => work,
            Some(permits) => Box::pin(async move {
                let result = work.await;
                drop(permits);
                result
            }),
        }
    }
}
