//! Restores the call of a stored task and starts its handler.

use std::{
    collections::HashMap,
    fmt::Display,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use outlive_protocol::{Call, CallFuture, Principal, ProtocolError, StoredCall};
use outlive_tasks::{
    JournalSnapshot,
    engine::{Allowance, CleanupFuture, PrepareFuture, StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, TaskId, TaskOutcome},
};

use crate::server::{
    dispatch::core::ServerCore,
    env::{environment::Env, task_error::internal},
    exec::{
        executable::ExecPolicy,
        gate::{
            binding::{GateJournal, NextStep},
            pass::{Pass, ToolGate},
            policy::Gate,
            start::GatedCall,
        },
        plan::is_bridged,
        task_run::task_run,
    },
    extract::cx::{Arguments, Cx},
    register::{catalog::Lookup, registered_tool::RegisteredTool},
    run::{
        bridged::BridgedCall,
        placement::{CleanupReason, Placement},
        progress::TaskProgress,
        state::RunState,
    },
};

/// Reason of a gated call that must not run under its approval.
const STALE: &str = "the tool was changed after people approved this call, which had recorded nothing; call the tool again for a new approval";

/// Reason of a task whose tool does not exist.
const NOT_REGISTERED: &str = "the tool is no longer registered";

/// Runs stored tasks as calls of the server's tools.
pub(crate) struct CallRunner {
    core: Weak<ServerCore>,
    /// Tools that the catalog has read for tasks that are about to start.
    prepared: Arc<Mutex<HashMap<TaskId, PreparedTool>>>,
}

/// The tool of a task, or the reason why the catalog cannot find it now.
type PreparedTool = Result<Arc<RegisteredTool>, String>;

impl CallRunner {
    pub(crate) fn new(core: Weak<ServerCore>) -> Self {
        Self { core, prepared: Arc::default() }
    }

    /// Returns the call of a task and its tool, or the error of a task that cannot resume.
    fn call(
        &self,
        core: &ServerCore,
        claimed: &ClaimedTask,
    ) -> Result<(Arc<Call>, Arc<RegisteredTool>), StartError> {
        let prepared = lock(&self.prepared).remove(&claimed.lease.task);
        let call = Self::restore(core, claimed).map_err(|reason| ends(&reason, false))?;
        let tool = match prepared {
            Some(prepared) => prepared.map_err(|reason| ends(&reason, true))?,
            None => match core.tool(&call, &claimed.tool) {
                Lookup::Found(tool) => tool,
                Lookup::Unknown | Lookup::Pending(_) => return Err(ends(NOT_REGISTERED, false)),
            },
        };
        Ok((call, tool))
    }

    /// Restores the call of a task. Returns the reason why that is impossible.
    fn restore(core: &ServerCore, claimed: &ClaimedTask) -> Result<Arc<Call>, String> {
        let unreadable = |why: &dyn Display| format!("the stored request cannot be decoded: {why}");
        let stored: StoredCall =
            serde_json::from_str(claimed.request.get()).map_err(|error| unreadable(&error))?;
        let principal = Principal::from_key(&claimed.principal).ok_or_else(|| {
            format!("stored principal `{}` is invalid; the task cannot resume", claimed.principal)
        })?;
        let call = stored.restore(principal, &core.env.profile);
        call.map_err(|error| unreadable(&error))
    }
}

/// Returns the error of a task that does not start.
fn ends(reason: &str, quarantine: bool) -> StartError {
    StartError { outcome: TaskOutcome::Error(internal(reason)), quarantine }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaskRunner for CallRunner {
    fn prepare(&self, claimed: &ClaimedTask) -> Option<PrepareFuture> {
        let core = self.core.upgrade()?;
        if core.catalog.is_none() || core.registered.tools.contains(&claimed.tool) {
            return None;
        }
        let call = Self::restore(&core, claimed).ok()?;
        let Lookup::Pending(pending) = core.tool(&call, &claimed.tool) else { return None };
        let (prepared, id) = (Arc::clone(&self.prepared), claimed.lease.task.clone());
        Some(Box::pin(async move {
            let found = match pending.await {
                Ok(None) => return,
                Ok(Some(tool)) => Ok(tool),
                Err(error) => Err(format!("the tool cannot be found now: {error}")),
            };
            lock(&prepared).insert(id, found);
        }))
    }

    fn start(&self, mut claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let failed = |why: &str| ends(why, false);
        let core = self.core.upgrade().ok_or_else(|| failed("the server has shut down"))?;
        let (call, tool) = self.call(&core, &claimed)?;
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
            false => pass(&core, &cx, &run, &tool, gate).map_err(error)?,
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
        let call = match Self::restore(&core, &claimed) {
            Ok(call) => call,
            Err(reason) => return Some(Box::pin(ready(Err(reason)))),
        };
        let found = core.tool(&call, &claimed.tool);
        let start = move |tool: &RegisteredTool| start_cleanup(&core, call, claimed, tool, reason);
        match found {
            Lookup::Found(tool) => start(&tool),
            Lookup::Unknown => Some(Box::pin(ready(Err(NOT_REGISTERED.to_owned())))),
            Lookup::Pending(pending) => Some(Box::pin(async move {
                let tool = pending.await.map_err(|error| error.to_string())?;
                match start(&*tool.ok_or(NOT_REGISTERED)?) {
                    Some(cleanup) => cleanup.await,
                    None => Ok(()),
                }
            })),
        }
    }
}

/// Starts the cleanup of a tool. Returns `None` if the tool has none.
fn start_cleanup(
    core: &ServerCore,
    call: Arc<Call>,
    claimed: ClaimedTask,
    tool: &RegisteredTool,
    reason: CleanupReason,
) -> Option<CleanupFuture> {
    let hook = tool.exec.policy.cleanup.as_ref()?;
    let placement = Placement::Cleanup { id: claimed.lease.task.clone(), reason };
    let replay = &tool.exec.policy.replay;
    let run = RunState::of_task(&core.env, placement, claimed.journal, replay);
    Some(hook.start(&Cx::new(call, &core.env, Arc::new(run), Arguments::Json)))
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
    core: &Arc<ServerCore>,
    cx: &Cx,
    run: &Arc<RunState>,
    tool: &RegisteredTool,
    gate: Option<GateJournal>,
) -> Result<Option<Pass>, ProtocolError> {
    let gated = gated(cx, &tool.exec.policy)?;
    let next = match run.bridged() {
        Some(_) => NextStep::Pending,
        None => NextStep::Task,
    };
    let tool = || tool_gate(core, cx.call(), tool);
    match (gate, gated) {
        (Some(journal), gated) => Ok(Some(Pass::new(cx, run, gated, tool(), journal))),
        (None, Some(gated)) => Pass::of_ungated_task(cx, run, gated, tool(), next).map(Some),
        (None, None) => Ok(None),
    }
}

/// Returns the gate of a tool at the start of a run, and the way to read it again.
fn tool_gate(core: &Arc<ServerCore>, call: &Arc<Call>, tool: &RegisteredTool) -> ToolGate {
    let (core, call, name) = (Arc::downgrade(core), Arc::clone(call), tool.exec.name.clone());
    let gate = tool.exec.policy.gate.clone();
    let read = move || -> Pin<Box<dyn Future<Output = Option<Arc<Gate>>> + Send>> {
        let (core, call, name) = (core.upgrade(), Arc::clone(&call), name.clone());
        Box::pin(async move {
            let tool = match core?.tool(&call, &name) {
                Lookup::Found(tool) => tool,
                Lookup::Unknown => return None,
                Lookup::Pending(pending) => pending.await.ok()??,
            };
            tool.exec.policy.gate.clone()
        })
    };
    ToolGate { gate, read: Box::new(read) }
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
