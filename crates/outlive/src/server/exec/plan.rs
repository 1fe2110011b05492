//! Decides how a call is executed.
//!
//! [`ExecutionPlan::decide`] is pure: it depends on the policy of the tool, the request of the client and the offer of the server. A table test covers the combinations.

use std::time::Duration;

use outlive_protocol::{Call, ClientTaskSupport, ProtocolError, ResponseModes, era};
use outlive_wire::ClientCapabilities;

use crate::server::{
    config::TaskConfig,
    exec::executable::ExecPolicy,
    hosts::{Hosts, client::Client},
    policy::TaskPolicy,
};

/// Execution plan of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionPlan {
    pub(crate) start: Start,
    pub(crate) task: TaskOptions,
    pub(crate) reply: ReplyMode,
}

/// Start of a call's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// In the call, until it ends.
    Inline,
    /// In the call, which is promoted to a task after this time.
    PromoteAfter(Duration),
    /// In a task.
    Task,
    /// In a task, after people have approved the call.
    Gated,
}

/// Task options that the client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskOptions {
    /// Requested TTL in milliseconds.
    pub(crate) ttl: Option<u64>,
    /// Whether the call receives the segments of the task as they are emitted.
    pub(crate) streaming: bool,
}

/// Form of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// One response with the outcome of the call.
    Single,
    /// The result of the call, or of its task: the client has no tasks, and the call waits.
    Bridge,
    /// The response modes that client and server negotiated, in a dialect of 2025-11-25.
    Negotiated {
        /// Whether several responses with the segments of the task follow.
        streaming: bool,
        /// Whether the client receives a task although it requested another mode.
        fell_back: bool,
    },
}

/// Task request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRequest {
    pub(crate) support: ClientTaskSupport,
    /// Response modes that the call requests.
    pub(crate) modes: Option<ResponseModes>,
    /// Whether the client has no tasks and the server bridges its calls.
    pub(crate) is_bridged: bool,
}

/// Task support that a server offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskOffer {
    pub(crate) modes: Option<ResponseModes>,
    /// Time after which a call that allows an immediate result becomes a task.
    pub(crate) immediate_window: Duration,
}

/// Reason why a call cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanError {
    /// The client requests a task of a tool that does not support tasks.
    TasksNotSupported,
    /// The tool always runs as a task, and the client does not support tasks.
    TaskRequired,
}

impl From<&TaskConfig> for TaskOffer {
    fn from(config: &TaskConfig) -> Self {
        Self { modes: config.modes, immediate_window: config.immediate_window }
    }
}

impl TaskRequest {
    /// Reads the task request of a call. Skips the work if the request cannot affect the plan.
    pub(crate) fn read(
        call: &Call,
        policy: &ExecPolicy,
        offer: Option<TaskOffer>,
        hosts: Option<&Hosts>,
    ) -> Result<Self, ProtocolError> {
        let never = policy.task == TaskPolicy::Never;
        let Some(offer) = offer.filter(|_| !never || call.requests_task()) else {
            let support = ClientTaskSupport::Unsupported;
            return Ok(Self { support, modes: None, is_bridged: false });
        };
        let request = era::codec(call.rules().era).task_request(call)?;
        let support = request.support;
        let requests = !never && matches!(support, ClientTaskSupport::Requests { .. });
        let modes = match requests && offer.modes.is_some() {
            true => request.response_modes?,
            false => None,
        };
        if modes.is_some() && !has_declared(call) {
            tracing::debug!("client requests response modes that it did not declare");
        }
        let is_bridged = hosts.is_some_and(|hosts| !never && !has_tasks(call, &support, hosts));
        Ok(Self { support, modes, is_bridged })
    }
}

/// Returns whether the client of a call supports tasks, and so is not bridged.
fn has_tasks(call: &Call, support: &ClientTaskSupport, hosts: &Hosts) -> bool {
    match support {
        ClientTaskSupport::Unsupported | ClientTaskSupport::NotDeclared => false,
        ClientTaskSupport::NotRequested => {
            declared(call).tasks.is_some() || hosts.limits(&Client::from_call(call)).has_tasks
        }
        ClientTaskSupport::Accepts | ClientTaskSupport::Requests { .. } => true,
    }
}

/// Returns whether a call of a tool with tasks is bridged: its client has none.
pub(crate) fn is_bridged(call: &Call, hosts: &Hosts) -> bool {
    let request = era::codec(call.rules().era).task_request(call);
    request.is_ok_and(|request| !has_tasks(call, &request.support, hosts))
}

fn declared(call: &Call) -> ClientCapabilities {
    serde_json::from_str(call.client_capabilities()).unwrap_or_default()
}

/// Returns whether the client declared support for response modes.
fn has_declared(call: &Call) -> bool {
    declared(call).tasks.is_some_and(|tasks| tasks["responses"]["modes"].is_array())
}

impl ExecutionPlan {
    const INLINE: Self = Self::new(Start::Inline);

    const fn new(start: Start) -> Self {
        let task = TaskOptions { ttl: None, streaming: false };
        Self { start, task, reply: ReplyMode::Single }
    }

    /// Decides how a call is executed. `offer` is `None` on a server without tasks.
    pub(crate) fn decide(
        policy: &ExecPolicy,
        request: &TaskRequest,
        offer: Option<TaskOffer>,
        is_gated: bool,
    ) -> Result<Self, PlanError> {
        if is_gated {
            return Self::gated(policy, request, offer);
        }
        let Some(offer) = offer else { return Ok(Self::INLINE) };
        if request.is_bridged {
            return Ok(Self::bridged(policy.task));
        }
        match (policy.task, &request.support) {
            (TaskPolicy::Never, ClientTaskSupport::Requests { .. }) => {
                Err(PlanError::TasksNotSupported)
            }
            (TaskPolicy::Never, _) | (_, ClientTaskSupport::Unsupported) => Ok(Self::INLINE),
            (_, ClientTaskSupport::Requests { ttl }) => {
                Ok(Self::requested(*ttl, policy.streams_content, request.modes, offer))
            }
            (TaskPolicy::Auto { after }, ClientTaskSupport::Accepts) => {
                Ok(Self::new(Start::PromoteAfter(after)))
            }
            (TaskPolicy::Auto { .. }, _) => Ok(Self::INLINE),
            (TaskPolicy::Always, ClientTaskSupport::Accepts) => Ok(Self::new(Start::Task)),
            (TaskPolicy::Always, _) => Err(PlanError::TaskRequired),
        }
    }

    /// Returns the plan of a call that runs a task again: the person who starts it waits for no
    /// result.
    pub(crate) fn rerun(is_gated: bool) -> Self {
        Self::new(if is_gated { Start::Gated } else { Start::Task })
    }

    /// Returns the plan of a call whose client has no tasks.
    fn bridged(policy: TaskPolicy) -> Self {
        let start = match policy {
            TaskPolicy::Never => return Self::INLINE,
            TaskPolicy::Auto { after } => Start::PromoteAfter(after),
            TaskPolicy::Always => Start::Task,
        };
        Self { reply: ReplyMode::Bridge, ..Self::new(start) }
    }

    /// Returns the plan of a call that needs approval. It is a task from the start, for every
    /// client. A client that does not receive the task waits as a bridged call.
    fn gated(
        policy: &ExecPolicy,
        request: &TaskRequest,
        offer: Option<TaskOffer>,
    ) -> Result<Self, PlanError> {
        let gated = Self::new(Start::Gated);
        match (policy.task, &request.support, offer) {
            (TaskPolicy::Never, ClientTaskSupport::Requests { .. }, _) => {
                Err(PlanError::TasksNotSupported)
            }
            (TaskPolicy::Never, ..) => Ok(Self { reply: ReplyMode::Bridge, ..gated }),
            (_, ClientTaskSupport::Requests { ttl }, Some(offer)) => {
                let plan = Self::requested(*ttl, policy.streams_content, request.modes, offer);
                Ok(Self { start: Start::Gated, ..plan })
            }
            (_, ClientTaskSupport::Accepts | ClientTaskSupport::Requests { .. }, _) => Ok(gated),
            _ => Ok(Self { reply: ReplyMode::Bridge, ..gated }),
        }
    }

    /// Returns the plan of a call that requests a task.
    fn requested(
        ttl: Option<u64>,
        streams_content: bool,
        wanted: Option<ResponseModes>,
        offer: TaskOffer,
    ) -> Self {
        let (Some(offered), Some(wanted)) = (offer.modes, wanted) else {
            let task = TaskOptions { ttl, streaming: false };
            return Self { task, ..Self::new(Start::Task) };
        };
        let immediate = offered.immediate && wanted.immediate;
        let streaming = offered.streaming && wanted.streaming && streams_content;
        // A client that requested another mode learns that it receives a task.
        let fell_back = !streaming && (wanted.streaming || !wanted.task);
        let start = match immediate {
            true => Start::PromoteAfter(offer.immediate_window),
            false => Start::Task,
        };
        let reply = match immediate || streaming || fell_back {
            true => ReplyMode::Negotiated { streaming, fell_back },
            false => ReplyMode::Single,
        };
        Self { start, task: TaskOptions { ttl, streaming }, reply }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlive_protocol::{ClientTaskSupport, ResponseModes};

    use super::{ExecutionPlan, PlanError, ReplyMode, Start, TaskOffer, TaskRequest};
    use crate::server::{exec::executable::ExecPolicy, policy::TaskPolicy};

    const AFTER: Duration = Duration::from_secs(2);
    const WINDOW: Duration = Duration::from_millis(100);

    fn modes(names: &[&str]) -> ResponseModes {
        let has = |name| names.contains(&name);
        ResponseModes {
            immediate: has("immediate"),
            streaming: has("streaming"),
            task: has("task"),
        }
    }

    fn decide(
        task: TaskPolicy,
        streams_content: bool,
        request: &TaskRequest,
        offered: Option<&[&str]>,
    ) -> Result<ExecutionPlan, PlanError> {
        let policy = ExecPolicy { task, streams_content, ..ExecPolicy::default() };
        let offer = TaskOffer { modes: offered.map(modes), immediate_window: WINDOW };
        ExecutionPlan::decide(&policy, request, Some(offer), false)
    }

    /// Combines every policy with every kind of client: legacy clients without tasks
    /// (`Unsupported`), clients of 2025-11-25 with and without `params.task`, and modern clients
    /// that do not declare or do accept tasks.
    #[test]
    fn plan_for_every_policy_and_client_matches_table() {
        use ClientTaskSupport::{Accepts, NotDeclared, NotRequested, Requests, Unsupported};
        const REQUESTS: ClientTaskSupport = Requests { ttl: Some(7) };
        let clients = [Unsupported, NotDeclared, NotRequested, Accepts, REQUESTS];
        let (inline, task) = (Ok(Start::Inline), Ok(Start::Task));
        let promote = Ok(Start::PromoteAfter(AFTER));
        let (none, required) = (Err(PlanError::TasksNotSupported), Err(PlanError::TaskRequired));
        for (policy, expected) in [
            (TaskPolicy::Never, [inline, inline, inline, inline, none]),
            (TaskPolicy::Auto { after: AFTER }, [inline, inline, inline, promote, task]),
            (TaskPolicy::Always, [inline, required, required, task, task]),
        ] {
            for (support, expected) in clients.iter().zip(expected) {
                let request =
                    TaskRequest { support: support.clone(), modes: None, is_bridged: false };
                for streams_content in [false, true] {
                    let plan = decide(policy, streams_content, &request, None);
                    assert_eq!(plan.map(|plan| plan.start), expected, "{policy:?} {support:?}");
                    if let Ok(plan) = plan {
                        assert_eq!(plan.reply, ReplyMode::Single, "{policy:?} {support:?}");
                        let ttl = (*support == REQUESTS).then_some(7);
                        assert_eq!((plan.task.ttl, plan.task.streaming), (ttl, false));
                    }
                }
            }
        }
    }

    #[test]
    fn plan_of_client_without_tasks_waits_for_task() {
        let auto = TaskPolicy::Auto { after: AFTER };
        for (policy, start, reply) in [
            (TaskPolicy::Never, Start::Inline, ReplyMode::Single),
            (auto, Start::PromoteAfter(AFTER), ReplyMode::Bridge),
            (TaskPolicy::Always, Start::Task, ReplyMode::Bridge),
        ] {
            for support in [ClientTaskSupport::Unsupported, ClientTaskSupport::NotDeclared] {
                let request = TaskRequest { support, modes: None, is_bridged: true };
                let plan = decide(policy, false, &request, None).unwrap();
                assert_eq!((plan.start, plan.reply), (start, reply), "{policy:?}");
            }
        }
    }

    #[test]
    fn plan_without_task_store_is_inline() {
        for task in [TaskPolicy::Never, TaskPolicy::Auto { after: AFTER }, TaskPolicy::Always] {
            let policy = ExecPolicy { task, ..ExecPolicy::default() };
            let support = ClientTaskSupport::Accepts;
            let plan = ExecutionPlan::decide(
                &policy,
                &TaskRequest { support, modes: None, is_bridged: false },
                None,
                false,
            );
            assert_eq!(plan, Ok(ExecutionPlan::INLINE));
        }
    }

    /// Combines every policy with every kind of client, for a call that needs approval.
    #[test]
    fn plan_of_gated_call_is_gated_task_for_every_client() {
        use ClientTaskSupport::{Accepts, NotDeclared, NotRequested, Requests, Unsupported};
        let clients = [Unsupported, NotDeclared, NotRequested, Accepts, Requests { ttl: Some(7) }];
        let (single, bridge) = (Ok(ReplyMode::Single), Ok(ReplyMode::Bridge));
        let none = Err(PlanError::TasksNotSupported);
        for (task, expected) in [
            (TaskPolicy::Never, [bridge, bridge, bridge, bridge, none]),
            (TaskPolicy::Auto { after: AFTER }, [bridge, bridge, bridge, single, single]),
            (TaskPolicy::Always, [bridge, bridge, bridge, single, single]),
        ] {
            for (support, expected) in clients.iter().zip(expected) {
                for (is_bridged, has_offer) in [(false, true), (true, true), (false, false)] {
                    let policy = ExecPolicy { task, ..ExecPolicy::default() };
                    let request = TaskRequest { support: support.clone(), modes: None, is_bridged };
                    let offer = TaskOffer { modes: None, immediate_window: WINDOW };
                    let offer = has_offer.then_some(offer);
                    let plan = ExecutionPlan::decide(&policy, &request, offer, true);
                    assert_eq!(plan.map(|plan| plan.reply), expected, "{task:?} {support:?}");
                    if let Ok(plan) = plan {
                        assert_eq!(plan.start, Start::Gated, "{task:?} {support:?}");
                        let requests = has_offer && matches!(support, Requests { .. });
                        assert_eq!(plan.task.ttl, requests.then_some(7));
                    }
                }
            }
        }
    }

    #[test]
    fn gated_call_with_response_modes_still_waits_for_approval() {
        let support = ClientTaskSupport::Requests { ttl: None };
        let wanted = Some(modes(&["immediate", "streaming"]));
        let request = TaskRequest { support, modes: wanted, is_bridged: false };
        let policy =
            ExecPolicy { task: TaskPolicy::Always, streams_content: true, ..ExecPolicy::default() };
        let all = modes(&["immediate", "streaming", "task"]);
        let offer = TaskOffer { modes: Some(all), immediate_window: WINDOW };
        let plan = ExecutionPlan::decide(&policy, &request, Some(offer), true).unwrap();
        assert_eq!(plan.start, Start::Gated);
        assert_eq!(plan.reply, ReplyMode::Negotiated { streaming: true, fell_back: false });
    }

    /// Compares the negotiated modes with letters: `i`mmediate, `s`treaming, and `w` for a
    /// fallback.
    #[track_caller]
    fn check(offered: &[&str], wanted: &[&str], streams_content: bool, negotiated: &str) {
        let support = ClientTaskSupport::Requests { ttl: None };
        let request = TaskRequest { support, modes: Some(modes(wanted)), is_bridged: false };
        let auto = TaskPolicy::Auto { after: AFTER };
        let plan = decide(auto, streams_content, &request, Some(offered)).unwrap();
        let immediate = plan.start == Start::PromoteAfter(WINDOW);
        let (streaming, fell_back) = match plan.reply {
            ReplyMode::Single | ReplyMode::Bridge => (false, false),
            ReplyMode::Negotiated { streaming, fell_back } => (streaming, fell_back),
        };
        assert_eq!(plan.task.streaming, streaming);
        let letters = [(immediate, 'i'), (streaming, 's'), (fell_back, 'w')];
        let letters: String = letters.iter().filter(|(is, _)| *is).map(|(_, c)| *c).collect();
        assert_eq!(letters, negotiated, "{offered:?} {wanted:?} {streams_content}");
    }

    // S-04, S-05, S-07, S-13, S-16
    #[test]
    fn reply_mode_is_intersection_of_client_server_and_tool() {
        let all = ["immediate", "streaming", "task"];
        check(&all, &["task"], true, "");
        check(&all, &["immediate"], true, "iw");
        check(&all, &["immediate", "task"], true, "i");
        check(&all, &["streaming"], true, "s");
        check(&all, &["task", "streaming", "immediate"], true, "is");
        check(&all, &["streaming", "task"], false, "w");
        check(&all, &["immediate", "streaming"], false, "iw");
        check(&all, &[], true, "w");
        check(&["immediate", "task"], &["streaming"], true, "w");
        check(&["streaming", "task"], &["immediate", "streaming"], true, "s");
        check(&["streaming", "task"], &["immediate", "task"], true, "");
    }
}
