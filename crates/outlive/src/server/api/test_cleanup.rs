//! Runs the cleanup of a call that a test cancelled.

use std::sync::Arc;

use outlive_tasks::{engine::CleanupFuture, store::TaskId};

use crate::server::{
    api::server::Server,
    extract::cx::{Arguments, Cx},
    run::{
        placement::{CleanupReason, Placement},
        state::RunState,
    },
};

impl Server {
    /// Starts the cleanup of the call that a test cancelled. Returns `None` if the tool has no
    /// cleanup.
    pub(crate) fn clean_up_test(&self) -> Option<CleanupFuture> {
        let env = &self.core.env;
        let (call, journal) = env.test_hooks.as_ref()?.ended_call()?;
        let tool = self.core.registered.tools.get(&call.name().ok()?, call.principal())?;
        let policy = &tool.exec.policy;
        let reason = CleanupReason::Cancelled;
        let placement = Placement::Cleanup { id: TaskId::new("test"), reason };
        let run = RunState::of_task(env, placement, journal, &policy.replay);
        let cx = Cx::new(call, env, Arc::new(run), Arguments::Json);
        Some(policy.cleanup.as_ref()?.start(&cx))
    }
}
