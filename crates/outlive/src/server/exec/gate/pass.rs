//! The gate of a claimed task: its handler starts only under an approval of this call and of the
//! current definition of its tool.
//!
//! The run waits in its journal, as for the input requests of a handler, so the engine parks it. The
//! start is committed before the handler runs. A crash therefore never starts an approved call twice.

use std::{
    fmt,
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use outlive_protocol::{CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_tasks::{
    APPROVAL, InputPoll, JournalEntry, START, WriteTicket, poll_as, store::InputRequestDetail,
};
use outlive_wire::{CallToolResult, RawJson};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    exec::gate::{
        binding::{GateJournal, NextStep, record_key, start_mark},
        decision::Decision,
        denial, places,
        policy::Gate,
        start::GatedCall,
        text::{self, APPROVED, WAITS, WAITS_FOR_CALLER},
    },
    extract::cx::Cx,
    run::state::{RunState, run_id},
    time::now,
};

/// Delay between two attempts to read a decision from a store that does not respond.
const RETRY: Duration = Duration::from_secs(1);

/// Reason that people read when they decide again.
const CHANGED: &str = "The tool has changed since the call was approved. It has not run.";

/// Reads the gate that a tool has now. Returns `None` if the tool is gone or has no gate.
pub(crate) type ReadGate =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Option<Arc<Gate>>> + Send>> + Send + Sync>;

/// The gate of a tool at the start of a run, and the way to read it again.
pub(crate) struct ToolGate {
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) read: ReadGate,
}

/// A task whose handler has not started.
pub(crate) struct Pass {
    cx: Cx,
    run: Arc<RunState>,
    /// The call under the gate at the start of the run; `None` if the gate does not cover it.
    gated: Option<GatedCall>,
    tool: ToolGate,
    journal: GateJournal,
}

/// Result of a call that must not run, or an error of the store.
type Stop = Result<CallToolResult, ProtocolError>;

impl Pass {
    /// Returns the pass of a task that its journal says is gated.
    pub(crate) fn new(
        cx: &Cx,
        run: &Arc<RunState>,
        gated: Option<GatedCall>,
        tool: ToolGate,
        journal: GateJournal,
    ) -> Self {
        Self { cx: cx.clone(), run: Arc::clone(run), gated, tool, journal }
    }

    /// Returns the pass of a task whose tool became gated after its creation.
    pub(crate) fn of_ungated_task(
        cx: &Cx,
        run: &Arc<RunState>,
        gated: GatedCall,
        tool: ToolGate,
        next: NextStep,
    ) -> Result<Self, ProtocolError> {
        let config = &cx.env().tasks()?.config;
        let last = gated.record(config, now(&cx.env().profile), next);
        let raw = to_raw_value(&last).map_err(ProtocolError::internal)?;
        run.journal().put_marker(record_key(1), raw);
        run.journal().set_status_message(WAITS.to_owned());
        let journal = GateJournal { last, issued: 1, has_started: false };
        Ok(Self::new(cx, run, Some(gated), tool, journal))
    }

    /// Waits for the approval, then runs the handler that `start` starts.
    pub(crate) fn then(
        mut self,
        start: impl FnOnce(&Cx) -> CallFuture + Send + 'static,
    ) -> CallFuture {
        Box::pin(async move {
            match self.wait().await {
                Ok(()) => start(&self.cx).await,
                Err(Ok(result)) => Ok(Outcome::Complete(MethodResult::Tool(result))),
                Err(Err(error)) => Err(error),
            }
        })
    }

    /// Waits until the handler may start.
    async fn wait(&mut self) -> Result<(), Stop> {
        let raw = self.decision().await?;
        let decision: Decision = serde_json::from_str(raw.get()).map_err(broken)?;
        if decision.is_approval() && self.has_tool_changed().await {
            return self.end_run(Duration::ZERO).await;
        }
        self.free_place().await?;
        if !decision.is_approval() {
            return Err(Ok(self.deny(decision).await?));
        }
        if self.is_stale() || !self.was_definition_shown().await {
            self.reissue()?;
            return self.end_run(Duration::from_millis(self.journal.last.decision_millis)).await;
        }
        self.wait_for_caller().await?;
        self.audit("approved", decision.by.map(|by| format!("by {by}")))?;
        self.run.journal().set_status_message(APPROVED.to_owned());
        let (key, mark) = start_mark();
        let ticket = self.run.journal().put_marker(key, mark);
        self.written(ticket).await
    }

    /// Returns the response to the approval request.
    async fn decision(&self) -> Result<RawJson, Stop> {
        let journal = self.run.journal();
        if let Some(JournalEntry::Answer(raw)) = journal.get(APPROVAL) {
            return Ok(raw);
        }
        let record = &self.journal.last;
        if now(&self.cx.env().profile) >= record.due {
            return self.expire().await;
        }
        match &self.gated {
            // The store has the request, except after a reissue.
            Some(gated) => {
                let request = gated.request(self.cx.call(), record, self.reason());
                journal.inputs().open_approval(request.map_err(Stop::Err)?);
            }
            // The call no longer needs an approval.
            None => {
                journal.inputs().withdraw_approval();
                return Ok(accepted());
            }
        }
        match poll_fn(|task| journal.inputs().poll(APPROVAL, task)).await {
            Ok(InputPoll::Answered(raw)) => Ok(raw),
            // The run is being dropped, and another one follows.
            _ => pending().await,
        }
    }

    /// Withdraws the request. Returns the response if people decided before that.
    async fn expire(&self) -> Result<RawJson, Stop> {
        self.written(self.run.journal().inputs().withdraw_approval()).await?;
        if let Some(response) = self.stored_request().await.and_then(|request| request.response) {
            return Ok(response);
        }
        self.free_place().await?;
        self.audit("gate-expired", None)?;
        Err(Ok(text::expired(self.journal.last.decision_millis)))
    }

    /// Returns the result of a denied call, and makes the denial stand.
    async fn deny(&self, decision: Decision) -> Result<CallToolResult, Stop> {
        let (env, record) = (self.cx.env(), &self.journal.last);
        let audience = self.gated.as_ref().map(|gated| &gated.gate.approve.audience);
        let reason = decision.reason(audience);
        let at = now(&env.profile);
        let until = at.saturating_add(record.denial_millis);
        denial::record(tasks(env)?, self.cx.principal().key(), record, &reason, until).await;
        let said = match decision.by {
            Some(by) => format!("by {by}: {reason}"),
            None => reason.clone(),
        };
        self.audit("denied", Some(said))?;
        Ok(text::denied(&reason, until, at))
    }

    /// Returns whether the approval covers another call or another definition.
    fn is_stale(&self) -> bool {
        self.gated
            .as_ref()
            .is_some_and(|gated| !self.journal.last.covers(&gated.digest, &gated.gate.definition))
    }

    /// Returns whether all people who approved saw the definition. A server that had another one, for
    /// example while servers were updated, could not show what runs.
    async fn was_definition_shown(&self) -> bool {
        let request = self.stored_request().await;
        request.is_none_or(|request| request.votes.iter().all(|vote| vote.saw_definition))
    }

    /// Returns the approval request with its votes, as the store has it.
    async fn stored_request(&self) -> Option<InputRequestDetail> {
        let people = self.cx.env().tasks.as_ref()?.people.as_ref()?;
        let (task, name) = (self.run.task_id()?, self.run.journal().inputs().approval_name());
        loop {
            match people.input_request(&task, &name).await {
                Ok(found) => return found,
                Err(error) => {
                    tracing::warn!(%error, "decision about a call cannot be read");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Opens another approval request, for the current definition.
    fn reissue(&mut self) -> Result<(), Stop> {
        let (env, Some(gated)) = (self.cx.env(), &self.gated) else { return Ok(()) };
        let config = &tasks(env)?.config;
        let record = gated.record(config, now(&env.profile), self.journal.last.next);
        let journal = self.run.journal();
        let request = gated.request(self.cx.call(), &record, Some(CHANGED)).map_err(Stop::Err)?;
        let raw = to_raw_value(&record).map_err(broken)?;
        self.journal.issued += 1;
        journal.put_marker(record_key(self.journal.issued), raw);
        journal.inputs().reissue_approval(request);
        journal.set_status_message(WAITS.to_owned());
        self.audit("reissued", Some(CHANGED.to_owned()))?;
        self.journal.last = record;
        Ok(())
    }

    /// Returns whether the tool has changed since the start of the run, whose handler is then not
    /// the one that the server has now.
    async fn has_tool_changed(&self) -> bool {
        let now = (self.tool.read)().await;
        let definition =
            |gate: &Option<Arc<Gate>>| gate.as_ref().map(|gate| gate.definition.clone());
        definition(&now) != definition(&self.tool.gate)
    }

    /// Ends the run. The next one has the definition that the tool then has, and starts after a
    /// decision or `after`.
    async fn end_run(&self, after: Duration) -> Result<(), Stop> {
        let (journal, run) = (self.run.journal(), run_id(self.cx.call()));
        let ended =
            poll_fn(|_| Poll::Ready(poll_as(run, || journal.yield_run(run, Some(after), None))));
        ended.await.map_err(broken)?;
        pending().await
    }

    /// Returns the reason why people decide again.
    fn reason(&self) -> Option<&'static str> {
        (self.journal.issued > 1).then_some(CHANGED)
    }

    /// Waits until the caller is present, if its client does not know the task.
    async fn wait_for_caller(&self) -> Result<(), Stop> {
        if self.journal.last.next == NextStep::Task || self.is_known().await {
            return Ok(());
        }
        let (journal, run) = (self.run.journal(), run_id(self.cx.call()));
        let within = Some((now(&self.cx.env().profile), self.journal.last.start_millis));
        let opened = poll_fn(|_| {
            let open = || journal.inputs().open_external_event(run, START, within);
            Poll::Ready(poll_as(run, open))
        });
        let opened = opened.await.map_err(broken)?;
        let polled = match opened.0 {
            InputPoll::Open => {
                journal.set_status_message(WAITS_FOR_CALLER.to_owned());
                match poll_fn(|task| journal.inputs().poll(START, task)).await {
                    Ok(polled) => polled,
                    Err(_) => pending().await,
                }
            }
            resolved => resolved,
        };
        // A pending result may have reached the client meanwhile.
        if matches!(polled, InputPoll::Answered(_)) || self.is_known().await {
            return Ok(());
        }
        self.audit("lapsed", None)?;
        Err(Ok(text::lapsed(self.journal.last.start_millis)))
    }

    /// Returns whether a pending result has told the client about the task.
    async fn is_known(&self) -> bool {
        let (Ok(tasks), Some(task)) = (self.cx.env().tasks(), self.run.task_id()) else {
            return false;
        };
        if self.journal.last.next != NextStep::Pending {
            return false;
        }
        let record = tasks.engine().store().get(self.cx.principal().key(), &task).await;
        // If the store does not respond, the caller announces itself, or the call lapses.
        record.is_ok_and(|record| record.is_some_and(|record| record.acknowledged))
    }

    /// Waits until a record is in the store.
    async fn written(&self, ticket: WriteTicket) -> Result<(), Stop> {
        let written = poll_fn(|task| self.run.journal().poll_written(ticket, task)).await;
        written.map_err(broken)
    }

    async fn free_place(&self) -> Result<(), Stop> {
        if let Some(place) = &self.journal.last.place {
            places::free(tasks(self.cx.env())?, place).await;
        }
        Ok(())
    }

    fn audit(&self, action: &'static str, reason: Option<String>) -> Result<(), Stop> {
        if let Some(task) = self.run.task_id() {
            tasks(self.cx.env())?.note(self.cx.call(), &task, action, reason);
        }
        Ok(())
    }
}

fn tasks(env: &Env) -> Result<&TaskBackend, Stop> {
    env.tasks().map_err(Stop::Err)
}

fn broken(error: impl fmt::Display) -> Stop {
    Err(ProtocolError::internal(error))
}

/// Returns the response of a call that needs no approval.
fn accepted() -> RawJson {
    RawValue::from_string(r#"{"action":"accept"}"#.into()).expect("the literal is valid JSON")
}
