//! How a task is begun again as the call it was.

use std::sync::{Arc, Weak};

use outlive_protocol::{Principal, StoredCall};
use outlive_tasks::{
    engine::{Runner, Started},
    store::{Claimed, TaskOutcome},
};

use super::{
    TaskProgress, internal,
    start::{as_task, canceller},
};
use crate::server::{Cx, core::Core, cx::Arguments, durable::Durability};

/// Begins tasks as calls of the server's tools.
pub(super) struct CallRunner {
    core: Weak<Core>,
}

impl CallRunner {
    pub(super) fn new(core: Weak<Core>) -> Self {
        Self { core }
    }
}

impl Runner for CallRunner {
    fn start(&self, claimed: Claimed) -> Result<Started, TaskOutcome> {
        let failed = |why: &str| TaskOutcome::Error(internal(why));
        let core = self.core.upgrade().ok_or_else(|| failed("the server is gone"))?;
        let stored: StoredCall = serde_json::from_str(claimed.request.get())
            .map_err(|error| failed(&format!("the request cannot be read any more: {error}")))?;
        let principal = Principal::from_key(&claimed.principal)
            .ok_or_else(|| failed("its caller cannot be told any more"))?;
        let call = stored
            .restore(principal, &core.profile)
            .map_err(|fault| failed(&format!("the request cannot be read any more: {fault}")))?;
        let Some(entry) = core.tools.get(&claimed.kind, call.principal()) else {
            return Err(failed("there is no such tool any more"));
        };
        let emitted = !claimed.journal.segments.is_empty();
        if claimed.begun && (!entry.resumes() || emitted && !entry.resumes_in_the_middle()) {
            return Err(failed(
                "the worker was lost, and this tool does not say that it can be run again",
            ));
        }
        let durability = Durability::of_task(&core, claimed.lease.task.as_str(), claimed.journal);
        let journal = Arc::clone(&durability.journal);
        if let Some(before) = claimed.progress.as_ref().and_then(TaskProgress::read) {
            journal.set_progress(before.done());
        }
        call.attachment(|| durability);
        let cx = Cx::new(Arc::clone(&call), Arc::clone(&core), Arguments::Json);
        let work = outlive_protocol::contained(&call, || entry.start(&cx, &entry));
        Ok(Started {
            journal,
            work: as_task(core, Arc::clone(&call), work),
            cancel: canceller(&call),
            resumes: entry.is_durable(),
        })
    }
}
