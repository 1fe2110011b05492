//! Executes a call. Tools, prompts and resources use this entry.

use std::sync::Arc;

use outlive_protocol::{Call, CallFuture, ProtocolError, era};

use crate::server::{
    env::environment::Env,
    exec::{
        bridge::{WaitOptions, continue_round},
        executable::{Executable, Invocation},
        idempotency::IdempotencyGuard,
        join::{join_or_start, joins},
        plan::{ExecutionPlan, PlanError, ReplyMode, Start, TaskOffer, TaskRequest, is_bridged},
        promote, respond,
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
    if policy.is_plain() && !has_durable_params(&call, tasks.is_some()) {
        return Ok(plain(Cx::plain(call, env, arguments), hosts, invocation));
    }
    let round = match request_state::open(env, &call, &policy.replay)? {
        Some(Opened::Task(round)) => {
            let options = wait_options(hosts, &target);
            return Ok(Box::pin(continue_round(Arc::clone(env), call, round, options)));
        }
        Some(Opened::Run(run)) => Some(run),
        None => None,
    };
    let is_first = round.is_none();
    let offer = tasks.map(|tasks| TaskOffer::from(&tasks.config));
    let request = TaskRequest::read(&call, policy, offer, hosts)?;
    let plan = ExecutionPlan::decide(policy, &request, offer);
    let plan = plan.map_err(|error| rejected(&call, error))?;
    let guard = match tasks {
        Some(tasks) => IdempotencyGuard::new(env, tasks, &call, round.as_deref(), &target)?,
        None => None,
    };
    let run = round.unwrap_or_else(|| Arc::new(RunState::new(env, &call)));
    let bridge = match hosts.filter(|_| plan.reply == ReplyMode::Bridge) {
        Some(hosts) => {
            let bridged = BridgedCall::new(env, hosts, &call, &policy.replay)?;
            run.set_bridged(bridged.clone());
            let arrival = Arrival { round: run.rounds(), ..Arrival::first(env) };
            let joins = is_first && guard.is_none() && joins(hosts, &target);
            Some((bridged, arrival, joins))
        }
        None => None,
    };
    if policy.is_durable && matches!(plan.start, Start::PromoteAfter(_)) {
        run.allow_promotion(policy.promotes_at_step);
    }
    let cx = Cx::new(Arc::clone(&call), env, run, arguments);
    let work = start(plan, &cx, invocation, guard);
    let Some((bridged, arrival, joins)) = bridge else {
        return Ok(respond::with_mode(plan, cx, target, work));
    };
    let (options, env) = (wait_options(hosts, &target), Arc::clone(env));
    let work = respond::cut(cx.clone(), target, work);
    let work = Box::pin(respond::bridged(cx, arrival, options.clone(), Box::pin(work)));
    match joins {
        true => Ok(Box::pin(join_or_start(env, call, bridged, arrival, options, work))),
        false => Ok(work),
    }
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
) -> CallFuture {
    let target = Arc::clone(&invocation.target);
    match plan.start {
        Start::Task => promote::create_task(cx, &target, plan.task, guard),
        Start::Inline => guarded(guard, cx, invocation.start(cx)),
        Start::PromoteAfter(after) => {
            let key = guard.as_ref().map(IdempotencyGuard::key);
            let work = invocation.start(cx);
            guarded(guard, cx, promote::inline_then_task(cx, &target, work, after, plan.task, key))
        }
    }
}

/// Returns how a call of a tool waits for its task.
fn wait_options(hosts: Option<&Hosts>, target: &Executable) -> WaitOptions {
    let answers = hosts.map(|hosts| hosts.answers_of(target.policy.answers.as_deref()));
    WaitOptions {
        answers_by_tool: answers.is_some_and(|answers| answers.contains(&AnswerBy::Tool)),
        answers_by_link: answers.is_some_and(|answers| answers.contains(&AnswerBy::Link)),
        bound_args: target.policy.replay.bound_args.clone(),
        max_inline: target.policy.max_inline,
        rejects_pending: target.policy.rejects_pending_results,
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
/// key.
fn has_durable_params(call: &Call, has_tasks: bool) -> bool {
    call.request_state().is_some()
        || call.input_responses().is_some()
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
