//! `GET tasks`, `GET tasks/ID` with its journal, output and audit events.

use http::StatusCode;
use outlive::{
    people::TaskView,
    store::{
        AuditRecord, IndexedTask, InputRequestState, JournalCursor, JournalEntry, JournalItem,
        ListCursor, TaskOutcome, TaskState, TaskSummary,
    },
    wire::RawJson,
};
use serde::Serialize;
use serde_json::Value;

use super::{
    call::ApiCall,
    error::ApiError,
    inbox::{Argument, arguments},
};
use crate::{
    http::{Reply, json},
    task_query, times,
};

/// Returns tasks, newest first.
pub(crate) async fn tasks(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Page<'a> {
        tasks: Vec<TaskJson<'a>>,
        next: Option<String>,
        searched_to: Option<String>,
    }
    let now = call.state.sign_in.vault.now();
    let query = task_query::read(|name| call.query.get(name), now)
        .map_err(|error| ApiError::bad_request(error, "correct the parameters"))?;
    let after: Option<ListCursor> = call.after()?;
    let page = call.people().tasks(call.visitor(), &query, after.as_ref(), call.limit()?).await?;
    let page = Page {
        tasks: page.tasks.iter().map(TaskJson::listed).collect(),
        next: call.next(page.next.clone()),
        searched_to: page.searched_to.map(times::text),
    };
    Ok(json(StatusCode::OK, &page))
}

/// Returns one task.
pub(crate) async fn task(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let view = call.people().task(call.visitor(), &call.task()).await?;
    Ok(json(StatusCode::OK, &DetailJson::new(&view)))
}

/// Returns journal entries in the order of their commits.
pub(crate) async fn journal(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Page<'a> {
        entries: Vec<EntryJson<'a>>,
        next: Option<String>,
    }
    let (after, limit): (Option<JournalCursor>, usize) = (call.after()?, call.limit()?);
    let task = call.task();
    let items = call.people().journal(call.visitor(), &task, after.as_ref(), limit).await?;
    let last = items.last().filter(|_| items.len() == limit);
    let next = last.map(|last| JournalCursor::new(last.recorded_at, last.key.clone()));
    let page = Page { entries: items.iter().map(EntryJson::new).collect(), next: call.next(next) };
    Ok(json(StatusCode::OK, &page))
}

/// Returns the output after a segment.
pub(crate) async fn output(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Page {
        blocks: Vec<RawJson>,
        /// Number of the first block.
        first: u64,
        last: u64,
        has_ended: bool,
    }
    let after = call.query.get("after").map(|after| {
        let remedy = "send the number of the last segment that you have";
        after.parse().map_err(|_| ApiError::bad_request("`after` is not a number", remedy))
    });
    let after = after.transpose()?.unwrap_or(0);
    let (task, limit) = (call.task(), call.limit()?);
    let page = call.people().output(call.visitor(), &task, after, limit).await?;
    let (first, last, has_ended) = (after.saturating_add(1), page.last, page.ended);
    Ok(json(StatusCode::OK, &Page { blocks: page.blocks, first, last, has_ended }))
}

/// Returns the audit events of one task, oldest first.
pub(crate) async fn audit(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Events<'a> {
        events: Vec<EventJson<'a>>,
    }
    let events = call.people().task_audit(call.visitor(), &call.task()).await?;
    let events = Events { events: events.iter().map(EventJson::new).collect() };
    Ok(json(StatusCode::OK, &events))
}

/// A task in JSON.
#[derive(Serialize)]
struct TaskJson<'a> {
    id: &'a str,
    tool: &'a str,
    state: &'static str,
    caller: Option<&'a str>,
    status_message: Option<&'a str>,
    progress: Option<&'a RawJson>,
    worker: Option<&'a str>,
    crash_count: u32,
    created_at: String,
    updated_at: String,
    due_at: Option<String>,
    cancel_requested_at: Option<String>,
}

impl<'a> TaskJson<'a> {
    fn listed(task: &'a IndexedTask) -> Self {
        Self::new(&task.summary, task.state, task.person.as_deref())
    }

    fn new(task: &'a TaskSummary, state: TaskState, caller: Option<&'a str>) -> Self {
        let view = &task.view;
        Self {
            id: view.id.as_str(),
            tool: &view.tool,
            state: state.as_str(),
            caller,
            status_message: view.status_message.as_deref(),
            progress: view.progress.as_ref(),
            worker: task.owner.as_ref().map(|worker| worker.as_str()),
            crash_count: task.crash_count,
            created_at: times::text(view.created_at),
            updated_at: times::text(view.updated_at),
            due_at: task.due_at.map(times::text),
            cancel_requested_at: view.cancel_requested.map(times::text),
        }
    }
}

/// A task with its call and its outcome.
#[derive(Serialize)]
struct DetailJson<'a> {
    #[serde(flatten)]
    task: TaskJson<'a>,
    tags: &'a [String],
    rerun_of: Option<&'a str>,
    client: Option<&'a str>,
    arguments: Vec<Argument<'a>>,
    shows_contents: bool,
    can_act: bool,
    can_operate: bool,
    queue_position: Option<u64>,
    entries: usize,
    segments: u64,
    inputs: Vec<InputJson<'a>>,
    result: Option<Value>,
    error: Option<&'a outlive::wire::ErrorObject>,
}

impl<'a> DetailJson<'a> {
    fn new(view: &'a TaskView) -> Self {
        let detail = &view.detail;
        let (result, error) = match &detail.task.view.outcome {
            Some(TaskOutcome::Result(result)) => (serde_json::from_str(result.get()).ok(), None),
            Some(TaskOutcome::LargeResult(large)) => {
                (serde_json::from_str(large.head.get()).ok(), None)
            }
            Some(TaskOutcome::Error(error)) => (None, Some(error)),
            _ => (None, None),
        };
        let input = |it: &'a outlive::store::InputRequestRecord| InputJson {
            key: &it.name,
            state: match it.state {
                InputRequestState::Open => "open",
                InputRequestState::Answered => "answered",
                InputRequestState::Withdrawn => "withdrawn",
            },
            is_external: it.request.is_none() && view.shows_contents,
            opened_at: times::text(it.opened_at),
            settled_at: it.settled_at.map(times::text),
            open_until: it.due.map(times::text),
        };
        Self {
            task: TaskJson::new(&detail.task, view.state, view.person.as_deref()),
            tags: &view.tags,
            rerun_of: view.rerun_of.as_ref().map(|id| id.as_str()),
            client: view.client.as_deref(),
            arguments: arguments(&view.arguments),
            shows_contents: view.shows_contents,
            can_act: view.can_act,
            can_operate: view.can_operate,
            queue_position: view.queue_position,
            entries: view.entries,
            segments: detail.segments,
            inputs: detail.input_requests.iter().map(input).collect(),
            result,
            error,
        }
    }
}

/// An input request of a task.
#[derive(Serialize)]
struct InputJson<'a> {
    key: &'a str,
    state: &'static str,
    is_external: bool,
    opened_at: String,
    settled_at: Option<String>,
    open_until: Option<String>,
}

/// A journal entry in JSON.
#[derive(Serialize)]
struct EntryJson<'a> {
    key: &'a str,
    kind: &'static str,
    value: Option<&'a RawJson>,
    error: Option<String>,
    until: Option<String>,
    recorded_at: String,
    duration_ms: Option<u64>,
}

impl<'a> EntryJson<'a> {
    fn new(item: &'a JournalItem) -> Self {
        let mut entry = Self {
            key: &item.key,
            kind: "step",
            value: None,
            error: None,
            until: None,
            recorded_at: times::text(item.recorded_at),
            duration_ms: item.duration.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        };
        match &item.entry {
            JournalEntry::Value(value) | JournalEntry::Secret(value) => entry.value = Some(value),
            JournalEntry::Failed(failure) => {
                (entry.kind, entry.error) = ("failed-step", Some(failure.message.clone()));
            }
            JournalEntry::Answer(value) => (entry.kind, entry.value) = ("input", Some(value)),
            JournalEntry::Unanswered(failure) => {
                (entry.kind, entry.error) = ("input", Some(format!("{failure:?}").to_lowercase()));
            }
            JournalEntry::Due(due) => {
                (entry.kind, entry.until) = ("timer", Some(times::text(*due)));
            }
            JournalEntry::Begun => entry.kind = "started-step",
            JournalEntry::State(value) => (entry.kind, entry.value) = ("state", Some(value)),
            _ => entry.kind = "other",
        }
        entry
    }
}

/// Returns an audit event as one line of JSON.
pub(crate) fn event_line(record: &AuditRecord) -> String {
    serde_json::to_string(&EventJson::new(record)).unwrap_or_default()
}

/// An audit event in JSON.
#[derive(Serialize)]
pub(crate) struct EventJson<'a> {
    number: u64,
    recorded_at: String,
    actor: &'a str,
    action: &'a str,
    task: &'a str,
    reason: Option<&'a str>,
    worker: Option<&'a str>,
}

impl<'a> EventJson<'a> {
    pub(crate) fn new(record: &'a AuditRecord) -> Self {
        Self {
            number: record.number,
            recorded_at: times::text(record.at),
            actor: &record.event.principal,
            action: &record.event.action,
            task: &record.event.task,
            reason: record.event.reason.as_deref(),
            worker: record.event.worker.as_deref(),
        }
    }
}
