//! Carries an input request of a legacy upstream to the client, and the response back.
//!
//! The upstream waits meanwhile, with its call, so the run must not be parked. An inline call of a
//! modern client becomes a task. If it cannot, the upstream gets `cancel`.

use std::time::Duration;

use outlive::{
    client::relay::RelayInput,
    server::{Durable, Error, durable::DurableError},
    wire::{ElicitRequestParams, InputRequest, Method, RawJson, code},
};
use serde_json::value::RawValue;

use super::{input_keys::InputKey, route::Reached};
use crate::{
    excerpt::excerpt,
    metrics::{InputKind, InputPath},
    upstream::{Carried, Connection},
};

/// Interval of the progress that an upstream gets while the user has not responded.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// Code of a rejected sampling request.
const REJECTED: i32 = -1;

/// Carries an input request to the client of a call, and its response to the upstream.
pub(super) async fn carry(
    cx: &Durable,
    reached: &Reached,
    connection: &Connection,
    carried: Carried,
    key: InputKey,
) {
    let mut carried = DetachOnDrop { cx, carried: Some(carried) };
    let path = match carried.is_of_call() {
        true => InputPath::Call,
        false => InputPath::Connection,
    };
    let Some(input) = carried.input() else { return };
    let (method, settings) = (input.method(), reached.member.settings());
    let reply = match input.request() {
        Ok(request) => {
            let meter = reached.member.state().meter();
            meter.input(InputKind::of(&request), path);
            let was_task = cx.task_id().is_some();
            let reply = tokio::select! {
                reply = ask(cx, with_source(request, settings.shown_prefix()), key.key) => reply,
                () = input.withdrawn() => return drop(carried.take()),
                () = report_progress(input) => return,
            };
            if !was_task && cx.task_id().is_some() {
                meter.bridged();
            }
            reply
        }
        Err(error) => Err(Reply::Error(code::INVALID_PARAMS, excerpt(&error.to_string()))),
    };
    let has_new_roots = match &reply {
        Ok(roots) if method == Method::RootsList => connection.carrier.set_roots(roots),
        _ => false,
    };
    let Some(input) = carried.take() else { return };
    let sent = match reply {
        Ok(response) => input.respond(&response).await,
        Err(Reply::Cancel) => input.respond(&cancelled()).await,
        Err(Reply::Error(code, message)) => input.reject(code, &message, None).await,
    };
    match (sent, key.delivered) {
        (Err(error), _) => {
            tracing::debug!(%error, "cannot send an input response to an upstream");
        }
        (Ok(()), Some(delivered)) => {
            if let Err(error) = cx.put(delivered, &true) {
                tracing::debug!(%error, "cannot record that an input response was sent");
            }
        }
        (Ok(()), None) => {}
    }
    if has_new_roots {
        // The upstream may have requested the roots outside of a call before.
        let _ = connection.client.notify_roots_changed().await;
    }
}

/// An input request that stays open at the upstream if the run is dropped while its task continues.
struct DetachOnDrop<'a> {
    cx: &'a Durable,
    carried: Option<Carried>,
}

impl DetachOnDrop<'_> {
    fn is_of_call(&self) -> bool {
        self.carried.as_ref().is_some_and(Carried::is_of_call)
    }

    fn input(&self) -> Option<&RelayInput> {
        self.carried.as_ref()?.input()
    }

    fn take(&mut self) -> Option<RelayInput> {
        self.carried.take()?.take()
    }
}

impl Drop for DetachOnDrop<'_> {
    fn drop(&mut self) {
        // One that arrived elsewhere goes to the next call.
        if self.is_of_call()
            && self.cx.is_detached()
            && let Some(input) = self.take()
        {
            input.detach();
        }
    }
}

/// A reply that is not the client's response.
enum Reply {
    /// The user did not respond.
    Cancel,
    Error(i32, String),
}

async fn ask(cx: &Durable, request: InputRequest, key: String) -> Result<RawJson, Reply> {
    let method = match &request {
        InputRequest::Elicit(_) => Method::Elicit,
        InputRequest::CreateMessage(_) => Method::CreateMessage,
        _ => Method::RootsList,
    };
    let _parking = cx.prevent_parking();
    let response = cx.request_input(key, request).await;
    response.map_err(|error| reply_to(method, &error))
}

fn reply_to(method: Method, error: &Error) -> Reply {
    match error.durable_error() {
        Some(DurableError::MissingCapability { .. }) => {
            Reply::Error(code::METHOD_NOT_FOUND, "the client does not support it".to_owned())
        }
        Some(DurableError::ClientError { code, message, .. }) => {
            Reply::Error(*code, message.clone())
        }
        Some(DurableError::NoCapacity { capacity }) => {
            let reason = format!("too many calls wait for input (`{capacity}`); retry later");
            Reply::Error(code::INTERNAL, reason)
        }
        _ if method == Method::Elicit => Reply::Cancel,
        _ => Reply::Error(REJECTED, "the client did not respond".to_owned()),
    }
}

/// Adds the prefix of the upstream to a message, so that the user sees its source.
pub(super) fn with_source(mut request: InputRequest, prefix: &str) -> InputRequest {
    if prefix.is_empty() {
        return request;
    }
    if let InputRequest::Elicit(params) = &mut request {
        let message = match params {
            ElicitRequestParams::Form(form) => &mut form.message,
            ElicitRequestParams::Url(url) => &mut url.message,
            _ => return request,
        };
        *message = format!("[{prefix}] {message}");
    }
    request
}

/// Reports progress to the upstream, without an end.
async fn report_progress(input: &RelayInput) {
    if !input.has_progress_token() {
        return std::future::pending().await;
    }
    let mut progress = 0.0;
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        progress += 1.0;
        let _ = input.report_progress(progress, Some("waiting for the user")).await;
    }
}

fn cancelled() -> RawJson {
    RawValue::from_string(r#"{"action":"cancel"}"#.to_owned()).expect("the literal is valid JSON")
}
