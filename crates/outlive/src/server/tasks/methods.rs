//! The methods of tasks, of both dialects.

use std::{collections::HashMap, sync::Arc, time::Duration};

use outlive_protocol::{
    Answer, Call, Fault, Holding, Notify, Outcome, TaskState, TaskView, Work, era,
};
use outlive_tasks::store::{After, Answerer, Cancelled, TaskId, View};
use outlive_wire::{
    CreateMessageResult, ElicitRequestParams, ElicitResult, InputRequest, ListRootsResult, Meta,
    RawJson,
};
use serde::Deserialize;

use super::{TaskProgress, Tasks, unavailable, unknown_task};
use crate::server::{
    core::{Core, caller_key},
    durable::Put,
};

/// How often a waiting `tasks/result` looks by itself, should nobody tell it.
const LOOK: Duration = Duration::from_secs(1);

/// `tasks/get`: how far a task is. Changes nothing.
pub(in crate::server) fn get(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let view = look(tasks, &call, &id).await?;
        if view.outcome.is_some() {
            tasks.note(&call, &id, "retrieved", None);
        }
        Ok(Outcome::Complete(Answer::Task(Box::new(tasks.show(view)))))
    })
}

/// `tasks/update`: answers to what a task has asked. Acknowledged when they are stored.
pub(in crate::server) fn update(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let Some(text) = call.input_responses() else {
            return Err(Fault::invalid_params("`params.inputResponses` is missing"));
        };
        let answers: HashMap<String, RawJson> = serde_json::from_str(text).map_err(|error| {
            Fault::invalid_params(format!("`params.inputResponses` must be an object: {error}"))
        })?;
        let view = look(tasks, &call, &id).await?;
        for (name, request) in &view.questions {
            if let Some(answer) = answers.get(name) {
                check(request, answer).map_err(|why| {
                    Fault::invalid_params(format!("`params.inputResponses`: `{name}`: {why}"))
                })?;
            }
        }
        let store = tasks.engine().store();
        let (principal, answers) = (call.principal().key(), answers.into_iter().collect());
        let taken = store.answer(principal, &id, Answerer::Client, answers).await;
        match taken.map_err(|error| unavailable(&error))? {
            Some(taken) => {
                tasks.note(&call, &id, "updated", Some(format!("{taken} answers were taken")));
                Ok(Outcome::Complete(Answer::Empty))
            }
            None => Err(unknown_task()),
        }
    })
}

/// `tasks/cancel`: at once where the answer says so, else when the work has stopped.
pub(in crate::server) fn cancel(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let at_once = call.era().cancels_at_once();
        look(tasks, &call, &id).await?;
        let cancelled = tasks.engine().cancel(call.principal().key(), &id, at_once).await;
        let cancelled = cancelled.map_err(|error| unavailable(&error))?;
        let how = match cancelled {
            Some(Cancelled::Ended) => Some("cancelled"),
            Some(Cancelled::Requested) => Some("cancel-requested"),
            _ => None,
        };
        if let Some(how) = how {
            tasks.note(&call, &id, how, Some("its caller wants it".to_owned()));
        }
        match cancelled {
            None => Err(unknown_task()),
            Some(_) if !at_once => Ok(Outcome::Complete(Answer::Empty)),
            Some(Cancelled::Before) => {
                Err(Fault::invalid_params("the task cannot be cancelled: it has ended"))
            }
            Some(_) => {
                let view = look(tasks, &call, &id).await?;
                Ok(Outcome::Complete(Answer::Task(Box::new(tasks.show(view)))))
            }
        }
    })
}

/// `tasks/list`: all tasks of the caller, oldest first.
pub(in crate::server) fn list(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let core = Arc::clone(core);
    Box::pin(async move {
        let tasks = core.tasks()?;
        if call.principal().is_anonymous() {
            // Nobody can be told from anybody else.
            return Err(Fault::UnknownMethod { name: call.method_name().to_owned() });
        }
        let context = ["tasks", call.principal().key()];
        let params: outlive_wire::PaginatedRequestParams = serde_json::from_str(call.params())
            .map_err(|error| {
                Fault::invalid_params(format!("`params.cursor` must be a string: {error}"))
            })?;
        let invalid = || Fault::invalid_params("invalid cursor; start again without one");
        let after: Option<After> = match params.cursor {
            None => None,
            Some(cursor) => {
                let place = core.profile.seal.open(&cursor, &context).ok_or_else(invalid)?;
                Some(serde_json::from_slice(&place).map_err(|_| invalid())?)
            }
        };
        let size = core.profile.limits.page_size.max(1);
        let mut views = page(tasks, &call, after, size + 1).await?;
        let next = match views.len() > size {
            false => None,
            true => {
                views.truncate(size);
                let last =
                    views.last().map(|view| After { created: view.created, id: view.id.clone() });
                let place = serde_json::to_vec(&last).map_err(Fault::internal)?;
                let sealed = core.profile.seal.seal(&place, &context);
                Some(sealed.ok_or_else(|| Fault::internal("no random bytes for a cursor"))?)
            }
        };
        let views = views.into_iter().map(|view| tasks.show(view)).collect();
        Ok(Outcome::Complete(Answer::Tasks(views, next)))
    })
}

/// So many of the caller's tasks, of those that its dialect sees.
async fn page(
    tasks: &Tasks,
    call: &Call,
    mut after: Option<After>,
    count: usize,
) -> Result<Vec<View>, Fault> {
    let mut page = Vec::new();
    loop {
        let store = tasks.engine().store();
        let read = store.list(call.principal().key(), after.as_ref(), count).await;
        let read = read.map_err(|error| unavailable(&error))?;
        let is_last = read.len() < count;
        after = read.last().map(|view| After { created: view.created, id: view.id.clone() });
        page.extend(read.into_iter().filter(|view| call.era().sees(&view.origin)));
        if is_last || page.len() >= count {
            page.truncate(count);
            return Ok(page);
        }
    }
}

/// `tasks/result`: waits for the end, asks the client on the way what the task wants to know.
pub(in crate::server) fn result(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let mut asked: HashMap<String, Put> = HashMap::new();
        let mut told = None;
        loop {
            let changed = tasks.engine().watch(&id);
            let changed = changed.notified();
            let view = look(tasks, &call, &id).await?;
            let questions = view.questions.clone();
            tell_progress(&core, &call, &view);
            let shown = tasks.show(view);
            let status = std::mem::discriminant(&shown.state);
            let changed_status = told.replace(status).is_some_and(|before| before != status);
            // How it has ended is the answer.
            if changed_status && !shown.state.is_over() {
                let bound = core.profile.limits.queued_notifications;
                call.port().say(Notify::Task(Box::new(shown.clone())), bound);
            }
            match shown.state {
                TaskState::Working | TaskState::InputRequired(_) => {}
                TaskState::Result(result) => {
                    tasks.note(&call, &id, "retrieved", None);
                    let id = id.as_str().to_owned();
                    return Ok(Outcome::Complete(Answer::TaskResult(result, id)));
                }
                TaskState::Error(error) => return Err(Fault::Custom(error)),
                TaskState::Expired => {
                    return Err(Fault::invalid_params("the task has expired"));
                }
                TaskState::Cancelled => return Err(cancelled(&id)),
            }
            ask(&core, &call, &id, questions, &mut asked);
            let answered = std::future::poll_fn(|cx| {
                let ready = asked.iter_mut().find_map(|(name, put)| match put.poll(cx) {
                    std::task::Poll::Ready(reply) => Some((name.clone(), reply)),
                    std::task::Poll::Pending => None,
                });
                ready.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
            });
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(LOOK) => {}
                (name, reply) = answered => {
                    asked.remove(&name);
                    // A client that cannot answer now may be asked again on another stream.
                    if let Ok(answer) = reply {
                        let store = tasks.engine().store();
                        let answers = vec![(name, answer)];
                        store
                            .answer(call.principal().key(), &id, Answerer::Client, answers)
                            .await
                            .map_err(|error| unavailable(&error))?;
                    }
                }
            }
        }
    })
}

/// Tells a client that waits for a task how far it is.
fn tell_progress(core: &Core, call: &Call, view: &View) {
    let Some(session) = call.session() else { return };
    if view.outcome.is_some() {
        return TaskProgress::forget(session, &view.id);
    }
    let progress = view.progress.as_ref().and_then(TaskProgress::read);
    if let Some(notify) = progress.and_then(|progress| progress.news(session, &view.id)) {
        call.port().say(notify, core.profile.limits.queued_notifications);
    }
}

/// Puts the questions of a task to the client that waits for its result.
fn ask(
    core: &Arc<Core>,
    call: &Arc<Call>,
    id: &TaskId,
    questions: Vec<(String, InputRequest)>,
    asked: &mut HashMap<String, Put>,
) {
    // What was answered on another stream is not worth answering here.
    asked.retain(|name, _| questions.iter().any(|(open, _)| open == name));
    for (name, mut request) in questions {
        if asked.contains_key(&name) {
            continue;
        }
        relate(&mut request, id);
        if let Some(put) = Put::send(core, call, request) {
            asked.insert(name, put);
        }
    }
}

/// Says which task a question belongs to.
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

fn cancelled(id: &TaskId) -> Fault {
    let data = serde_json::json!({"taskId": id.as_str(), "status": "cancelled"});
    Fault::Custom(outlive_wire::ErrorObject {
        code: outlive_wire::code::INTERNAL,
        message: "the task was cancelled".to_owned(),
        data: serde_json::value::to_raw_value(&data).ok(),
    })
}

/// A task that a subscription may hear of, as it is now; `None` for one that is not this caller's.
pub(in crate::server) async fn look_at(
    core: &Core,
    call: &Call,
    id: &TaskId,
) -> Result<Option<TaskView>, Fault> {
    let tasks = core.tasks()?;
    let view = tasks.engine().view(call.principal().key(), id).await;
    Ok(view.map_err(|error| unavailable(&error))?.map(|view| tasks.show(view)))
}

/// The task that a call is about, once its caller may ask for tasks at all.
fn meant<'c>(core: &'c Core, call: &Call) -> Result<(&'c Tasks, TaskId), Fault> {
    let tasks = core.tasks()?;
    gate(call)?;
    let id = TaskId::new(call.task_id()?);
    slow_down(core, tasks, call, &id)?;
    Ok((tasks, id))
}

/// Refuses a caller who asks too often.
fn slow_down(core: &Core, tasks: &Tasks, call: &Call, id: &TaskId) -> Result<(), Fault> {
    match tasks.polls.enter(&caller_key(call), core.profile.clock.now()) {
        Ok(_) => Ok(()),
        Err(busy) => {
            core.counters.polls_refused.add(1);
            tasks.note(call, id, "polled-too-often", None);
            Err(Fault::Busy { retry_after: busy.retry_after })
        }
    }
}

/// A caller that did not say that it knows tasks is told to, before anything else.
pub(in crate::server) fn gate(call: &Call) -> Result<(), Fault> {
    match call.era().holding(call)? {
        Holding::Undeclared => Err(Fault::MissingCapability { required: era::tasks_capability() }),
        _ => Ok(()),
    }
}

async fn look(tasks: &Tasks, call: &Call, id: &TaskId) -> Result<View, Fault> {
    let view = tasks.engine().view(call.principal().key(), id).await;
    let view = view.map_err(|error| unavailable(&error))?;
    let view = view.filter(|view| call.era().sees(&view.origin));
    view.ok_or_else(|| {
        if let Some(core) = tasks.core.upgrade() {
            core.counters.look_ups_denied.add(1);
        }
        tasks.note(call, id, "look-up-denied", None);
        unknown_task()
    })
}

/// Whether something can be the answer to a question at all.
fn check(request: &InputRequest, answer: &RawJson) -> Result<(), String> {
    fn read<'a, T: Deserialize<'a>>(answer: &'a RawJson) -> Result<(), String> {
        serde_json::from_str::<T>(answer.get()).map(drop).map_err(|error| error.to_string())
    }
    match request {
        InputRequest::CreateMessage(_) => read::<CreateMessageResult>(answer),
        InputRequest::ListRoots => read::<ListRootsResult>(answer),
        _ => read::<ElicitResult>(answer),
    }
}
