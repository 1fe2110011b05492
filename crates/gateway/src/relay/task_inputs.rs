//! Input requests of an upstream's task since 2026-07-28: they are carried to the client, and their
//! responses are sent until the upstream accepts them.
//!
//! No exchange is open meanwhile. A later run finds the responses in the journal.

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use outlive::{
    server::{Error, Result, durable::DurableError},
    wire::{InputRequest, InputRequests, RawJson},
};
use serde_json::{json, value::to_raw_value};

use super::{
    carry::with_source,
    input_keys::short,
    join::Branch,
    journal::{Tracked, UpstreamTask},
    outage::Outage,
    task_requests::{TaskRequests, is_outage, retry_after},
};
use crate::excerpt::excerpt;

/// Input requests that are open in one task.
const MAX_OPEN: usize = 32;

/// Responses to one input request that an upstream may reject.
const MAX_ATTEMPTS: u32 = 16;

/// The input requests of one task.
pub(super) struct TaskInputs<'a> {
    tracked: Tracked<'a>,
    requests: TaskRequests,
    /// When the task of the upstream expires, from now.
    remaining: Option<Duration>,
    open: Vec<OpenInput<'a>>,
    /// Keys whose response the upstream has accepted.
    accepted: HashSet<String>,
    /// Rejected responses by key.
    rejected: HashMap<String, u32>,
}

struct OpenInput<'a> {
    key: String,
    /// Returns whether the upstream accepted the response.
    branch: Branch<'a, Result<bool>>,
}

impl<'a> TaskInputs<'a> {
    pub(super) fn new(tracked: Tracked<'a>, requests: TaskRequests, task: &UpstreamTask) -> Self {
        Self {
            tracked,
            requests,
            remaining: task.remaining(),
            open: Vec::new(),
            accepted: HashSet::new(),
            rejected: HashMap::new(),
        }
    }

    /// Returns whether an input request is open.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Carries the new input requests of a state of the task. Those that it no longer lists are
    /// withdrawn from the client.
    pub(super) fn update(&mut self, listed: Option<InputRequests>) {
        let listed = listed.unwrap_or_default();
        self.open.retain(|open| listed.0.iter().any(|(key, _)| *key == open.key));
        for (key, request) in listed.0 {
            let is_known =
                self.accepted.contains(&key) || self.open.iter().any(|open| open.key == key);
            if is_known || self.open.len() >= MAX_OPEN {
                continue;
            }
            let attempt = self.rejected.get(&key).copied().unwrap_or_default();
            let branch = Box::pin(respond(
                self.tracked,
                self.requests.clone(),
                (key.clone(), attempt),
                request,
                self.remaining,
            ));
            self.open.push(OpenInput { key, branch });
        }
    }

    /// Completes when the upstream has accepted or rejected a response. Pending without open input
    /// requests. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the call cannot continue without the input.
    pub(super) async fn next(&mut self) -> Result<()> {
        let (key, accepted) = poll_fn(|cx| self.poll(cx)).await;
        match accepted? {
            true => {
                self.accepted.insert(key);
            }
            false => {
                let rejected = self.rejected.entry(key).or_default();
                *rejected += 1;
                if *rejected >= MAX_ATTEMPTS {
                    let name = self.tracked.reached.name();
                    return Err(Error::new(format!(
                        "upstream `{name}` rejected {MAX_ATTEMPTS} responses to one input request"
                    )));
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(String, Result<bool>)> {
        for at in 0..self.open.len() {
            if let Poll::Ready(accepted) = self.open[at].branch.as_mut().poll(cx) {
                return Poll::Ready((self.open.swap_remove(at).key, accepted));
            }
        }
        Poll::Pending
    }
}

/// Gets the input from the client, and sends it to the upstream.
async fn respond(
    tracked: Tracked<'_>,
    requests: TaskRequests,
    (key, attempt): (String, u32),
    request: InputRequest,
    remaining: Option<Duration>,
) -> Result<bool> {
    let cx = tracked.cx;
    let settings = tracked.reached.member.settings();
    let is_elicitation = matches!(request, InputRequest::Elicit(_));
    let request = with_source(request, settings.shown_prefix());
    let place = format!("{}/{attempt}/{}", tracked.number, short(&key));
    let input = cx.request_input(("task-input", &place), request);
    let response = match remaining {
        // After that the upstream has forgotten the task.
        Some(remaining) => input.timeout(remaining).await,
        None => input.await,
    };
    let response = or_cancel(response, is_elicitation)?;
    cx.step(("task-response", &place), async || send(tracked, &requests, &key, &response).await)
        .await
}

/// Sends a response until the upstream accepts or rejects it.
async fn send(
    tracked: Tracked<'_>,
    requests: &TaskRequests,
    key: &str,
    response: &RawJson,
) -> Result<bool> {
    let mut outage = Outage::default();
    loop {
        let sent = tokio::select! {
            sent = requests.update(key, response) => sent,
            () = tracked.cx.cancelled() => return Err(Error::new("the call was cancelled")),
        };
        let error = match sent {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        let name = tracked.reached.name();
        let reason = excerpt(&error.to_string());
        if !is_outage(&error) {
            tracing::warn!(upstream = &*name, reason, "an upstream rejected an input response");
            return Ok(false);
        }
        let Some(delay) = outage.failed(retry_after(&error)) else {
            return Err(Error::new(format!(
                "the input response cannot be sent to upstream `{name}`: {reason}"
            )));
        };
        tokio::time::sleep(delay).await;
    }
}

/// A user who does not respond to an elicitation has cancelled it. Other failures end the call.
fn or_cancel(response: Result<RawJson>, is_elicitation: bool) -> Result<RawJson> {
    match response {
        Err(error)
            if is_elicitation
                && matches!(
                    error.durable_error(),
                    Some(DurableError::TimedOut { .. } | DurableError::ClientError { .. })
                ) =>
        {
            Ok(to_raw_value(&json!({"action": "cancel"}))?)
        }
        other => other,
    }
}
