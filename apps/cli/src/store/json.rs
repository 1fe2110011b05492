//! Tasks as JSON. Times are those of the store, in RFC 3339.

use outlive::{
    operator::TaskReport,
    store::{
        AuditRecord, InputFailure, InputRequestRecord, InputRequestState, JournalEntry,
        StepFailure, TaskOutcome, TaskSummary,
    },
    wire::{InputRequest, RawJson},
};
use serde::Serialize;

use super::format::{outcome_word, phase_word, stamp, state};

/// A task in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    id: &'a str,
    tool: &'a str,
    principal: &'a str,
    phase: &'static str,
    state: &'static str,
    created: String,
    updated: String,
    expires: Option<String>,
    due: Option<String>,
    cancel_requested: Option<String>,
    message: Option<&'a str>,
    progress: Option<&'a RawJson>,
    origin: &'a str,
    open_input_requests: usize,
    worker: Option<&'a str>,
    claims: u64,
    started: bool,
    crashes: u32,
    /// Outcome of a quarantined task that no operator retries.
    quarantined: Option<Outcome<'a>>,
    outcome: Option<Outcome<'a>>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a outlive::wire::ErrorObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
}

impl<'a> Outcome<'a> {
    fn of(outcome: &'a TaskOutcome) -> Self {
        let (error, result) = match outcome {
            TaskOutcome::Error(error) => (Some(error), None),
            TaskOutcome::Result(raw) => (None, Some(raw)),
            // The parts of the result were deleted.
            TaskOutcome::LargeResult(large) => (None, Some(&large.head)),
            TaskOutcome::Cancelled | TaskOutcome::Expired => (None, None),
        };
        Self { how: outcome_word(outcome), error, result }
    }
}

impl<'a> Task<'a> {
    pub(super) fn of(task: &'a TaskSummary) -> Self {
        let view = &task.view;
        Self {
            id: view.id.as_str(),
            tool: &view.tool,
            principal: &task.principal,
            phase: phase_word(view.phase),
            state: state(task),
            created: stamp(view.created_at),
            updated: stamp(view.updated_at),
            expires: view.ttl.map(|ttl| stamp(view.created_at.saturating_add(ttl))),
            due: task.due_at.map(stamp),
            cancel_requested: view.cancel_requested.map(stamp),
            message: view.status_message.as_deref(),
            progress: view.progress.as_ref(),
            origin: &view.origin,
            open_input_requests: view.input_requests.len(),
            worker: task.owner.as_ref().map(|owner| owner.as_str()),
            claims: task.epoch,
            started: task.started,
            crashes: task.crash_count,
            quarantined: task.kept.as_ref().map(Outcome::of),
            outcome: view.outcome.as_ref().map(Outcome::of),
        }
    }
}

/// A task with its request, journal, input requests and events.
#[derive(Serialize)]
pub(super) struct Whole<'a> {
    #[serde(flatten)]
    task: Task<'a>,
    request: &'a RawJson,
    journal: Vec<Line<'a>>,
    #[serde(rename = "inputRequests")]
    input_requests: Vec<Asked<'a>>,
    segments: u64,
    events: Vec<Event<'a>>,
}

impl<'a> Whole<'a> {
    pub(super) fn of(shown: &'a TaskReport) -> Self {
        let TaskReport { task, events, .. } = shown;
        Self {
            task: Task::of(&task.task),
            request: &task.request,
            journal: task.entries.iter().map(|(key, entry)| Line::of(key, entry)).collect(),
            input_requests: task.input_requests.iter().map(Asked::of).collect(),
            segments: task.segments,
            events: events.iter().map(Event::of).collect(),
        }
    }
}

/// A journal entry.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    pub(super) key: &'a str,
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

impl<'a> Line<'a> {
    /// Converts a journal entry. Omits the values of secrets.
    pub(super) fn of(key: &'a str, entry: &'a JournalEntry) -> Self {
        let (kind, value, text) = match entry {
            JournalEntry::Value(raw) => ("value", Some(raw), None),
            JournalEntry::Secret(_) => ("secret", None, None),
            JournalEntry::Answer(raw) => ("response", Some(raw), None),
            JournalEntry::State(raw) => ("state", Some(raw), None),
            JournalEntry::Failed(StepFailure { message, .. }) => {
                ("failed", None, Some(message.clone()))
            }
            JournalEntry::Unanswered(InputFailure::TimedOut) => {
                ("no-response", None, Some("timed out".to_owned()))
            }
            JournalEntry::Unanswered(InputFailure::Refused { message, .. }) => {
                ("no-response", None, Some(message.clone()))
            }
            JournalEntry::Due(at) => ("timer", None, Some(stamp(*at))),
            JournalEntry::Begun => ("started", None, None),
            // The value of an unknown kind may be a secret.
            _ => ("unknown", None, None),
        };
        Self { key, kind, value, text }
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    key: &'a str,
    name: &'a str,
    state: &'static str,
    /// Absent for an external event.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a InputRequest>,
}

impl<'a> Asked<'a> {
    fn of(asked: &'a InputRequestRecord) -> Self {
        Self {
            key: &asked.key,
            name: &asked.name,
            state: question_word(asked.state),
            audience: asked.request.as_ref().map(|_| asked.audience.as_str()),
            due: asked.due.map(stamp),
            request: asked.request.as_ref(),
        }
    }
}

pub(super) fn question_word(state: InputRequestState) -> &'static str {
    match state {
        InputRequestState::Open => "open",
        InputRequestState::Answered => "answered",
        InputRequestState::Withdrawn => "withdrawn",
    }
}

#[derive(Serialize)]
struct Event<'a> {
    at: String,
    what: &'a str,
    principal: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

impl<'a> Event<'a> {
    fn of(audit: &'a AuditRecord) -> Self {
        let event = &audit.event;
        Self {
            at: stamp(audit.at),
            what: &event.action,
            principal: &event.principal,
            cause: event.reason.as_deref(),
        }
    }
}

/// Prints a value as one line of JSON.
pub(super) fn print(value: &impl Serialize) -> crate::error::Result<()> {
    use crate::error::{CliError, Kind};
    let text = serde_json::to_string(value).map_err(|error| CliError::new(Kind::Failed, error))?;
    super::output::say(&text)
}
