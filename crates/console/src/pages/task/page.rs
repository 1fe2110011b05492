//! The page of a task.

use askama::Template;
use outlive::{
    people::{TaskView, Timeline, WorkerInfo},
    store::{InputRequestState, TaskState},
};

use super::{
    tabs::{Tab, TabsPart},
    timeline::{TimelinePart, WorkerNames, part},
};
use crate::{
    html::{Html, Markup},
    pages::{
        context::{Frame, PageContext, Section},
        state::{StateBadge, is_terminal},
    },
    status_text::{Sentence, Status, Tense, cut, progress, sentence},
    urlencoded::encode,
};

/// The data of a task page.
pub(crate) struct TaskData<'a> {
    pub(crate) view: &'a TaskView,
    pub(crate) timeline: &'a Timeline,
    /// Workers of the store; empty if the visitor may not list them.
    pub(crate) workers: &'a [WorkerInfo],
    pub(crate) tab: Tab<'a>,
}

#[derive(Template)]
#[template(path = "task.html")]
struct Page<'a> {
    frame: Frame<'a>,
    tool: &'a str,
    id: &'a str,
    badge: Markup,
    since: Markup,
    text: String,
    when: Option<(&'static str, Markup)>,
    percent: Option<u64>,
    /// Addresses of open input requests that a person can answer.
    inputs: Vec<(String, String)>,
    actions: Vec<Action>,
    facts: Vec<(&'static str, String)>,
    rerun_of: Option<(String, String)>,
    timeline: Option<TimelinePart>,
    tabs: Markup,
}

/// A link to an action on the task.
struct Action {
    label: &'static str,
    href: String,
    class: &'static str,
}

/// Returns the page of a task.
pub(crate) fn render(cx: &PageContext, data: &TaskData<'_>) -> Html {
    let TaskView { detail, state, .. } = data.view;
    let view = &detail.task.view;
    let names = WorkerNames::new(data.workers);
    let running = data.timeline.workers.last().filter(|worker| worker.until.is_none());
    let worker = running.map(|worker| (names.get(&worker.worker), worker.from));
    let Sentence { text, time } = sentence(&Status {
        task: &detail.task,
        state: *state,
        timers: &data.timeline.timers,
        input_requests: &detail.input_requests,
        queue_position: data.view.queue_position,
        worker: worker.as_ref().map(|(name, from)| (name.as_str(), *from)),
        now: cx.now,
    });
    let tabs = TabsPart::new(cx, data.view, data.timeline, &data.tab);
    let rerun_of = data.view.rerun_of.as_ref();
    Html::new(&Page {
        frame: Frame::new(cx, Section::Tasks).tasks([view.id.as_str()]),
        tool: &view.tool,
        id: view.id.as_str(),
        badge: StateBadge::html(*state),
        since: cx.age(view.updated_at),
        text,
        when: time.map(|(tense, at)| match tense {
            Tense::Since => ("since", cx.clock(at)),
            Tense::Until => ("until", cx.clock(at)),
            Tense::FailsAt => ("; it fails unless it is retried:", cx.left(at)),
        }),
        percent: progress(&detail.task)
            .filter(|_| *state == TaskState::Running)
            .and_then(|it| it.percent()),
        inputs: inputs(cx, data.view),
        actions: actions(cx, data.view),
        facts: facts(data.view),
        rerun_of: rerun_of.map(|id| {
            (format!("{}tasks/{}", cx.base, encode(id.as_str())), id.prefix().to_owned())
        }),
        timeline: part(cx, data.timeline, &names),
        tabs: Markup::new(&tabs),
    })
}

fn inputs(cx: &PageContext, view: &TaskView) -> Vec<(String, String)> {
    let open = view.detail.input_requests.iter().filter(|request| {
        request.state == InputRequestState::Open && !matches!(request.name.as_str(), "#start")
    });
    let id = encode(view.detail.task.view.id.as_str());
    let address = |name: &str| format!("{}inputs/{id}/{}", cx.base, encode(name));
    // Another system responds to a request without a body.
    let open = open.filter(|request| request.request.is_some() || !view.shows_contents);
    open.map(|request| (address(&request.name), cut(&request.name))).collect()
}

fn actions(cx: &PageContext, view: &TaskView) -> Vec<Action> {
    let id = encode(view.detail.task.view.id.as_str());
    let action = |label, name: &str, class| {
        let href = format!("{}tasks/{id}/{name}", cx.base);
        Action { label, href, class }
    };
    let is_terminal = is_terminal(view.state);
    let mut actions = Vec::new();
    if view.can_operate && view.state == TaskState::Quarantined {
        actions.push(action("Retry", "retry", " primary"));
    }
    if view.can_act && view.shows_contents {
        actions.push(action("Run again", "rerun", ""));
    }
    if view.can_act && !is_terminal {
        actions.push(action("Cancel", "cancel", " decline"));
    }
    if view.can_operate && is_terminal {
        actions.push(action("Delete", "purge", " decline"));
    }
    actions
}

fn facts(view: &TaskView) -> Vec<(&'static str, String)> {
    let caller = view.person.clone().unwrap_or_else(|| "anonymous".to_owned());
    let mut facts = vec![("caller", caller)];
    facts.extend(view.tags.iter().map(|tag| ("tag", tag.clone())));
    facts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlive::{
        people::{ShownArgument, Timeline, WorkerSpan},
        store::{
            AuditEvent, AuditRecord, EntryKind, InputRequestRecord, InputRequestState,
            JournalEntry, JournalItem, StepFailure, StoredSegments, TaskId, TaskState,
            TimelineEntry,
        },
    };
    use serde_json::json;

    use super::{Tab, TaskData, render};
    use crate::{
        assets,
        html::Html,
        pages::testing::{NOW, check_live, check_page, context, form, hostile, raw, task_view},
    };

    fn page(state: TaskState, tab: Tab<'_>) -> Html {
        let mut timeline = Timeline::default();
        timeline.workers = vec![WorkerSpan::new("w1", NOW - 60_000)];
        let view = task_view(state);
        let mut cx = context();
        cx.base = "../".to_owned();
        render(&cx, &TaskData { view: &view, timeline: &timeline, workers: &[], tab })
    }

    fn item(key: &str, entry: JournalEntry) -> JournalItem {
        JournalItem::new(key, entry, NOW - 5_000, Some(Duration::from_millis(812)))
    }

    #[test]
    fn task_in_every_state_has_a_page() {
        for state in TaskState::ALL {
            let page = page(state, Tab::Arguments);
            check_page(&page);
            assert!(page.as_str().contains(&format!("s-{}", state.as_str())), "{state:?}");
        }
    }

    #[test]
    fn actions_fit_the_state() {
        let labels = |state| {
            let html = page(state, Tab::Result).into_string();
            let all = ["Retry", "Run again", "Cancel", "Delete"];
            let has = |label: &&str| html.contains(&format!(">{label}</a>"));
            all.into_iter().filter(has).collect::<Vec<_>>()
        };
        assert_eq!(labels(TaskState::Quarantined), ["Retry", "Run again", "Cancel"]);
        assert_eq!(labels(TaskState::Running), ["Run again", "Cancel"]);
        assert_eq!(labels(TaskState::Completed), ["Run again", "Delete"]);
    }

    #[test]
    fn every_tab_is_rendered() {
        let segments =
            StoredSegments::new(vec![raw(&json!({"type": "text", "text": hostile("line")}))], 9);
        let entries = [
            item(&hostile("push"), JournalEntry::Value(raw(&json!({"image": hostile("shop")})))),
            item("gone", JournalEntry::Failed(StepFailure::new(hostile("no space")))),
            item("soak", JournalEntry::Due(NOW)),
            item("once", JournalEntry::Begun),
            item("long", JournalEntry::Value(raw(&json!("x".repeat(5_000))))),
        ];
        let event = AuditEvent::new(hostile("task"), hostile("ann"), hostile("started"));
        let audit = [AuditRecord::new(1, NOW, event.reason(Some(hostile("reason"))))];
        let empty = StoredSegments::new(Vec::new(), 0);
        for (tab, part) in [
            (Tab::Output(&segments), "8 earlier segments not shown."),
            (Tab::Output(&empty), "No output yet."),
            (Tab::Journal { items: &entries, next: Some("sealed") }, "after=sealed"),
            (Tab::Journal { items: &[], next: None }, "Nothing recorded yet."),
            (Tab::Entry(&entries[4]), "5,002 characters"),
            (Tab::Search { find: &hostile("x"), failed: true }, "0 entries match."),
            (Tab::Arguments, "&quot;1.4.2&quot;"),
            (Tab::Result, "The task has no result."),
            (Tab::Audit(&audit), "<table"),
            (Tab::Hidden(super::super::TabName::Journal), "visible to the caller only"),
        ] {
            let page = page(TaskState::Waiting, tab);
            check_page(&page);
            assert!(page.as_str().contains(part), "{part}: {}", page.as_str());
        }
    }

    #[test]
    fn open_requests_are_answered_from_the_task() {
        let mut view = task_view(TaskState::InputRequired);
        let open = |name: &str| {
            InputRequestRecord::new(name, name, Some(form("Sure?")), InputRequestState::Open)
        };
        view.detail.input_requests = vec![open("#approval")];
        view.rerun_of = Some(TaskId::new("0c2f0000aaaa"));
        view.tags = vec![hostile("order=1")];
        let timeline = Timeline::default();
        let data = TaskData { view: &view, timeline: &timeline, workers: &[], tab: Tab::Arguments };
        let page = render(&context(), &data);
        check_page(&page);
        check_live(&page);
        assert!(page.as_str().contains("href=\"./inputs/3b5819090beb/%23approval\""));
        assert!(page.as_str().contains("href=\"./tasks/0c2f0000aaaa\""));
    }

    #[test]
    fn first_view_of_a_long_journal_is_small() {
        let value =
            || JournalEntry::Value(raw(&json!({"image": "shop:1.4.2", "text": "x".repeat(400)})));
        let items: Vec<JournalItem> =
            (0..200).map(|at| item(&format!("region/{at}/push"), value())).collect();
        let mut timeline = Timeline::default();
        timeline.entries = (0..10_000)
            .map(|at| {
                let length = Duration::from_millis(at % 900);
                TimelineEntry::new(
                    format!("region/{at}/push"),
                    EntryKind::Step,
                    NOW + at * 7,
                    Some(length),
                )
            })
            .collect();
        let mut view = task_view(TaskState::Running);
        view.entries = 10_000;
        view.arguments = vec![ShownArgument::new("version", "\"1.4.2\"")];
        let tab = Tab::Journal { items: &items, next: Some("sealed") };
        let page =
            render(&context(), &TaskData { view: &view, timeline: &timeline, workers: &[], tab });
        check_page(&page);
        let assets: usize = assets::ALL.iter().map(|asset| asset.body.len()).sum();
        let first_view = page.as_str().len() + assets;
        assert!(first_view <= 150 << 10, "{first_view}");
        assert!(page.as_str().contains("10,000"), "the tab has the number of entries");
    }
}
