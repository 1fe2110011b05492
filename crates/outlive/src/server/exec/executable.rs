//! A handler that can be executed, and what its registration says about executing it.

use std::sync::Arc;

use outlive_protocol::CallFuture;

use crate::server::{
    durable::cleanup::Hook,
    extract::{cx::Cx, extractor::HandlerRequirements},
    policy::TaskPolicy,
    run::replay_policy::ReplayPolicy,
    throttle::Permit,
};

/// A handler whose types are erased: returns the future of a call.
pub(crate) type StartHandler = Box<dyn Fn(&Cx) -> CallFuture + Send + Sync>;

/// A handler, and how its calls are executed.
pub(crate) struct Executable {
    /// Name of the tool, prompt or resource.
    pub(crate) name: String,
    pub(crate) policy: ExecPolicy,
    pub(crate) start: StartHandler,
}

/// What a registration says about the execution of calls.
#[derive(Default)]
pub(crate) struct ExecPolicy {
    /// Whether it is a tool: only calls of tools request tasks and carry idempotency keys.
    pub(crate) is_tool: bool,
    /// Whether calls become tasks.
    pub(crate) task: TaskPolicy,
    /// Whether the handler may run again from the top, over its journal.
    pub(crate) is_durable: bool,
    /// Whether the handler has a run: it is durable, emits segments, or returns input requests.
    pub(crate) has_run: bool,
    /// Which request states and journals of earlier rounds it accepts.
    pub(crate) replay: ReplayPolicy,
    /// Whether a call that may become a task becomes one before its first step.
    pub(crate) promotes_at_step: bool,
    /// Whether its content is emitted in segments.
    pub(crate) streams_content: bool,
    /// Text for the model while a task runs.
    pub(crate) immediate_response: Option<String>,
    /// Whether a task is run again after its worker crashed.
    pub(crate) resumes: bool,
    /// Whether it is run again even if it has emitted segments.
    pub(crate) resumes_after_segments: bool,
    /// What is done after a task that was cancelled or has expired.
    pub(crate) cleanup: Option<Hook>,
}

impl ExecPolicy {
    /// Returns the policy of a prompt or resource, whose calls never become tasks.
    pub(crate) fn of_reader(needs: &HandlerRequirements) -> Self {
        Self { is_durable: needs.durable, has_run: needs.durable, ..Self::default() }
    }

    /// Whether a call without durable parameters needs no run: it ends with its first response.
    pub(crate) fn is_plain(&self) -> bool {
        self.task == TaskPolicy::Never && !self.has_run
    }
}

/// A call that is about to start: its handler, and the permits that it holds.
pub(crate) struct Invocation {
    pub(crate) target: Arc<Executable>,
    pub(crate) permits: Option<Vec<Permit>>,
}

impl Invocation {
    /// Starts the handler. The permits are released when it has ended.
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
