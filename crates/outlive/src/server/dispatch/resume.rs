//! Restores the call of a stored task and starts its handler.

use std::{
    fmt::Display,
    future::ready,
    sync::{Arc, Weak},
};

use outlive_protocol::{Call, Principal, StoredCall};
use outlive_tasks::{
    engine::{Allowance, CleanupFuture, StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, TaskOutcome},
};

use crate::server::{
    dispatch::core::ServerCore,
    env::task_error::internal,
    exec::{plan::is_bridged, task_run::task_run},
    extract::cx::{Arguments, Cx},
    register::registered_tool::RegisteredTool,
    run::{
        bridged::BridgedCall,
        placement::{CleanupReason, Placement},
        progress::TaskProgress,
        state::RunState,
    },
};

/// Runs stored tasks as calls of the server's tools.
pub(crate) struct CallRunner {
    core: Weak<ServerCore>,
}

impl CallRunner {
    pub(crate) fn new(core: Weak<ServerCore>) -> Self {
        Self { core }
    }

    /// Returns the call of a task and its tool, or the reason why the task cannot resume.
    fn call(
        core: &ServerCore,
        claimed: &ClaimedTask,
    ) -> Result<(Arc<Call>, Arc<RegisteredTool>), String> {
        let unreadable = |why: &dyn Display| format!("the stored request cannot be decoded: {why}");
        let stored: StoredCall =
            serde_json::from_str(claimed.request.get()).map_err(|error| unreadable(&error))?;
        let principal = Principal::from_key(&claimed.principal).ok_or_else(|| {
            format!("stored principal `{}` is invalid; the task cannot resume", claimed.principal)
        })?;
        let call = stored.restore(principal, &core.env.profile);
        let call = call.map_err(|error| unreadable(&error))?;
        let tool = core.catalog.tools.get(&claimed.tool, call.principal());
        Ok((call, tool.ok_or_else(|| "the tool is no longer registered".to_owned())?))
    }
}

impl TaskRunner for CallRunner {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let ends = |why: &str, quarantine| StartError {
            outcome: TaskOutcome::Error(internal(why)),
            quarantine,
        };
        let failed = |why: &str| ends(why, false);
        let core = self.core.upgrade().ok_or_else(|| failed("the server has shut down"))?;
        let (call, tool) = Self::call(&core, &claimed).map_err(|missing| failed(&missing))?;
        let (env, policy) = (&core.env, &tool.exec.policy);
        let emitted = !claimed.journal.segments.is_empty();
        if claimed.started && (!policy.resumes || emitted && !policy.resumes_after_segments) {
            return Err(failed(
                "the worker crashed, and this tool does not allow a rerun; set `on_crash` to allow it",
            ));
        }
        if claimed.started {
            policy.replay.may_resume(&claimed.journal).map_err(|why| ends(&why, true))?;
        }
        let placement = Placement::Task { id: claimed.lease.task.clone() };
        let run = RunState::of_task(env, placement, claimed.journal, &policy.replay);
        if let Some(before) = claimed.progress.as_ref().and_then(TaskProgress::read) {
            run.journal().set_progress(before.done());
        }
        let hosts = env.hosts();
        if let Some(hosts) = hosts.filter(|hosts| is_bridged(&call, hosts))
            && let Ok(bridged) = BridgedCall::new(env, hosts, &call, &policy.replay)
        {
            run.set_bridged(bridged);
        }
        let run = Arc::new(run);
        tool.meter.watch(&call, env.profile.clock.now());
        let cx = Cx::new(Arc::clone(&call), env, Arc::clone(&run), Arguments::Json);
        let work = outlive_protocol::catch_panic(&call, || (tool.exec.start)(&cx));
        Ok(task_run(env, &call, run, &tool.exec, work))
    }

    fn allowance(&self, principal: &str) -> Option<Allowance> {
        Some(self.core.upgrade()?.env.tasks.as_ref()?.allowance(principal))
    }

    fn clean_up(&self, claimed: ClaimedTask) -> Option<CleanupFuture> {
        let reason = CleanupReason::of(claimed.ended.as_ref()?)?;
        let core = self.core.upgrade()?;
        let (call, tool) = match Self::call(&core, &claimed) {
            Ok(found) => found,
            Err(missing) => return Some(Box::pin(ready(Err(missing)))),
        };
        let hook = tool.exec.policy.cleanup.as_ref()?;
        let placement = Placement::Cleanup { id: claimed.lease.task.clone(), reason };
        let replay = &tool.exec.policy.replay;
        let run = RunState::of_task(&core.env, placement, claimed.journal, replay);
        Some(hook.start(&Cx::new(call, &core.env, Arc::new(run), Arguments::Json)))
    }
}
