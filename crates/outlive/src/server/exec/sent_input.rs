//! Input requests on the stream of a legacy client, while its call waits.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use outlive_tasks::{InputFailure, Journal, OpenInputRequest};
use outlive_wire::RawJson;

use crate::server::{extract::cx::Cx, run::client_request::ClientRequest, time::now};

/// An input request that was sent to a legacy client.
pub(crate) struct SentInput {
    pub(crate) key: String,
    /// Serial number of the request: a key can be reused for another request.
    pub(crate) serial: u64,
    /// The request as JSON, to compare it with a later one.
    pub(crate) text: String,
    pub(crate) request: ClientRequest,
    pub(crate) timer: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Withdraws all requests, because the handler has ended.
pub(crate) fn withdraw_all(sent: &mut Vec<SentInput>) {
    sent.drain(..).for_each(|sent| sent.request.withdraw("the input is no longer needed"));
}

/// Returns whether a request that is not open may be opened again, so that the client keeps it: the
/// run replays its work, and has not reached all its requests.
pub(crate) fn may_reopen(cx: &Cx, journal: &Journal, is_idle: bool) -> bool {
    if is_idle {
        journal.end_replay();
    }
    !is_idle && cx.env().replay_on_input || journal.replays()
}

impl SentInput {
    /// Returns whether the client already has this request.
    pub(crate) fn is(&self, open: &OpenInputRequest) -> bool {
        serde_json::to_string(&open.request).is_ok_and(|text| text == self.text)
    }

    /// Waits for the response or the timeout.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<RawJson, InputFailure>> {
        if let Poll::Ready(reply) = self.request.poll(task) {
            return Poll::Ready(reply.map_err(|error| InputFailure::Refused {
                code: error.code,
                message: error.message,
            }));
        }
        ready!(self.timer.as_mut().poll(task));
        self.request.withdraw("the input request timed out");
        Poll::Ready(Err(InputFailure::TimedOut))
    }
}

/// Sends an input request on the stream of its call. Returns its key if the call has no session.
pub(crate) fn send(cx: &Cx, open: OpenInputRequest) -> Result<SentInput, String> {
    let OpenInputRequest { key, request, due, serial, .. } = open;
    let text = serde_json::to_string(&request).unwrap_or_default();
    let profile = &cx.env().profile;
    let rest = match due {
        Some(due) => Duration::from_millis(due.saturating_sub(now(profile))),
        None => profile.limits.input_timeout,
    };
    let Some(request) = ClientRequest::send(cx.env(), cx.call(), request) else {
        return Err(key);
    };
    Ok(SentInput { key, serial, text, request, timer: profile.clock.sleep(rest) })
}
