//! Pending results: ordinary results of bridged calls whose tasks still run. Their text and their
//! structured content tell the model the next step.

use std::fmt::Write as _;

use outlive_protocol::{Progress, rfc3339};
use outlive_tasks::store::{Audience, OpenInput, TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{
    CallToolResult, ContentBlock, ElicitRequestParams, InputRequest, Meta, OrderedMap,
    RequestedSchema,
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::to_raw_value};

use crate::server::{
    hosts::reserved::{TASK_ANSWER, TASK_RESULT},
    run::progress::TaskProgress,
};

/// Member of `_meta` with the task, for the task view.
const TASK_META: &str = "dev.outlive/task";

/// Number of pending results after which the text asks the model to stop. Models repeat a call
/// about five times before they lose patience.
const WAITS_PER_TURN: u32 = 6;

/// Situation in which a pending result is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Situation<'a> {
    /// Number of pending results that were sent for the task before.
    pub(crate) earlier: u32,
    /// Whether the call joined the run of an earlier call.
    pub(crate) is_joined: bool,
    /// Whether the model asked for the status with `task_result`.
    pub(crate) is_poll: bool,
    /// Whether the host shows the task view, so that the model need not poll.
    pub(crate) has_view: bool,
    /// Whether `task_answer` accepts answers to the input requests.
    pub(crate) answers_by_tool: bool,
    /// Answer links by the names of input requests.
    pub(crate) links: &'a [(String, String)],
}

impl Situation<'_> {
    /// Returns the answer link of an input request.
    fn link(&self, name: &str) -> Option<&str> {
        self.links.iter().find(|(linked, _)| linked == name).map(|(_, link)| link.as_str())
    }
}

/// Returns the pending result of a task at `now`, in milliseconds since 1970.
pub(crate) fn pending_result(
    task: &TaskRecord,
    now: u64,
    situation: Situation<'_>,
) -> CallToolResult {
    let status = Status::of(task, now);
    let text = match task.input_requests.is_empty() {
        true => status.text(situation),
        false => status.input_text(situation),
    };
    let structured = StructuredContent { task: status.structured(situation) };
    let mut meta = Meta::default();
    meta.insert(Meta::RELATED_TASK.to_owned(), json!({"taskId": task.id.as_str()}));
    CallToolResult {
        content: vec![ContentBlock::text(text)],
        structured_content: to_raw_value(&structured).ok(),
        meta: Some(meta),
        ..CallToolResult::default()
    }
}

/// Returns the result of a finished task for `task_result`: the tool's own, with the task ID.
pub(crate) fn with_task(mut result: CallToolResult, task: &TaskId) -> CallToolResult {
    let meta = result.meta.get_or_insert_with(Meta::default);
    meta.insert(Meta::RELATED_TASK.to_owned(), json!({"taskId": task.as_str()}));
    result
}

/// Adds the task to the `_meta` of a result, for the task view. `also` are further members.
///
/// The input requests are in the structured content, because an object in `_meta` loses the order of
/// a form's fields.
pub(crate) fn with_view(
    mut result: CallToolResult,
    task: &TaskRecord,
    now: u64,
    also: Map<String, Value>,
) -> CallToolResult {
    let now = if task.outcome.is_some() { task.updated_at } else { now };
    let status = Status::of(task, now);
    let mut structured = status.structured(Situation::default());
    (structured.next, structured.instructions) = (None, None);
    structured.input_requests = None;
    structured.status = match &task.outcome {
        None => structured.status,
        Some(TaskOutcome::Cancelled) => "cancelled",
        Some(_) if result.is_error == Some(true) => "failed",
        Some(_) => "completed",
    };
    if let Ok(Value::Object(mut shown)) = serde_json::to_value(&structured) {
        shown.extend(also);
        result.meta.get_or_insert_with(Meta::default).insert(TASK_META.to_owned(), shown.into());
    }
    result
}

/// Status of a running task.
struct Status<'a> {
    task: &'a TaskRecord,
    seconds: u64,
    progress: Option<Progress>,
    stored_until: Option<u64>,
}

impl<'a> Status<'a> {
    fn of(task: &'a TaskRecord, now: u64) -> Self {
        let progress = task.progress.as_ref().and_then(TaskProgress::read);
        Self {
            task,
            seconds: now.saturating_sub(task.created_at) / 1_000,
            progress: progress.map(TaskProgress::into_progress),
            stored_until: task.ttl.map(|ttl| task.created_at.saturating_add(ttl)),
        }
    }

    /// Returns the text for the model.
    fn text(&self, situation: Situation<'_>) -> String {
        let (tool, id) = (&self.task.tool, self.task.id.as_str());
        let far = self.far();
        if (situation.earlier + 1).is_multiple_of(WAITS_PER_TURN) {
            return format!(
                "`{tool}` (task {id}) is still running after {}{far}. Tell the user that it is \
                 running, and stop here. If the user asks again, call {TASK_RESULT} with \
                 {{\"task\":\"{id}\"}}.",
                words(self.seconds)
            );
        }
        if situation.is_poll {
            return format!(
                "Still running after {}{far}. Call {TASK_RESULT} again to continue waiting.",
                words(self.seconds)
            );
        }
        let mut text = match situation.is_joined {
            true => format!(
                "This is the call of `{tool}` that started {} ago; it is still running (task \
                 {id}{far}).\n",
                words(self.seconds)
            ),
            false => format!(
                "`{tool}` is still running (task {id}, {} so far{far}).\n",
                words(self.seconds)
            ),
        };
        let _ = match situation.has_view {
            true => write!(
                text,
                "Call {TASK_RESULT} with {{\"task\":\"{id}\"}} once: it shows the user a live view, \
                 and you need not poll."
            ),
            false => write!(
                text,
                "Call {TASK_RESULT} with {{\"task\":\"{id}\"}} to wait for the result. Do not call \
                 `{tool}` again for it: that would join the same run."
            ),
        };
        if let Some(until) = self.stored_until {
            let _ = write!(
                text,
                "\nIf the user should not wait, say that it is running; the result is stored until \
                 {}.",
                minute(until)
            );
        }
        text
    }

    /// Returns the text for the model of a task that waits for input.
    fn input_text(&self, situation: Situation<'_>) -> String {
        let (tool, id) = (&self.task.tool, self.task.id.as_str());
        let mut text = String::new();
        for OpenInput { name: key, request, audience, .. } in &self.task.input_requests {
            let _ = writeln!(text, "`{tool}` (task {id}) asks the user: {}", prompt_of(request));
            let _ = match situation.answers_by_tool && *audience == Audience::Client {
                true => write!(
                    text,
                    "Show them this, and give their answer with {TASK_ANSWER} \
                     {{\"task\":\"{id}\",\"input_request\":{},\"action\":\"accept\",\"content\":…}}, \
                     or have them run `outlive tasks answer {id}`",
                    Value::from(key.as_str())
                ),
                false => {
                    write!(text, "Show them this, and have them run `outlive tasks answer {id}`")
                }
            };
            if let Some(link) = situation.link(key) {
                let _ = write!(text, " or open {link}");
            }
            let _ = writeln!(text, ". Then call {TASK_RESULT} with {{\"task\":\"{id}\"}}.");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Returns the structured content.
    fn structured(&self, situation: Situation<'_>) -> Structured<'_> {
        let is_first = !situation.is_poll;
        let id = self.task.id.as_str();
        let asks = !self.task.input_requests.is_empty();
        let next = json!({"tool": TASK_RESULT, "arguments": {"task": id}});
        let instructions = format!(
            "Call {TASK_RESULT} to wait for the result; do not call {} again for it.",
            self.task.tool
        );
        Structured {
            id,
            tool: is_first.then_some(&self.task.tool),
            status: if asks { "input_required" } else { "working" },
            seconds: self.seconds,
            done: self.progress.as_ref().map(|progress| progress.done),
            total: self.progress.as_ref().and_then(|progress| progress.total),
            message: self.message().filter(|_| is_first),
            left_seconds: self.left().filter(|_| is_first),
            stored_until: self.stored_until.filter(|_| is_first).map(rfc3339),
            next: (is_first && !asks).then_some(next),
            instructions: (is_first && !asks).then_some(instructions),
            input_requests: asks.then(|| self.input_requests(situation)),
        }
    }

    /// Returns the open input requests. Those that only a person answers have instructions.
    fn input_requests(&self, situation: Situation<'_>) -> OrderedMap<ShownInput<'a>> {
        let shown = |input: &'a OpenInput| {
            let (message, requested_schema, url) = match &input.request {
                InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
                    (form.message.clone(), Some(&form.requested_schema), None)
                }
                InputRequest::Elicit(ElicitRequestParams::Url(page)) => {
                    (page.message.clone(), None, Some(&*page.url))
                }
                other => (prompt_of(other), None, None),
            };
            let by_tool = situation.answers_by_tool && input.audience == Audience::Client;
            let instructions = (!by_tool)
                .then(|| format!("Run `outlive tasks answer {}`.", self.task.id.as_str()));
            let link = situation.link(&input.name).map(str::to_owned);
            (input.name.clone(), ShownInput { message, requested_schema, url, link, instructions })
        };
        OrderedMap(self.task.input_requests.iter().map(shown).collect())
    }

    /// Returns the progress and the time left: `: frame 120 of 600, about 3 min 20 s left`.
    fn far(&self) -> String {
        let mut far = self.message().map_or_else(String::new, |message| format!(": {message}"));
        if let Some(left) = self.left() {
            let sign = if far.is_empty() { ':' } else { ',' };
            let _ = write!(far, "{sign} about {} left", words(left));
        }
        far
    }

    fn message(&self) -> Option<String> {
        let Some(progress) = &self.progress else { return self.task.status_message.clone() };
        let count = progress.total.map(|total| format!("{} of {total}", progress.done));
        progress.message.clone().or(count).or_else(|| self.task.status_message.clone())
    }

    /// Returns the seconds left, if a total is known and at least a twentieth is done.
    fn left(&self) -> Option<u64> {
        let progress = self.progress.as_ref()?;
        let (done, total) = (progress.done, progress.total?);
        if done <= 0.0 || done > total || done < total / 20.0 {
            return None;
        }
        let left = self.seconds as f64 * (total - done) / done;
        // A year is more than any TTL; the conversion of a larger number would be meaningless.
        (left < 31_536_000.0).then_some(left.round() as u64)
    }
}

/// Structured content of a pending result.
#[derive(Serialize)]
struct StructuredContent<'a> {
    task: Structured<'a>,
}

/// State of a task, and the next step.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structured<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a String>,
    status: &'static str,
    seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<OrderedMap<ShownInput<'a>>>,
}

/// Input request as models and the task view read it. The fields of a form keep their order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownInput<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_schema: Option<&'a RequestedSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// Where a person answers, if `task_answer` does not accept the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// Returns the message of an input request.
fn prompt_of(request: &InputRequest) -> String {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => form.message.clone(),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => {
            format!("{} ({})", url.message, url.url)
        }
        _ => "input of the client".to_owned(),
    }
}

/// Returns the text for a task that was stopped; `None` for a task that has not ended or that has a
/// result.
pub(crate) fn stop_text(record: &TaskRecord) -> Option<String> {
    match &record.outcome {
        Some(TaskOutcome::Cancelled) => Some("the task was cancelled".to_owned()),
        Some(TaskOutcome::Expired) => {
            let age = record.updated_at.saturating_sub(record.created_at) / 1_000;
            Some(format!("the task took longer than {} and was stopped", words(age)))
        }
        _ => None,
    }
}

/// Formats seconds: `50 s`, `1 min 40 s`, `2 h 5 min`.
pub(crate) fn words(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Formats a time to the minute: `2026-11-18 14:05 UTC`.
pub(crate) fn minute(millis: u64) -> String {
    let text = rfc3339(millis);
    match text.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..5).unwrap_or(time)),
        None => text,
    }
}
