//! The start of a gated call: one commit creates the task and its approval request.
//!
//! The task is parked. A decision queues it, and `pass` decides whether its handler starts.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use outlive_tasks::{
    APPROVAL, ApprovalRequest,
    engine::CreateError,
    store::{Binding, EndAudit, NewInputRequest},
};

use crate::server::{
    audit_name::name_in_audit,
    config::TaskConfig,
    env::{environment::Env, task_error::unknown_task},
    exec::{
        executable::Executable,
        gate::{
            binding::{GateRecord, NextStep, call_digest, denial_key},
            places,
            policy::Gate,
            text::WAITS,
            wait::GateWait,
        },
        idempotency::IdempotencyGuard,
        plan::{ExecutionPlan, ReplyMode, TaskOptions},
        promote::{create_error, new_task, store},
        task_reply::{created, existing},
    },
    extract::cx::Cx,
    run::{journal_offload, state::RunState},
    time::{millis, now},
};

/// A call that needs approval.
#[derive(Clone)]
pub(crate) struct GatedCall {
    pub(crate) gate: Arc<Gate>,
    /// Digest of the call.
    pub(crate) digest: String,
    /// Denial key of this call, which is also the key-value key of its standing denial.
    pub(crate) denial: String,
}

impl GatedCall {
    /// Returns the gate of a call, or `None` if the rule does not cover the call.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments are ambiguous.
    pub(crate) fn new(
        env: &Env,
        call: &Call,
        gate: &Arc<Gate>,
    ) -> Result<Option<Self>, ProtocolError> {
        if !gate.covers(&call.name()?, call.arguments()?)? {
            return Ok(None);
        }
        let digest = call_digest(env, call)?;
        let (gate, denial) = (Arc::clone(gate), denial_key(call, &digest));
        Ok(Some(Self { gate, digest, denial }))
    }

    /// Returns the record of an approval request that is opened at `at`.
    pub(crate) fn record(&self, config: &TaskConfig, at: u64, next: NextStep) -> GateRecord {
        let approve = &self.gate.approve;
        let decision_millis = millis(approve.decision_timeout.min(config.max_ttl));
        GateRecord {
            digest: self.digest.clone(),
            definition: self.gate.definition.clone(),
            due: at.saturating_add(decision_millis),
            decision_millis,
            start_millis: millis(approve.start_timeout),
            next,
            denial: self.denial.clone(),
            denial_millis: millis(approve.denial_ttl),
            place: None,
        }
    }

    /// Returns the approval request of a record. `reason` says why people decide again.
    pub(crate) fn request(
        &self,
        call: &Call,
        record: &GateRecord,
        reason: Option<&str>,
    ) -> Result<ApprovalRequest, ProtocolError> {
        let arguments = call.arguments()?;
        let binding = Binding::new(record.digest.as_str(), record.definition.as_str());
        let binding = binding.count(self.gate.approve.count).denial(Some(record.denial.clone()));
        Ok(ApprovalRequest {
            request: self.gate.request(arguments, reason),
            audience: self.gate.approve.audience.clone(),
            due: record.due,
            binding,
        })
    }
}

/// Creates the task of a gated call.
pub(crate) fn create_task(
    cx: &Cx,
    target: &Arc<Executable>,
    gated: GatedCall,
    plan: ExecutionPlan,
    guard: Option<IdempotencyGuard>,
) -> CallFuture {
    let (cx, run) = cx.with_run();
    let (target, options) = (Arc::clone(target), plan.task);
    let next = match (plan.reply, &cx.env().tasks) {
        (ReplyMode::Bridge, Some(tasks)) => GateWait::of(tasks, cx.call()).next,
        _ => NextStep::Task,
    };
    Box::pin(async move { create(&cx, &run, &target, &gated, next, options, guard).await })
}

async fn create(
    cx: &Cx,
    run: &RunState,
    target: &Executable,
    gated: &GatedCall,
    next: NextStep,
    options: TaskOptions,
    guard: Option<IdempotencyGuard>,
) -> Result<Outcome, ProtocolError> {
    if let Some(guard) = &guard
        && let Some(done) = guard.done(cx).await?
    {
        return Ok(done);
    }
    let key = guard.map(|guard| guard.key());
    // The journal of earlier rounds is part of the task.
    journal_offload::fetch(cx.env(), run).await?;
    let tasks = cx.env().tasks()?;
    let mut task = new_task(cx, target, options, key, run.snapshot(cx.env()))?;
    let (id, ttl) = (task.id.clone(), task.ttl);
    let mut record = gated.record(&tasks.config, now(&cx.env().profile), next);
    let request = gated.request(cx.call(), &record, None)?;
    let (max_open, open) = (gated.gate.approve.max_open, record.decision_millis);
    let place = places::take(cx, &id, max_open, Duration::from_millis(open)).await?;
    record.place = Some(place.clone());
    record.sign(&mut task.journal)?;
    let name = name_in_audit(&task.principal, id.as_str());
    let task = task
        .input_requests(vec![stored(request)])
        .status_message(Some(WAITS.to_owned()))
        .end_audit(Some(EndAudit::new(name, tasks.config.audit_retention)));
    let result = match tasks.admit(cx.call(), &task).await {
        Ok(()) => store(cx, run, tasks.engine(), task).await,
        Err(error) => {
            places::free(tasks, &place).await;
            return Err(error);
        }
    };
    if result.is_err() {
        tasks.not_created(&id);
        places::free(tasks, &place).await;
    }
    match result {
        Ok(task) => {
            tasks.note(cx.call(), &id, "input-requested", Some("approval".to_owned()));
            let mut outcome = created(tasks, target, ttl, task);
            if let Outcome::Task(view) = &mut outcome {
                view.message = Some(WAITS.to_owned());
            }
            Ok(outcome)
        }
        Err(CreateError::Existing(id)) => existing(cx, target, &id).await?.ok_or_else(unknown_task),
        Err(error) => Err(create_error(tasks, cx.call(), error)),
    }
}

/// Returns the first approval request of a task in the form for the store.
fn stored(approval: ApprovalRequest) -> NewInputRequest {
    let ApprovalRequest { request, audience, due, binding } = approval;
    NewInputRequest::new(APPROVAL, APPROVAL, Some(request))
        .audience(audience)
        .due(Some(due))
        .binding(Some(binding))
}
