//! A request that waits for the task of a gated call.

use outlive_protocol::{Call, MethodResult, Outcome, ProtocolError};
use outlive_tasks::{
    APPROVAL,
    store::{CancelOutcome, InboxItem, InputRequestState, TaskRecord},
};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::{
        gate::{
            binding::NextStep,
            text::{self, WAITS_FOR_CALLER},
        },
        plan::is_bridged,
    },
    run::bridged::scope,
    tasks::attendance::{Attendance, announce},
};

/// Wait of a request for an undecided call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateWait {
    /// Next step of the client after the wait.
    pub(crate) next: NextStep,
    /// Whether the next step would belong to any anonymous caller, so that the call is withdrawn.
    pub(crate) withdraws: bool,
}

impl GateWait {
    /// Returns how a bridged call of a gated tool waits.
    pub(crate) fn of(tasks: &TaskBackend, call: &Call) -> Self {
        let hosts = tasks.config.hosts.as_ref();
        let next = match hosts.is_some_and(|hosts| is_bridged(call, hosts)) {
            true => NextStep::Pending,
            false => NextStep::CallAgain,
        };
        Self { next, withdraws: next == NextStep::CallAgain && scope(call).is_none() }
    }
}

/// Returns the open approval request of a task. Its wire key depends on the number of reissues.
pub(crate) async fn open_approval(env: &Env, record: &TaskRecord) -> Option<InboxItem> {
    let people = env.tasks.as_ref()?.people.as_ref()?;
    let mut number = 1;
    loop {
        let found = people.input_request(&record.id, &approval_name(number)).await;
        match found.ok().flatten()?.item {
            item if item.state == InputRequestState::Open => return Some(item),
            _ => number += 1,
        }
    }
}

/// Returns the wire key of an approval request, by its number.
fn approval_name(number: u32) -> String {
    match number {
        1 => APPROVAL.to_owned(),
        number => format!("{APPROVAL}#{number}"),
    }
}

/// Tells an approved task that its caller is present, if the task waits for that.
pub(crate) async fn announce_caller(tasks: &TaskBackend, call: &Call, record: &TaskRecord) {
    if record.status_message.as_deref() != Some(WAITS_FOR_CALLER) {
        return;
    }
    if let Err(error) = announce(tasks, call, &record.id).await {
        tracing::debug!(%error, "presence of a caller cannot be stored");
    }
}

/// Withdraws an undecided call that its caller cannot continue. Returns `None` if people decided
/// meanwhile.
pub(crate) async fn withdraw(
    tasks: &TaskBackend,
    attendance: &Attendance,
    record: &TaskRecord,
) -> Result<Option<Outcome>, ProtocolError> {
    let call = attendance.call();
    let cancelled = tasks.engine().cancel(call.principal().key(), &record.id, false).await;
    if cancelled.map_err(|error| unavailable(&error))? != Some(CancelOutcome::Cancelled) {
        return Ok(None);
    }
    tasks.quotas.leave(&record.id);
    let reason = Some("withdrawn: its anonymous caller cannot continue it".to_owned());
    tasks.note(call, &record.id, "cancelled", reason);
    let result = text::cannot_continue(&record.tool);
    Ok(Some(Outcome::Complete(MethodResult::Tool(result))))
}
