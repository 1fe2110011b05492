//! Bulk actions: the confirmation before, and the state after it.

use askama::Template;
use outlive::{
    people::{BulkAction, BulkStatus},
    store::{IndexedTask, TaskCount, UnixMillis},
};

use super::{
    context::{Frame, PageContext, Section},
    state::StateBadge,
    tasks::Filter,
};
use crate::{
    html::{Html, Markup},
    status_text::cut,
    time_text::{count, number},
    urlencoded::encode,
};

/// Number of tasks that the confirmation shows.
const EXAMPLES: usize = 5;

/// Maximum number of tasks of a bulk action.
const MAX_TASKS: usize = 10_000;

/// A bulk action to confirm.
pub(crate) struct Confirm<'a> {
    pub(crate) action: BulkAction,
    pub(crate) target: Target<'a>,
    /// When the operator pressed the button. Later tasks are not affected.
    pub(crate) before: UnixMillis,
    /// Name that the operator typed.
    pub(crate) name: &'a str,
    /// Reason why the action was not started.
    pub(crate) error: Option<&'a str>,
}

/// The tasks of a bulk action.
pub(crate) enum Target<'a> {
    /// All tasks that match a filter, and the newest of them.
    Matching { filter: &'a Filter, count: TaskCount, newest: &'a [IndexedTask] },
    /// Tasks that the operator selected one by one.
    Selected(&'a [IndexedTask]),
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct ConfirmPage<'a> {
    frame: Frame<'a>,
    verb: &'static str,
    tasks: String,
    explanation: &'static str,
    is_destructive: bool,
    error: Option<&'a str>,
    examples: Vec<Example>,
    more: Option<String>,
    values: Vec<(&'static str, Markup)>,
    name: Markup,
    is_too_large: bool,
    is_empty: bool,
    back: String,
}

struct Example {
    badge: Markup,
    tool: String,
    prefix: String,
    caller: String,
    age: Markup,
}

#[derive(Template)]
#[template(path = "bulk_status.html")]
struct StatusPage<'a> {
    frame: Frame<'a>,
    verb: &'static str,
    status: &'a BulkStatus,
    state: &'static str,
    processed: usize,
    all: usize,
    done: String,
    skipped: String,
    can_continue: bool,
    audit: String,
}

/// Returns the confirmation of a bulk action. Its form posts the filter or the IDs, `action`,
/// `before`, `expect` and `name` to the page.
pub(crate) fn confirm(cx: &PageContext, confirm: &Confirm<'_>) -> Html {
    let (newest, total, more) = match &confirm.target {
        Target::Matching { count, newest, .. } => (*newest, count.count, count.more),
        Target::Selected(tasks) => (*tasks, tasks.len(), false),
    };
    let is_too_large = more || total > MAX_TASKS;
    let hidden = total.saturating_sub(EXAMPLES.min(newest.len()));
    let (verb, explanation) = texts(confirm.action);
    let back = match &confirm.target {
        Target::Matching { filter, .. } => format!("{}tasks?{}", cx.base, filter.query(&[])),
        Target::Selected(_) => format!("{}tasks", cx.base),
    };
    Html::new(&ConfirmPage {
        frame: Frame::new(cx, Section::Tasks),
        verb,
        tasks: match more {
            true => format!("more than {}", count(total as u64, "task")),
            false => count(total as u64, "task"),
        },
        explanation,
        is_destructive: confirm.action == BulkAction::Cancel,
        error: confirm.error,
        examples: newest.iter().take(EXAMPLES).map(|task| Example::new(cx, task)).collect(),
        more: (hidden > 0).then(|| number(hidden as u64)),
        values: values(confirm, total),
        name: Markup::exact(confirm.name),
        is_too_large,
        is_empty: total == 0,
        back,
    })
}

/// Returns the state of a bulk action. Its form posts `action=continue` to the page.
pub(crate) fn status(cx: &PageContext, status: &BulkStatus) -> Html {
    let is_stopped = !status.is_finished && !status.is_running;
    let frame = Frame::new(cx, Section::Tasks);
    let (verb, _) = texts(status.action);
    Html::new(&StatusPage {
        frame: if status.is_finished { frame } else { frame.poll(2) },
        verb,
        state: match (status.is_finished, status.is_running) {
            (true, _) => "Finished",
            (false, true) => "Runs",
            (false, false) => "Stopped, because its process ended",
        },
        processed: status.done + status.skipped,
        all: status.expect.max(1),
        done: number(status.done as u64),
        skipped: number(status.skipped as u64),
        can_continue: is_stopped && cx.is_operator(),
        audit: format!("{}audit?name={}", cx.base, encode(&status.name)),
        status,
    })
}

fn texts(action: BulkAction) -> (&'static str, &'static str) {
    match action {
        BulkAction::Retry => {
            ("Retry", "Each task continues from its journal. Recorded steps do not run again.")
        }
        BulkAction::Cancel => ("Cancel", "Each task ends as cancelled. This cannot be undone."),
    }
}

/// Returns the values that the form repeats.
fn values(confirm: &Confirm<'_>, total: usize) -> Vec<(&'static str, Markup)> {
    let mut values = vec![
        ("action", Markup::exact(confirm.action.as_str())),
        ("before", Markup::exact(&confirm.before.to_string())),
        ("expect", Markup::exact(&total.to_string())),
    ];
    match &confirm.target {
        Target::Matching { filter, .. } => {
            let pairs = filter.pairs().into_iter();
            values.extend(pairs.map(|(name, value)| (name, Markup::exact(value))));
        }
        Target::Selected(tasks) => {
            let ids = tasks.iter().map(|task| task.summary.view.id.as_str());
            values.extend(ids.map(|id| ("id", Markup::exact(id))));
        }
    }
    values
}

impl Example {
    fn new(cx: &PageContext, task: &IndexedTask) -> Self {
        let view = &task.summary.view;
        Self {
            badge: StateBadge::html(task.state),
            tool: cut(&view.tool),
            prefix: view.id.prefix().to_owned(),
            caller: task.person.as_deref().map_or_else(|| "anonymous".to_owned(), cut),
            age: cx.age(view.created_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive::{
        people::{BulkAction, BulkStatus},
        store::{TaskCount, TaskState},
    };

    use super::{Confirm, Filter, Target, confirm, status};
    use crate::pages::testing::{NOW, check_page, context, hostile, task};

    fn total(count: usize, more: bool) -> TaskCount {
        let mut total = TaskCount::default();
        (total.count, total.more) = (count, more);
        total
    }

    #[test]
    fn confirmation_shows_action_number_and_examples() {
        let newest: Vec<_> = (0..6).map(|_| task(TaskState::Quarantined)).collect();
        let filter = Filter { tool: hostile("deploy"), ..Filter::default() };
        let target =
            Target::Matching { filter: &filter, count: total(214, false), newest: &newest };
        let (name, error) = (hostile("INC-42"), hostile("more tasks match now"));
        let data = Confirm {
            action: BulkAction::Retry,
            target,
            before: NOW,
            name: &name,
            error: Some(&error),
        };
        let page = confirm(&context(), &data);
        check_page(&page);
        for part in [
            "Retry 214 tasks?",
            "and 209 more",
            "name=\"expect\" value=\"214\"",
            "name=\"before\" value=\"1794996960000\"",
            "name=\"form_token\" value=\"token\"",
            "id=\"name\"",
        ] {
            assert!(page.as_str().contains(part), "{part}: {}", page.as_str());
        }
        assert_eq!(page.as_str().matches("s-quarantined").count(), 5);
    }

    #[test]
    fn too_many_or_no_tasks_cannot_be_confirmed() {
        let filter = Filter::default();
        for count in [total(10_000, true), total(0, false)] {
            let target = Target::Matching { filter: &filter, count, newest: &[] };
            let (action, name, error) = (BulkAction::Cancel, "", None);
            let page = confirm(&context(), &Confirm { action, target, before: NOW, name, error });
            check_page(&page);
            assert!(!page.as_str().contains("<form"), "{}", page.as_str());
        }
    }

    #[test]
    fn selected_tasks_are_repeated_by_the_form() {
        let tasks = [task(TaskState::Running)];
        let (action, name, error) = (BulkAction::Cancel, "", None);
        let target = Target::Selected(&tasks);
        let page = confirm(&context(), &Confirm { action, target, before: NOW, name, error });
        check_page(&page);
        assert!(page.as_str().contains("name=\"id\" value=\"3b5819090beb\""), "{}", page.as_str());
    }

    #[test]
    fn stopped_action_can_be_continued() {
        let mut state = BulkStatus::new(BulkAction::Retry, hostile("INC-42"), hostile("ada"), 214);
        (state.done, state.skipped) = (100, 2);
        let page = status(&context(), &state);
        check_page(&page);
        assert!(page.as_str().contains(">Continue</button>"), "{}", page.as_str());
        assert!(page.as_str().contains("<progress max=\"214\" value=\"102\""), "{}", page.as_str());
        state.is_finished = true;
        let page = status(&context(), &state);
        check_page(&page);
        assert!(!page.as_str().contains(">Continue</button>"), "{}", page.as_str());
    }
}
