//! The first sentence of a task: why it waits, or how it ended.

use outlive::{
    people::TimerSpan,
    store::{
        Audience, InputRequestRecord, InputRequestState, TaskOutcome, TaskState, TaskSummary,
        UnixMillis,
    },
    text,
    wire::{ElicitRequestParams, InputRequest, RawJson},
};
use serde::Deserialize;

use crate::time_text::{count, number};

/// Start of the wire keys of approval requests.
const APPROVAL: &str = "#approval";

/// Maximum number of characters of a message in a sentence.
const MAX_MESSAGE: usize = 200;

/// A task as the first sentence describes it.
#[derive(Clone, Copy)]
pub(crate) struct Status<'a> {
    pub(crate) task: &'a TaskSummary,
    pub(crate) state: TaskState,
    pub(crate) timers: &'a [TimerSpan],
    pub(crate) input_requests: &'a [InputRequestRecord],
    /// Number of tasks that a worker claims before this one.
    pub(crate) queue_position: Option<u64>,
    /// Host and process of the worker, and the time of its claim.
    pub(crate) worker: Option<(&'a str, UnixMillis)>,
    pub(crate) now: UnixMillis,
}

/// A sentence, and a time that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    pub(crate) time: Option<(Tense, UnixMillis)>,
}

/// Meaning of the time after a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// Time since which the state lasts.
    Since,
    /// Time at which the state ends.
    Until,
    /// Time at which the task fails, unless an operator acts.
    FailsAt,
}

impl Sentence {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), time: None }
    }

    fn at(mut self, tense: Tense, at: Option<UnixMillis>) -> Self {
        self.time = at.map(|at| (tense, at));
        self
    }
}

/// Returns the first sentence of a task.
pub(crate) fn sentence(status: &Status<'_>) -> Sentence {
    let view = &status.task.view;
    if let (Some(at), None) = (view.cancel_requested, &view.outcome) {
        let text = "Cancellation was requested, and the handler has not stopped yet";
        return Sentence::new(text).at(Tense::Since, Some(at));
    }
    match status.state {
        TaskState::Queued => Sentence::new(match status.queue_position {
            None => "Waits for a worker".to_owned(),
            Some(0) => "Waits for a worker and is the next task".to_owned(),
            Some(1) => "Waits for a worker; 1 task is ahead".to_owned(),
            Some(ahead) => format!("Waits for a worker; {} tasks are ahead", number(ahead)),
        }),
        TaskState::Running => running(status),
        TaskState::InputRequired => input_required(status),
        TaskState::Waiting => waiting(status),
        TaskState::Quarantined => {
            let text = format!("Stopped {}", quarantine_reason(status.task));
            Sentence::new(text).at(Tense::FailsAt, ends_at(status.task))
        }
        TaskState::Completed => Sentence::new("Completed"),
        TaskState::Failed => Sentence::new(match failure(view.outcome.as_ref()) {
            Some(message) => format!("Failed: {message}"),
            None => "Failed".to_owned(),
        }),
        TaskState::Cancelled => Sentence::new("Cancelled"),
        TaskState::Expired => Sentence::new("Expired before its handler returned"),
    }
}

/// Returns a few words on a task for a list.
pub(crate) fn short(task: &TaskSummary, state: TaskState) -> String {
    let message = || task.view.status_message.as_deref().map(cut).unwrap_or_default();
    match state {
        TaskState::Quarantined => quarantine_reason(task),
        TaskState::Failed => failure(task.view.outcome.as_ref()).unwrap_or_else(message),
        TaskState::InputRequired => {
            let first = task.view.input_requests.first();
            let open = first.map(|it| request_text(&it.name, Some(&it.request), &it.audience));
            open.unwrap_or_else(message)
        }
        TaskState::Running => progress(task).and_then(|it| it.message).unwrap_or_else(message),
        _ => message(),
    }
}

/// Progress of a task.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Progress {
    progress: f64,
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

impl Progress {
    /// Returns the share of the work that is done, in percent; `None` if the total is unknown.
    pub(crate) fn percent(&self) -> Option<u64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.progress / total * 100.0).clamp(0.0, 100.0) as u64)
    }
}

/// Returns the last progress of a task.
pub(crate) fn progress(task: &TaskSummary) -> Option<Progress> {
    let mut progress: Progress = read(task.view.progress.as_ref()?)?;
    progress.message = progress.message.as_deref().map(cut);
    Some(progress)
}

fn running(status: &Status<'_>) -> Sentence {
    let message = short(status.task, TaskState::Running);
    let worker = status.worker.map(|(name, _)| format!("Runs on {name}"));
    let worker = worker.unwrap_or_else(|| "Runs".to_owned());
    let text = match message.is_empty() {
        true => worker,
        false => format!("{worker}: {message}"),
    };
    Sentence::new(text).at(Tense::Since, status.worker.map(|(_, since)| since))
}

fn input_required(status: &Status<'_>) -> Sentence {
    let is_open = |it: &&InputRequestRecord| it.state == InputRequestState::Open;
    let open: Vec<_> = status.input_requests.iter().filter(is_open).collect();
    let Some(first) = open.iter().find(|it| it.request.is_some()).or(open.first()) else {
        return Sentence::new("Waits for input");
    };
    let text = request_text(&first.name, first.request.as_ref(), &first.audience);
    let more = match open.len() {
        0 | 1 => String::new(),
        all => format!(", and for {}", count(all as u64 - 1, "other response")),
    };
    Sentence::new(format!("{}{more}", capitalized(&text))).at(Tense::Until, first.due)
}

fn waiting(status: &Status<'_>) -> Sentence {
    let timers = status.timers.iter().filter(|timer| timer.until > status.now);
    if let Some(timer) = timers.min_by_key(|timer| timer.until) {
        let text = format!("Sleeps in {}", cut(&timer.key));
        return Sentence::new(text).at(Tense::Until, Some(timer.until));
    }
    let is_open = |it: &&InputRequestRecord| it.state == InputRequestState::Open;
    match status.input_requests.iter().find(is_open) {
        Some(event) => {
            let text = capitalized(&request_text(&event.name, None, &event.audience));
            Sentence::new(text).at(Tense::Until, event.due)
        }
        None => Sentence::new("Waits").at(Tense::Until, status.task.due_at),
    }
}

fn request_text(name: &str, request: Option<&InputRequest>, audience: &Audience) -> String {
    let people = people(audience);
    if name.starts_with(APPROVAL) {
        return format!("waits for approval by {people}");
    }
    match request {
        None if name == "#start" => "waits for its caller to return".to_owned(),
        None => format!("waits for the external event {}", cut(name)),
        Some(request) => match message(request) {
            Some(message) => format!("waits for input from {people}: “{}”", cut(message)),
            None => format!("waits for input from {people}"),
        },
    }
}

/// Returns the message of an elicitation.
pub(crate) fn message(request: &InputRequest) -> Option<&str> {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => Some(&*form.message),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => Some(&*url.message),
        _ => None,
    }
}

/// Returns the people of an audience, as in `ada, ben or the scope ops`.
pub(crate) fn people(audience: &Audience) -> String {
    let (names, scope) = audience.addressees();
    let names = names.iter().map(|name| cut(name));
    let mut people: Vec<String> = names.collect();
    people.extend(scope.map(|scope| format!("the scope {}", cut(scope))));
    match (people.pop(), audience) {
        (Some(last), _) if people.is_empty() => last,
        (Some(last), _) => format!("{} or {last}", people.join(", ")),
        (None, Audience::Caller) => "the caller".to_owned(),
        (None, _) => "the client".to_owned(),
    }
}

fn quarantine_reason(task: &TaskSummary) -> String {
    let reason = failure(task.kept.as_ref());
    match (task.crash_count, reason) {
        (0, Some(reason)) => format!("because {reason}"),
        (0, None) => "until an operator retries it".to_owned(),
        (crashes, None) => format!("after {}", count_crashes(crashes)),
        (crashes, Some(reason)) => format!("after {}: {reason}", count_crashes(crashes)),
    }
}

fn count_crashes(crashes: u32) -> String {
    match crashes {
        1 => "1 crash".to_owned(),
        crashes => format!("{crashes} crashes"),
    }
}

fn ends_at(task: &TaskSummary) -> Option<UnixMillis> {
    task.view.ttl.and_then(|ttl| task.view.created_at.checked_add(ttl))
}

/// Returns the message of a failed task.
pub(crate) fn failure(outcome: Option<&TaskOutcome>) -> Option<String> {
    #[derive(Deserialize)]
    struct ToolError {
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        text: Option<String>,
    }
    match outcome? {
        TaskOutcome::Error(error) => Some(cut(&error.message)),
        TaskOutcome::Result(result) => {
            let error: ToolError = read(result)?;
            error.content.into_iter().find_map(|block| block.text).map(|text| cut(&text))
        }
        _ => None,
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a RawJson) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns a text on one line, at most [`MAX_MESSAGE`] characters long.
pub(crate) fn cut(message: &str) -> String {
    let line = text::line(message.trim());
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use outlive::{
        people::TimerSpan,
        store::{
            Audience, InputRequestRecord, InputRequestState, Phase, TaskId, TaskOutcome,
            TaskRecord, TaskState, TaskSummary,
        },
        wire::{ErrorObject, InputRequest, RawJson},
    };
    use serde_json::json;

    use super::{MAX_MESSAGE, Sentence, Status, Tense, cut, people, progress, sentence, short};

    fn raw(value: &serde_json::Value) -> RawJson {
        serde_json::value::to_raw_value(value).unwrap()
    }

    fn record() -> TaskRecord {
        TaskRecord::new(TaskId::new("t-1"), "deploy", "modern", Phase::Running, 1_000)
    }

    fn summary(view: TaskRecord) -> TaskSummary {
        TaskSummary::new(view, "ann", 1)
    }

    fn request(name: &str, audience: Audience) -> InputRequestRecord {
        let form = json!({"method": "elicitation/create", "params": {"message": "Which\nquarter?",
            "requestedSchema": {"type": "object", "properties": {}}}});
        let form: InputRequest = serde_json::from_str(&form.to_string()).unwrap();
        let state = InputRequestState::Open;
        InputRequestRecord::new(name, name, Some(form), state).audience(audience).due(Some(9_000))
    }

    #[track_caller]
    fn check(state: TaskState, task: &TaskSummary, expected: (&str, Option<(Tense, u64)>)) {
        check_with(state, task, &[], &[], expected);
    }

    #[track_caller]
    fn check_with(
        state: TaskState,
        task: &TaskSummary,
        input_requests: &[InputRequestRecord],
        timers: &[TimerSpan],
        (text, time): (&str, Option<(Tense, u64)>),
    ) {
        let (queue_position, worker) = (Some(12), Some(("host-1 · 4821", 4_000)));
        let status =
            Status { task, state, timers, input_requests, queue_position, worker, now: 5_000 };
        assert_eq!(sentence(&status), Sentence { text: text.to_owned(), time });
    }

    #[test]
    fn every_state_has_its_sentence() {
        let task = summary(record());
        check(TaskState::Queued, &task, ("Waits for a worker; 12 tasks are ahead", None));
        let since = Some((Tense::Since, 4_000));
        check(TaskState::Running, &task, ("Runs on host-1 · 4821", since));
        let moving = summary(record().status_message(Some("frame 31 of 240".to_owned())));
        check(TaskState::Running, &moving, ("Runs on host-1 · 4821: frame 31 of 240", since));
        check(TaskState::InputRequired, &task, ("Waits for input", None));
        check(TaskState::Waiting, &task, ("Waits", None));
        check(TaskState::Completed, &task, ("Completed", None));
        check(TaskState::Cancelled, &task, ("Cancelled", None));
        check(TaskState::Expired, &task, ("Expired before its handler returned", None));
        let stopping = summary(record().cancel_requested(Some(3_000)));
        let text = "Cancellation was requested, and the handler has not stopped yet";
        check(TaskState::Running, &stopping, (text, Some((Tense::Since, 3_000))));
    }

    #[test]
    fn quarantined_task_names_reason_and_end() {
        let error =
            TaskOutcome::Error(ErrorObject { code: -32603, message: "push/eu".into(), data: None });
        let task = summary(record().ttl(Some(6_000))).crash_count(5).kept(Some(error));
        let end = Some((Tense::FailsAt, 7_000));
        check(TaskState::Quarantined, &task, ("Stopped after 5 crashes: push/eu", end));
        assert_eq!(short(&task, TaskState::Quarantined), "after 5 crashes: push/eu");
    }

    #[test]
    fn failed_task_has_the_message_of_its_result() {
        let result =
            json!({"isError": true, "content": [{"type": "text", "text": "no space\u{202e}"}]});
        let task = summary(record().outcome(Some(TaskOutcome::Result(raw(&result)))));
        check(TaskState::Failed, &task, ("Failed: no space\\u{202e}", None));
        check(TaskState::Failed, &summary(record()), ("Failed", None));
    }

    #[test]
    fn open_requests_name_their_people() {
        let names = Audience::Names(vec!["ada".to_owned(), "ben".to_owned(), "cid".to_owned()]);
        let approval = [request("#approval", names), request("more", Audience::Client)];
        let text = "Waits for approval by ada, ben or cid, and for 1 other response";
        let until = Some((Tense::Until, 9_000));
        let task = summary(record());
        check_with(TaskState::InputRequired, &task, &approval, &[], (text, until));
        let form = [request("quarter", Audience::Caller)];
        let text = "Waits for input from the caller: “Which quarter?”";
        check_with(TaskState::InputRequired, &task, &form, &[], (text, until));
        let mixed = Audience::NamesOrScope(vec!["ada".to_owned()], "ops".to_owned());
        assert_eq!(people(&mixed), "ada or the scope ops");
        assert_eq!(people(&Audience::Scope("ops".to_owned())), "the scope ops");
    }

    #[test]
    fn waiting_task_names_timer_or_event() {
        let task = summary(record());
        let timers = [TimerSpan::new("old", 1_000, 4_000), TimerSpan::new("soak/eu", 1_000, 8_000)];
        let until = Some((Tense::Until, 8_000));
        check_with(TaskState::Waiting, &task, &[], &timers, ("Sleeps in soak/eu", until));
        let event = InputRequestRecord::new("paid", "paid", None, InputRequestState::Open);
        let text = "Waits for the external event paid";
        check_with(TaskState::Waiting, &task, &[event], &[], (text, None));
    }

    #[test]
    fn progress_is_a_share_of_the_total() {
        let with = |json| summary(record().progress(Some(raw(&json))));
        let task = with(json!({"progress": 31, "total": 240, "message": "frame 31 of 240"}));
        assert_eq!(progress(&task).unwrap().percent(), Some(12));
        assert_eq!(short(&task, TaskState::Running), "frame 31 of 240");
        assert_eq!(progress(&with(json!({"progress": 31}))).unwrap().percent(), None);
        assert_eq!(
            progress(&with(json!({"progress": 9, "total": 3}))).unwrap().percent(),
            Some(100)
        );
        assert_eq!(progress(&with(json!("x"))), None);
    }

    #[test]
    fn long_message_is_cut() {
        let long = "x".repeat(MAX_MESSAGE + 1);
        assert_eq!(cut(&long).chars().count(), MAX_MESSAGE + 1);
        assert!(cut(&long).ends_with('…'));
    }
}
