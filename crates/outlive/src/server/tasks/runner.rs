//! How a task is begun again as the call it was.

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

use super::{
    CleanupReason, TaskProgress, internal,
    start::{as_task, canceller},
};
use crate::server::{Cx, core::Core, cx::Arguments, durable::Durability, tool::ToolEntry};

/// Begins tasks as calls of the server's tools.
pub(super) struct CallRunner {
    core: Weak<Core>,
}

impl CallRunner {
    pub(super) fn new(core: Weak<Core>) -> Self {
        Self { core }
    }

    /// The call that a task was, and the tool that it is a call of; or why it cannot be told any
    /// more.
    fn call(
        &self,
        core: &Arc<Core>,
        claimed: &ClaimedTask,
    ) -> Result<(Arc<Call>, Arc<ToolEntry>), String> {
        let unreadable = |why: &dyn Display| format!("the request cannot be read any more: {why}");
        let stored: StoredCall =
            serde_json::from_str(claimed.request.get()).map_err(|error| unreadable(&error))?;
        let principal = Principal::from_key(&claimed.principal)
            .ok_or_else(|| "its caller cannot be told any more".to_owned())?;
        let call = stored.restore(principal, &core.profile).map_err(|fault| unreadable(&fault))?;
        let entry = core.tools.get(&claimed.tool, call.principal());
        Ok((call, entry.ok_or_else(|| "there is no such tool any more".to_owned())?))
    }
}

impl TaskRunner for CallRunner {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let ends =
            |why: &str, keep| StartError { outcome: TaskOutcome::Error(internal(why)), keep };
        let failed = |why: &str| ends(why, false);
        let core = self.core.upgrade().ok_or_else(|| failed("the server is gone"))?;
        let (call, entry) = self.call(&core, &claimed).map_err(|missing| failed(&missing))?;
        let emitted = !claimed.journal.segments.is_empty();
        if claimed.started && (!entry.resumes() || emitted && !entry.resumes_in_the_middle()) {
            return Err(failed(
                "the worker was lost, and this tool does not say that it can be run again",
            ));
        }
        let upgrade = entry.revisions();
        if claimed.started {
            upgrade.may_resume(&claimed.journal).map_err(|why| ends(&why, true))?;
        }
        let id = claimed.lease.task.as_str();
        let durability = Durability::of_task(&core, id, claimed.journal, upgrade);
        let journal = Arc::clone(&durability.journal);
        if let Some(before) = claimed.progress.as_ref().and_then(TaskProgress::read) {
            journal.set_progress(before.done());
        }
        call.attachment(|| durability);
        entry.meter.watch(&call, core.profile.clock.now());
        let cx = Cx::new(Arc::clone(&call), Arc::clone(&core), Arguments::Json);
        let work = outlive_protocol::catch_panic(&call, || entry.start(&cx, &entry));
        Ok(TaskRun {
            journal,
            work: as_task(core, Arc::clone(&call), work),
            cancel: canceller(&call),
            resumes: entry.is_durable(),
            cleans_up: entry.hook().is_some(),
        })
    }

    fn allowance(&self, principal: &str) -> Option<Allowance> {
        Some(self.core.upgrade()?.tasks.as_ref()?.allowance(principal))
    }

    fn clean_up(&self, claimed: ClaimedTask) -> Option<CleanupFuture> {
        let why = CleanupReason::of(claimed.ended.as_ref()?)?;
        let core = self.core.upgrade()?;
        let (call, entry) = match self.call(&core, &claimed) {
            Ok(found) => found,
            Err(missing) => return Some(Box::pin(ready(Err(missing)))),
        };
        let hook = entry.hook()?;
        let id = claimed.lease.task.as_str();
        call.attachment(|| {
            Durability::after_task(&core, id, claimed.journal, entry.revisions(), why)
        });
        Some(hook.start(&Cx::new(call, core, Arguments::Json)))
    }
}
