//! Restores the call of a stored task and starts its handler.

use std::{
    fmt::Display,
    future::ready,
    sync::{Arc, Weak},
};

use outlive_protocol::{Call, CallFuture, Principal, ProtocolError, StoredCall};
use outlive_tasks::{
    JournalSnapshot,
    engine::{Allowance, CleanupFuture, StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, TaskOutcome},
};

use crate::server::{
    dispatch::core::ServerCore,
    env::{environment::Env, task_error::internal},
    exec::{
        executable::ExecPolicy,
        gate::{
            binding::{GateJournal, NextStep},
            pass::Pass,
            start::GatedCall,
        },
        plan::is_bridged,
        task_run::task_run,
    },
    extract::cx::{Arguments, Cx},
    register::registered_tool::RegisteredTool,
    run::{
        bridged::BridgedCall,
        placement::{CleanupReason, Placement},
        progress::TaskProgress,
        state::RunState,
    },
};

/// Reason of a gated call that must not run under its approval.
const STALE: &str = "the tool was changed after people approved this call, which had recorded nothing; call the tool again for a new approval";

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
    fn start(&self, mut claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let ends = |why: &str, quarantine| StartError {
            outcome: TaskOutcome::Error(internal(why)),
            quarantine,
        };
        let failed = |why: &str| ends(why, false);
        let core = self.core.upgrade().ok_or_else(|| failed("the server has shut down"))?;
        let (call, tool) = Self::call(&core, &claimed).map_err(|missing| failed(&missing))?;
        let (env, policy) = (&core.env, &tool.exec.policy);
        let gate = GateJournal::take(&mut claimed.journal);
        // A gated task is claimed before its handler starts.
        let started = gate.as_ref().map_or(claimed.started, |gate| gate.has_started);
        let emitted = !claimed.journal.segments.is_empty();
        let has_records = emitted || has_records(&claimed.journal);
        if started && (!policy.resumes || emitted && !policy.resumes_after_segments) {
            return Err(failed(
                "the worker crashed, and this tool does not allow a rerun; set `on_crash` to allow it",
            ));
        }
        if started {
            policy.replay.may_resume(&claimed.journal).map_err(|why| ends(&why, true))?;
        }
        let placement = Placement::Task { id: claimed.lease.task.clone() };
        let run = RunState::of_task(env, placement, claimed.journal, &policy.replay);
        if let Some(before) = claimed.progress.as_ref().and_then(TaskProgress::read) {
            run.journal().set_progress(before.done());
        }
        let is_waiting = gate.as_ref().is_some_and(|gate| gate.last.next != NextStep::Task);
        set_bridged(env, &call, policy, &run, is_waiting);
        let run = Arc::new(run);
        let cx = Cx::new(Arc::clone(&call), env, Arc::clone(&run), Arguments::Json);
        let error = |error: ProtocolError| failed(&error.to_string());
        if let Some(gate) = gate.as_ref().filter(|gate| gate.has_started)
            && is_stale(&cx, policy, gate).map_err(error)?
        {
            if !has_records {
                return Err(failed(STALE));
            }
            run.set_stale_approval();
        }
        let pass = match started {
            false => pass(&cx, &run, policy, gate).map_err(error)?,
            true => None,
        };
        let work = match pass {
            None => start_handler(&tool, &cx),
            Some(pass) => {
                let tool = Arc::clone(&tool);
                pass.then(move |cx| start_handler(&tool, cx))
            }
        };
        Ok(task_run(env, &call, run, &tool.exec, work))
    }

    fn allowance(&self, principal: &str) -> Option<Allowance> {
        Some(self.core.upgrade()?.env.tasks.as_ref()?.allowance(principal))
    }

    fn clean_up(&self, mut claimed: ClaimedTask) -> Option<CleanupFuture> {
        // A gated task that did not start leaves nothing to clean up.
        if GateJournal::take(&mut claimed.journal).is_some_and(|gate| !gate.has_started) {
            return None;
        }
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

/// Returns whether the handler has recorded anything. Keys of the server start with `#`.
fn has_records(journal: &JournalSnapshot) -> bool {
    journal.entries.keys().any(|key| !key.starts_with('#'))
}

fn start_handler(tool: &RegisteredTool, cx: &Cx) -> CallFuture {
    tool.meter.watch(cx.call(), cx.env().profile.clock.now());
    outlive_protocol::catch_panic(cx.call(), || (tool.exec.start)(cx))
}

/// Marks the run of a client that does not have the task as bridged.
fn set_bridged(env: &Env, call: &Call, policy: &ExecPolicy, run: &RunState, is_waiting: bool) {
    let Some(tasks) = &env.tasks else { return };
    let hosts = tasks.bridge_hosts();
    let is_bridged = tasks.config.hosts.is_some() && is_bridged(call, hosts);
    if (is_waiting || is_bridged)
        && let Ok(bridged) = BridgedCall::new(env, hosts, call, &policy.replay)
    {
        run.set_bridged(bridged);
    }
}

/// Returns the gate that a task passes before its handler starts; `None` if it needs no approval.
fn pass(
    cx: &Cx,
    run: &Arc<RunState>,
    policy: &ExecPolicy,
    gate: Option<GateJournal>,
) -> Result<Option<Pass>, ProtocolError> {
    let gated = gated(cx, policy)?;
    let next = match run.bridged() {
        Some(_) => NextStep::Pending,
        None => NextStep::Task,
    };
    match (gate, gated) {
        (Some(journal), gated) => Ok(Some(Pass::new(cx, run, gated, journal))),
        (None, Some(gated)) => Pass::of_ungated_task(cx, run, gated, next).map(Some),
        (None, None) => Ok(None),
    }
}

/// Returns the gate of the tool's current definition; `None` if the call needs no approval.
fn gated(cx: &Cx, policy: &ExecPolicy) -> Result<Option<GatedCall>, ProtocolError> {
    match &policy.gate {
        Some(gate) => GatedCall::new(cx.env(), cx.call(), gate),
        None => Ok(None),
    }
}

/// Returns whether the tool has changed since the approval of a call that has started.
fn is_stale(cx: &Cx, policy: &ExecPolicy, gate: &GateJournal) -> Result<bool, ProtocolError> {
    let gated = gated(cx, policy)?;
    Ok(gated.is_some_and(|gated| !gate.last.covers(&gated.digest, &gated.gate.definition)))
}
