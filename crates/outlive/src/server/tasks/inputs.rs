//! Input requests and progress on the stream of a 2025-11-25 client that waits for a task.

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    sync::Arc,
    task::Poll,
};

use outlive_protocol::{Call, ProtocolError};
use outlive_tasks::store::{InputSource, OpenInput, TaskId, TaskRecord};
use outlive_wire::{ElicitRequestParams, InputRequest, Meta, RawJson};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    run::{client_request::ClientRequest, input::check_response, progress::TaskProgress},
};

/// Input requests that were sent to the client on one stream.
#[derive(Default)]
pub(crate) struct Dialogue {
    asked: HashMap<String, (InputRequest, ClientRequest)>,
    /// Input requests that the client rejected or answered with an invalid response. Another stream
    /// may send them again.
    refused: HashSet<String>,
}

impl Dialogue {
    /// Sends the open input requests of a task to the client.
    pub(crate) fn ask(
        &mut self,
        env: &Arc<Env>,
        call: &Arc<Call>,
        id: &TaskId,
        questions: Vec<OpenInput>,
    ) {
        // Withdraws requests whose response arrived on another stream.
        self.asked.retain(|name, (_, put)| {
            let is_open = questions.iter().any(|open| open.name == *name);
            if !is_open {
                put.withdraw("the input was provided on another stream");
            }
            is_open
        });
        for OpenInput { name, mut request, .. } in questions {
            if self.asked.contains_key(&name) || self.refused.contains(&name) {
                continue;
            }
            relate(&mut request, id);
            if let Some(put) = ClientRequest::send(env, call, request.clone()) {
                self.asked.insert(name, (request, put));
            }
        }
    }

    /// Returns the next valid input response.
    pub(crate) async fn answered(&mut self) -> (String, RawJson) {
        loop {
            let asked = &mut self.asked;
            let (name, reply) = poll_fn(|cx| {
                let ready = asked.iter_mut().find_map(|(name, (_, put))| match put.poll(cx) {
                    Poll::Ready(reply) => Some((name.clone(), reply)),
                    Poll::Pending => None,
                });
                ready.map_or(Poll::Pending, Poll::Ready)
            })
            .await;
            let request = self.asked.remove(&name).map(|(request, _)| request);
            let fits =
                |answer: &RawJson| request.is_some_and(|it| check_response(&it, answer).is_ok());
            match reply {
                Ok(answer) if fits(&answer) => return (name, answer),
                refused => {
                    tracing::debug!(name, error = ?refused, "client rejected an input request or sent an invalid response");
                    self.refused.insert(name);
                }
            }
        }
    }
}

/// Stores an input response for a task.
pub(crate) async fn take(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    name: String,
    answer: RawJson,
) -> Result<(), ProtocolError> {
    let (store, principal) = (tasks.engine().store(), call.principal().key());
    let (answers, max_bytes) = (vec![(name, answer)], tasks.allowance(principal).max_bytes);
    let taken = store.respond(principal, id, InputSource::Client, answers, max_bytes).await;
    let taken = taken.map_err(|error| tasks.refused(call, &error))?.unwrap_or_default();
    tasks.note(call, id, "updated", Some(format!("{taken} input responses stored")));
    Ok(())
}

/// Sends the progress of a task to the client that waits for it.
pub(crate) fn tell_progress(env: &Env, call: &Call, view: &TaskRecord) {
    let Some(session) = call.session() else { return };
    if view.outcome.is_some() {
        return TaskProgress::forget(session, &view.id);
    }
    let progress = view.progress.as_ref().and_then(TaskProgress::read);
    if let Some(notify) = progress.and_then(|progress| progress.news(session, &view.id)) {
        call.port().send(notify, env.profile.limits.max_queued_notifications);
    }
}

/// Adds the task ID to the `_meta` of an input request.
fn relate(request: &mut InputRequest, id: &TaskId) {
    let mut meta = Meta::default();
    meta.insert(Meta::RELATED_TASK.to_owned(), serde_json::json!({"taskId": id.as_str()}));
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => form.meta = Some(meta),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => url.meta = Some(meta),
        InputRequest::CreateMessage(params) => params.meta = Some(meta),
        _ => {}
    }
}
