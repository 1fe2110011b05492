//! Checks that hold for every page, and data for the tests of pages.

use outlive::{
    people::{InboxEntry, InboxPage, InputView, Role, ShownArgument, TaskView},
    store::{
        Audience, Binding, InboxItem, IndexedTask, InputRequestDetail, Phase, TaskDetail, TaskId,
        TaskOutcome, TaskPage, TaskRecord, TaskState, TaskSummary, UnixMillis, Vote,
    },
    wire::{InputRequest, Method, RawJson},
};
use serde_json::{Value, json, value::RawValue};

use super::context::{PageContext, Theme};
use crate::html::Html;

/// Time of all pages: 2026-11-18 10:16:00 UTC.
pub(crate) const NOW: UnixMillis = 1_794_996_960_000;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// Maximum bytes of a page.
const MAX_PAGE: usize = 100 << 10;

/// Returns the context of an operator on a page in the folder of the console.
pub(crate) fn context() -> PageContext {
    PageContext {
        visitor_name: hostile("ada"),
        role: Role::Operator,
        inbox_count: 3,
        base: "./".to_owned(),
        form_token: "token".to_owned(),
        is_live: true,
        now: NOW,
        theme: Theme::System,
        has_keys: true,
    }
}

/// Returns a text with markup, a quote, a direction change and an invisible character.
pub(crate) fn hostile(name: &str) -> String {
    format!("{name}<script>alert(1)</script>\"'><img src=x onerror=y>\u{202e}\u{200b}\u{7}&amp;")
}

/// Checks the rules that hold for every page.
#[track_caller]
pub(crate) fn check_page(page: &Html) {
    let html = page.as_str();
    assert!(html.len() <= MAX_PAGE, "{} bytes", html.len());
    assert_eq!(html.matches("<h1").count(), 1, "one heading: {html}");
    assert_eq!(html.matches("<main").count(), 1, "one main part: {html}");
    let (head, _) = html.split_once("</head>").expect("a head");
    assert_eq!(head.matches("<title>").count(), 1, "one title: {html}");
    let shown = without_values(html);
    for raw in ['\u{202e}', '\u{200b}', '\u{7}'] {
        assert!(!shown.contains(raw), "{raw:?} is not visible: {html}");
    }
    for markup in
        ["<script>", "<img", " onerror=y>", "javascript:", " style=", "<style", " onclick="]
    {
        assert!(!html.contains(markup), "{markup}: {html}");
    }
    assert!(html.matches("<script").count() <= 1, "{html}");
    check_links(html);
    check_ids(html);
    check_labels(html);
}

/// Returns a page without the values of its controls, which submit exactly what a person typed.
fn without_values(html: &str) -> String {
    let without = |html: &str, start: &str, end: char| {
        let mut parts = html.split(start);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(part.find(end).map_or("", |at| &part[at..]));
        }
        out
    };
    without(&without(html, " value=\"", '"'), "<textarea", '<')
}

/// Checks that all addresses are relative and stay in the console.
#[track_caller]
fn check_links(html: &str) {
    for name in ["href", "src", "action", "data-stream"] {
        for address in attributes(html, name) {
            let is_relative = !address.starts_with('/') && !address.contains("//");
            assert!(is_relative || address.starts_with("https://"), "{name}={address}");
        }
    }
}

/// Checks that IDs are unique, and that references to IDs have a target.
#[track_caller]
fn check_ids(html: &str) {
    let ids = attributes(html, "id");
    for id in &ids {
        assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "ID {id} is not unique");
        assert!(!id.contains(char::is_whitespace) && !id.is_empty(), "ID {id}");
    }
    for name in ["for", "aria-labelledby", "aria-describedby", "form", "list"] {
        let lists = attributes(html, name);
        for id in lists.iter().flat_map(|list| list.split(' ')) {
            assert!(ids.contains(&id), "{name}={id} has no target: {html}");
        }
    }
}

/// Checks that every control has a name.
#[track_caller]
fn check_labels(html: &str) {
    let labels = attributes(html, "for");
    for tag in ["<input ", "<select ", "<textarea "] {
        for (at, _) in html.match_indices(tag) {
            let control = &html[at..at + html[at..].find('>').expect("a tag ends")];
            let id = attributes(control, "id");
            let is_labelled = control.contains("type=\"hidden\"")
                || control.contains("aria-label=")
                || id.iter().any(|id| labels.contains(id))
                || is_in_label(&html[..at]);
            assert!(is_labelled, "{control} has no label");
        }
    }
    for (at, _) in html.match_indices("<button") {
        let text = &html[at..at + html[at..].find("</button>").expect("a button ends")];
        assert!(!text.ends_with('>'), "{text} has no name");
    }
}

fn is_in_label(before: &str) -> bool {
    let (open, close) = (before.rfind("<label"), before.rfind("</label>"));
    open.is_some() && open > close
}

/// Checks that a page has a part that the script replaces.
#[track_caller]
pub(crate) fn check_live(page: &Html) {
    let html = page.as_str();
    for (at, _) in html.match_indices(" data-live") {
        let start = html[..at].rfind('<').expect("in a tag");
        assert!(html[start..at].contains(" id=\""), "{}", &html[start..at]);
    }
    assert!(html.contains(" data-live") && html.contains(" data-stream=\"./api/v1/stream"));
}

/// Returns the values of an attribute.
pub(crate) fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let values = html.match_indices(&start).map(|(at, _)| {
        let value = &html[at + start.len()..];
        &value[..value.find('"').expect("a value ends")]
    });
    values.collect()
}

pub(crate) fn raw(value: &Value) -> RawJson {
    RawValue::from_string(value.to_string()).expect("is JSON")
}

/// Returns a form with one field.
pub(crate) fn form(message: &str) -> InputRequest {
    let form = json!({"method": Method::Elicit.as_str(), "params": {"message": message,
        "requestedSchema": {"type": "object", "properties": {"quarter": {"type": "integer"}}}}});
    serde_json::from_str(&form.to_string()).expect("is an input request")
}

/// Returns an open form of ann's task.
pub(crate) fn elicitation(tool: &str, message: &str) -> InboxItem {
    let call = raw(&json!({}));
    let mut item =
        InboxItem::new(TaskId::new("task-1"), "quarter", tool, "ann", call, form(message));
    item.person = Some("ann".to_owned());
    item.opened_at = NOW - 4 * MINUTE;
    item.due = Some(NOW + 7 * HOUR + 56 * MINUTE);
    item
}

/// Returns an open approval request of ann's task, with one of two votes.
pub(crate) fn approval(tool: &str) -> InboxItem {
    let mut item = elicitation(tool, "Approve?");
    item.name = "#approval".to_owned();
    let people = ["ada", "ben", "cid"].map(str::to_owned);
    item.audience = Audience::Names(people.to_vec());
    item.binding = Some(Binding::new("4ade91c20000", "d1").count(2));
    item.approvals = 1;
    item
}

pub(crate) fn inbox_entry(item: InboxItem) -> InboxEntry {
    let mut entry = InboxEntry::new(item);
    entry.arguments =
        vec![ShownArgument::new("version", "\"1.4.2\""), ShownArgument::new("env", "\"prod\"")];
    entry
}

pub(crate) fn inbox_page(items: Vec<InboxEntry>) -> InboxPage {
    let mut page = InboxPage::default();
    page.items = items;
    page
}

/// Returns an open request that the visitor may answer.
pub(crate) fn input_view(item: InboxItem) -> InputView {
    let arguments = inbox_entry(item.clone()).arguments;
    let mut view = InputView::new(InputRequestDetail::new(item), "4ade91c20000");
    view.can_answer = true;
    view.arguments = arguments;
    view
}

pub(crate) fn vote(person: &str, accepts: bool) -> Vote {
    Vote::new(person, accepts, "console", NOW - 2 * MINUTE)
}

/// Returns a task of ann in a state.
pub(crate) fn task(state: TaskState) -> IndexedTask {
    let id = TaskId::new("3b5819090beb");
    let progress = json!({"progress": 31, "total": 240, "message": "frame 31 of 240"});
    let record = TaskRecord::new(id, "deploy", "modern", Phase::Running, NOW - 3 * HOUR)
        .status_message(Some("pushes <eu>".to_owned()))
        .progress(Some(raw(&progress)))
        .outcome(outcome(state))
        .ttl(Some(9 * HOUR));
    let summary = TaskSummary::new(record, "ann", 1).crash_count(5).due_at(Some(NOW + HOUR));
    IndexedTask::new(summary, state, Some("ann".to_owned()))
}

fn outcome(state: TaskState) -> Option<TaskOutcome> {
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "no <space>"}]});
    match state {
        TaskState::Completed => Some(TaskOutcome::Result(raw(&json!({"content": []})))),
        TaskState::Failed => Some(TaskOutcome::Result(raw(&failed))),
        TaskState::Cancelled => Some(TaskOutcome::Cancelled),
        TaskState::Expired => Some(TaskOutcome::Expired),
        _ => None,
    }
}

pub(crate) fn task_page(tasks: Vec<IndexedTask>) -> TaskPage {
    let mut page = TaskPage::default();
    page.tasks = tasks;
    page
}

/// Returns the view of an operator on a task of ann.
pub(crate) fn task_view(state: TaskState) -> TaskView {
    let IndexedTask { summary, .. } = task(state);
    let mut view = TaskView::new(TaskDetail::new(summary, raw(&json!({}))), state);
    view.person = Some("ann".to_owned());
    view.arguments = vec![ShownArgument::new("version", "\"1.4.2\"")];
    (view.can_act, view.can_operate) = (true, true);
    view
}
