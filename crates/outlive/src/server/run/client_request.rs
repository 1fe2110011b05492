//! An input request that was sent to the client of a legacy session.
//!
//! A client that supports it may respond with a task. The server then polls that task at the
//! client's poll interval and fetches its result. This works only while the call that the request
//! belongs to is open.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use outlive_protocol::{Call, ClientReply, Notify, PendingRequest, Session, era};
use outlive_wire::{ElicitRequestParams, ErrorObject, InputRequest, Method, RawJson, code};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::server::env::environment::Env;

/// TTL that the server requests for a task that the client hosts.
const TTL: Duration = Duration::from_secs(3600);

/// Poll interval in milliseconds, if the client's task has none.
const POLL: u64 = 1_000;

/// An input request that was sent.
pub(crate) struct ClientRequest {
    call: Arc<Call>,
    env: Arc<Env>,
    session: Arc<Session>,
    /// Whether the request allows the client to respond with a task.
    wants_task: bool,
    stage: Stage,
    /// ID of the client's task, if it created one.
    task: Option<String>,
}

enum Stage {
    /// Waits for the response, or for a task.
    Asked(PendingRequest),
    /// Waits for the next poll.
    Pausing(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Waits for the response to `tasks/get`.
    Looking(PendingRequest),
    /// Waits for the response to `tasks/result`.
    Fetching(PendingRequest),
}

/// The members of a client's task that the server uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    status: String,
    poll_interval: Option<u64>,
}

#[derive(Deserialize)]
struct Created {
    task: Task,
}

impl ClientRequest {
    /// Sends an input request to the client of a call. Returns `None` if the call has no session.
    pub(crate) fn send(
        env: &Arc<Env>,
        call: &Arc<Call>,
        mut request: InputRequest,
    ) -> Option<Self> {
        let session = call.session()?;
        let wants_task = era::hosts_task(call, &request) && augment(&mut request);
        let pending = env.open_request(session);
        let notify = Notify::Ask { id: pending.id(), request: Box::new(request) };
        let put = Self {
            call: Arc::clone(call),
            env: Arc::clone(env),
            session: Arc::clone(session),
            wants_task,
            stage: Stage::Asked(pending),
            task: None,
        };
        put.say(notify);
        Some(put)
    }

    fn say(&self, notify: Notify) {
        self.call.port().send(notify, self.env.profile.limits.max_queued_notifications);
    }

    /// Waits for the response. Returns ready once.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ClientReply> {
        loop {
            let next = match &mut self.stage {
                Stage::Asked(pending) => match ready!(pending.poll_reply(cx)) {
                    Ok(reply) if self.wants_task => match read::<Created>(&reply) {
                        Some(Created { task }) => self.hosted(task),
                        // The client may respond without a task.
                        None => return Poll::Ready(Ok(reply)),
                    },
                    reply => return Poll::Ready(reply),
                },
                Stage::Pausing(timer) => {
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    Stage::Looking(self.ask_of_task(Method::TasksGet))
                }
                Stage::Looking(pending) => match ready!(pending.poll_reply(cx)) {
                    Ok(reply) => match read::<Task>(&reply) {
                        Some(task) => self.hosted(task),
                        None => return Poll::Ready(Err(no_task())),
                    },
                    error => return Poll::Ready(error),
                },
                Stage::Fetching(pending) => return pending.poll_reply(cx),
            };
            self.stage = next;
        }
    }

    /// Withdraws the request, or cancels the client's task.
    pub(crate) fn withdraw(&self, reason: &'static str) {
        match &self.stage {
            Stage::Asked(pending) => {
                self.say(Notify::Withdraw { id: pending.id(), reason });
            }
            _ => drop(self.ask_of_task(Method::TasksCancel)),
        }
    }

    /// Continues with the state of the client's task.
    fn hosted(&mut self, task: Task) -> Stage {
        self.task = Some(task.task_id);
        match task.status.as_str() {
            "completed" | "failed" | "cancelled" => {
                Stage::Fetching(self.ask_of_task(Method::TasksResult))
            }
            _ => {
                let pause = task.poll_interval.unwrap_or(POLL).max(1);
                Stage::Pausing(self.env.profile.clock.sleep(Duration::from_millis(pause)))
            }
        }
    }

    fn ask_of_task(&self, method: Method) -> PendingRequest {
        let pending = self.env.open_request(&self.session);
        let task = self.task.clone().unwrap_or_default();
        self.say(Notify::AskTask { id: pending.id(), method, task });
        pending
    }
}

/// Adds a task request to the input request. Returns `false` if its kind does not support tasks.
fn augment(request: &mut InputRequest) -> bool {
    let millis = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
    let Ok(task) = to_raw_value(&serde_json::json!({"ttl": millis})) else { return false };
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => form.task = Some(task),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => url.task = Some(task),
        InputRequest::CreateMessage(params) => params.task = Some(task),
        _ => return false,
    }
    true
}

fn read<'a, T: Deserialize<'a>>(reply: &'a RawJson) -> Option<T> {
    serde_json::from_str(reply.get()).ok()
}

fn no_task() -> ErrorObject {
    let message = "the client's response to `tasks/get` is not a task".to_owned();
    ErrorObject { code: code::INTERNAL, message, data: None }
}
