//! Executes a call. Tools, prompts and resources use this entry.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError, era};
use outlive_wire::CallToolResult;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    exec::{
        bridge::WaitOptions,
        executable::{Executable, Invocation},
        gate::{self, binding::NextStep, denial::unless_denied, start::GatedCall, wait::GateWait},
        idempotency::IdempotencyGuard,
        join::{Join, join_or_start, join_policy},
        plan::{ExecutionPlan, PlanError, ReplyMode, Start, TaskOffer, TaskRequest, is_bridged},
        promote, respond,
        round::continue_round,
    },
    extract::cx::{Arguments, Cx},
    hosts::{AnswerBy, Hosts},
    run::{
        bridged::BridgedCall,
        request_state::{self, Opened},
        state::RunState,
    },
    tasks::attendance::Arrival,
};

/// Executes a call.
///
/// # Errors
///
/// Returns an error if the call is rejected before its handler starts.
pub(crate) fn execute(
    env: &Arc<Env>,
    call: Arc<Call>,
    invocation: Invocation,
    arguments: Arguments,
) -> Result<CallFuture, ProtocolError> {
    let target = Arc::clone(&invocation.target);
    let policy = &target.policy;
    let tasks = env.tasks.as_ref().filter(|_| policy.is_tool);
    let hosts = tasks.and_then(|tasks| tasks.config.hosts.as_ref());
    let gated = match &policy.gate {
        Some(gate) => GatedCall::new(env, &call, gate)?,
        None => None,
    };
    if gated.is_none() && policy.is_plain() && !has_durable_params(&call, tasks.is_some()) {
        return Ok(plain(Cx::plain(call, env, arguments), hosts, invocation));
    }
    let round = match request_state::open(env, &call, &policy.replay)? {
        Some(Opened::Task(round)) => {
            let options = wait_options(env, &call, &target);
            return Ok(Box::pin(continue_round(Arc::clone(env), call, round, options)));
        }
        Some(Opened::Run(run)) => Some(run),
        None => None,
    };
    if let Some(refused) = gated.as_ref().and_then(|gated| objection(gated, &call, &target)) {
        return Ok(refused);
    }
    let is_first = round.is_none();
    let offer = tasks.map(|tasks| TaskOffer::from(&tasks.config));
    let request = TaskRequest::read(&call, policy, offer, hosts)?;
    let plan = match call.rerun_of() {
        Some(_) => Ok(ExecutionPlan::rerun(gated.is_some())),
        None => ExecutionPlan::decide(policy, &request, offer, gated.is_some()),
    };
    let plan = plan.map_err(|error| rejected(&call, error))?;
    let guard = match tasks {
        Some(tasks) => IdempotencyGuard::new(env, tasks, &call, round.as_deref(), &target)?,
        None => None,
    };
    let run = round.unwrap_or_else(|| Arc::new(RunState::new(env, &call)));
    let bridge = match tasks.filter(|_| plan.reply == ReplyMode::Bridge) {
        Some(tasks) => {
            let may_join = is_first && guard.is_none();
            Some(Bridging::new(env, tasks, &call, &target, &run, may_join)?)
        }
        None => None,
    };
    if policy.is_durable && matches!(plan.start, Start::PromoteAfter(_)) {
        run.allow_promotion(policy.promotes_at_step);
    }
    let cx = Cx::new(Arc::clone(&call), env, run, arguments);
    let denial = gated.as_ref().map(|gated| (cx.clone(), gated.clone(), guard.clone()));
    let work = start(plan, &cx, invocation, guard, gated);
    let work = match bridge {
        None => respond::with_mode(plan, cx, target, work),
        Some(bridge) => bridge.wait(cx, call, target, work),
    };
    Ok(match denial {
        Some((cx, gated, guard)) => Box::pin(unless_denied(cx, gated, guard, work)),
        None => work,
    })
}

/// A call whose client does not receive the task: it waits.
struct Bridging {
    bridged: BridgedCall,
    arrival: Arrival,
    join: Join,
    options: WaitOptions,
}

impl Bridging {
    fn new(
        env: &Arc<Env>,
        tasks: &TaskBackend,
        call: &Arc<Call>,
        target: &Executable,
        run: &RunState,
        may_join: bool,
    ) -> Result<Self, ProtocolError> {
        let hosts = tasks.bridge_hosts();
        let bridged = BridgedCall::new(env, hosts, call, &target.policy.replay)?;
        run.set_bridged(bridged.clone());
        let arrival = Arrival { round: run.rounds(), ..Arrival::first(env) };
        let join = match may_join {
            true => join_policy(hosts, target),
            false => Join::Never,
        };
        Ok(Self { bridged, arrival, join, options: wait_options(env, call, target) })
    }

    /// Joins an equal run, or waits for the task that `work` creates.
    fn wait(
        self,
        cx: Cx,
        call: Arc<Call>,
        target: Arc<Executable>,
        work: CallFuture,
    ) -> CallFuture {
        let Self { bridged, arrival, join, options } = self;
        let env = Arc::clone(cx.env());
        let work = respond::cut(cx.clone(), target, work);
        let work = Box::pin(respond::bridged(cx, arrival, options.clone(), Box::pin(work)));
        match join {
            Join::Never => work,
            join => Box::pin(join_or_start(join, env, call, bridged, arrival, options, work)),
        }
    }
}

/// Returns the reply to a call that people could never approve.
fn objection(gated: &GatedCall, call: &Call, target: &Executable) -> Option<CallFuture> {
    let reason = gated.gate.objection(&target.name, call.principal().person())?;
    let refused = MethodResult::Tool(CallToolResult::error(reason));
    Some(Box::pin(ready(Ok(Outcome::Complete(refused)))))
}

/// Starts a call that needs no run. Cuts the result for a client without tasks.
fn plain(cx: Cx, hosts: Option<&Hosts>, invocation: Invocation) -> CallFuture {
    let target = Arc::clone(&invocation.target);
    let work = invocation.start(&cx);
    match hosts.is_some_and(|hosts| is_bridged(cx.call(), hosts)) {
        true => Box::pin(respond::cut(cx, target, work)),
        false => work,
    }
}

/// Starts a call as its plan says.
fn start(
    plan: ExecutionPlan,
    cx: &Cx,
    invocation: Invocation,
    guard: Option<IdempotencyGuard>,
    gated: Option<GatedCall>,
) -> CallFuture {
    let target = Arc::clone(&invocation.target);
    match plan.start {
        Start::Task => promote::create_task(cx, &target, plan.task, guard),
        // A waiting call occupies no permit.
        Start::Gated => match gated {
            Some(gated) => gate::start::create_task(cx, &target, gated, plan, guard),
            None => Box::pin(ready(Err(ProtocolError::internal("a gated call has no gate")))),
        },
        Start::Inline => guarded(guard, cx, invocation.start(cx)),
        Start::PromoteAfter(after) => {
            let key = guard.as_ref().map(IdempotencyGuard::key);
            let work = invocation.start(cx);
            guarded(guard, cx, promote::inline_then_task(cx, &target, work, after, plan.task, key))
        }
    }
}

/// Returns how a call of a tool waits for its task.
fn wait_options(env: &Env, call: &Call, target: &Executable) -> WaitOptions {
    let (tasks, policy) = (env.tasks.as_ref(), &target.policy);
    let hosts = tasks.and_then(|tasks| tasks.config.hosts.as_ref());
    let answers = hosts.map(|hosts| hosts.answers_of(policy.answers.as_deref()));
    let gate = tasks.filter(|_| policy.gate.is_some()).map(|tasks| GateWait::of(tasks, call));
    // Lists widen the output schema only for clients with fallback tools.
    let calls_again = gate.is_some_and(|gate| gate.next == NextStep::CallAgain);
    WaitOptions {
        gate,
        answers_by_tool: answers.is_some_and(|answers| answers.contains(&AnswerBy::Tool)),
        answers_by_link: answers.is_some_and(|answers| answers.contains(&AnswerBy::Link)),
        bound_args: policy.replay.bound_args.clone(),
        max_inline: policy.max_inline,
        rejects_pending: policy.rejects_pending_results || calls_again && policy.has_output_schema,
        ..WaitOptions::default()
    }
}

/// Makes a call take effect once under its idempotency key. Polls `work` only after the key is
/// reserved.
fn guarded(guard: Option<IdempotencyGuard>, cx: &Cx, work: CallFuture) -> CallFuture {
    match guard {
        None => work,
        Some(guard) => Box::pin(guard.run(cx.clone(), work)),
    }
}

/// Returns whether a call has a request state, input responses, a task request or an idempotency
/// key, or runs a task again.
fn has_durable_params(call: &Call, has_tasks: bool) -> bool {
    call.request_state().is_some()
        || call.input_responses().is_some()
        || call.rerun_of().is_some()
        || has_tasks && (call.requests_task() || call.idempotency_key().is_some())
}

fn rejected(call: &Call, error: PlanError) -> ProtocolError {
    match error {
        PlanError::TasksNotSupported => ProtocolError::Custom(outlive_wire::ErrorObject {
            code: outlive_wire::code::METHOD_NOT_FOUND,
            message: "this tool does not support tasks; call it without `params.task`".to_owned(),
            data: None,
        }),
        PlanError::TaskRequired => era::task_required(call.rules()),
    }
}
