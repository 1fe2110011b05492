//! The list of tasks, with its filter. The address contains the whole view.

use askama::Template;
use outlive::store::{IndexedTask, TaskCount, TaskPage, TaskState};

use super::{
    context::{Frame, PageContext, Section},
    state::{StateBadge, is_terminal, word},
};
use crate::{
    html::{Html, Markup},
    status_text::{cut, progress, short},
    time_text::number,
    urlencoded::{Values, encode},
};

/// Spans that the filter offers.
const SPANS: [(&str, &str); 5] = [
    ("", "any time"),
    ("1h", "last hour"),
    ("24h", "last 24 h"),
    ("7d", "last 7 days"),
    ("30d", "last 30 days"),
];

/// The filter of a list, as the address has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) state: Option<TaskState>,
    pub(crate) tool: String,
    pub(crate) caller: String,
    pub(crate) tag: String,
    /// A time, or a span before now such as `24h`.
    pub(crate) since: String,
    pub(crate) until: String,
}

impl Filter {
    /// Reads the filter of an address.
    pub(crate) fn read(query: &Values) -> Self {
        let value = |name: &'static str| query.get(name).unwrap_or_default().trim().to_owned();
        Self {
            state: TaskState::from_name(&value("state")),
            tool: value("tool"),
            caller: value("caller"),
            tag: value("tag"),
            since: value("since"),
            until: value("until"),
        }
    }

    /// Returns the given conditions by their names in the address.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
        let pairs = [
            ("state", self.state.map_or("", TaskState::as_str)),
            ("tool", self.tool.as_str()),
            ("caller", self.caller.as_str()),
            ("tag", self.tag.as_str()),
            ("since", self.since.as_str()),
            ("until", self.until.as_str()),
        ];
        pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Returns the query of an address with this filter and more values.
    pub(crate) fn query(&self, more: &[(&str, &str)]) -> String {
        let pairs = self.pairs().into_iter().chain(more.iter().copied());
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        pairs.join("&")
    }
}

/// The data of the list.
pub(crate) struct TaskList<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) page: &'a TaskPage,
    pub(crate) count: TaskCount,
    /// Sealed position of the next page.
    pub(crate) next: Option<&'a str>,
    /// Whether this is the first page.
    pub(crate) is_first: bool,
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct Page<'a> {
    frame: Frame<'a>,
    filter: &'a Filter,
    states: Vec<Choice<'a>>,
    spans: Vec<Choice<'a>>,
    tools: Vec<&'a str>,
    sees_callers: bool,
    can_pick: bool,
    count: String,
    rows: Vec<Row>,
    next: Option<String>,
    first: Option<String>,
    searched_to: Option<Markup>,
    /// Names of the conditions, with the addresses that drop them.
    conditions: Vec<(&'static str, String)>,
    /// Actions on all tasks that match, with their addresses.
    bulk: Vec<(&'static str, String)>,
}

/// An option of the filter.
struct Choice<'a> {
    value: &'a str,
    label: &'a str,
    is_selected: bool,
}

/// A task in the list.
struct Row {
    id: String,
    href: String,
    badge: Markup,
    tool: String,
    prefix: String,
    caller: String,
    age: Markup,
    text: String,
    percent: Option<u64>,
    end: Option<Markup>,
}

/// Returns the list of tasks.
pub(crate) fn render(cx: &PageContext, list: &TaskList<'_>) -> Html {
    let TaskList { filter, page, count, .. } = list;
    let tasks = page.tasks.iter();
    let is_active = |task: &&IndexedTask| task.summary.view.outcome.is_none();
    let watched = tasks.clone().filter(is_active).map(|task| task.summary.view.id.as_str());
    let frame = Frame::new(cx, Section::Tasks).tasks(watched);
    let mut tools: Vec<&str> = tasks.clone().map(|task| &*task.summary.view.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    Html::new(&Page {
        frame: if list.is_first { frame.poll(10) } else { frame },
        filter,
        states: states(filter),
        spans: spans(filter),
        tools,
        sees_callers: cx.sees_all(),
        can_pick: cx.is_operator(),
        count: match count.more {
            true => format!("{}+ match", number(count.count as u64)),
            false if count.count == 1 => "1 matches".to_owned(),
            false => format!("{} match", number(count.count as u64)),
        },
        rows: tasks.map(|task| Row::new(cx, task)).collect(),
        next: list.next.map(|next| format!("?{}", filter.query(&[("after", next)]))),
        first: (!list.is_first).then(|| format!("?{}", filter.query(&[]))),
        searched_to: page.searched_to.map(|at| cx.clock(at)),
        conditions: conditions(filter),
        bulk: bulk(cx, filter, list),
    })
}

fn states(filter: &Filter) -> Vec<Choice<'_>> {
    let any = Choice { value: "", label: "any state", is_selected: filter.state.is_none() };
    let choice = |state: TaskState| Choice {
        value: state.as_str(),
        label: word(state),
        is_selected: filter.state == Some(state),
    };
    std::iter::once(any).chain(TaskState::ALL.map(choice)).collect()
}

fn spans(filter: &Filter) -> Vec<Choice<'_>> {
    let since = filter.since.as_str();
    let choice = |(value, label): (&'static str, &'static str)| Choice {
        value,
        label,
        is_selected: value == since,
    };
    let mut spans: Vec<_> = SPANS.into_iter().map(choice).collect();
    if spans.iter().all(|span| !span.is_selected) {
        spans.push(Choice { value: since, label: since, is_selected: true });
    }
    spans
}

/// Returns the given conditions, each with the address of the list without it.
fn conditions(filter: &Filter) -> Vec<(&'static str, String)> {
    let names = filter.pairs().into_iter().map(|(name, _)| name);
    let without = |name: &'static str| {
        let mut other = filter.clone();
        match name {
            "state" => other.state = None,
            "tool" => other.tool.clear(),
            "caller" => other.caller.clear(),
            "tag" => other.tag.clear(),
            "since" => other.since.clear(),
            _ => other.until.clear(),
        }
        (name, format!("?{}", other.query(&[])))
    };
    names.map(without).collect()
}

/// Returns the actions on all tasks that match. A list without a filter has none, because an action
/// on all tasks of a store is a mistake.
fn bulk(cx: &PageContext, filter: &Filter, list: &TaskList<'_>) -> Vec<(&'static str, String)> {
    if !cx.is_operator() || filter.pairs().is_empty() || list.count.count == 0 {
        return Vec::new();
    }
    let address = |action| format!("{}bulk?{}", cx.base, filter.query(&[("action", action)]));
    let mut actions = Vec::new();
    if filter.state == Some(TaskState::Quarantined) {
        actions.push(("Retry all", address("retry")));
    }
    if filter.state.is_none_or(|state| !is_terminal(state)) {
        actions.push(("Cancel all", address("cancel")));
    }
    actions
}

impl Row {
    fn new(cx: &PageContext, task: &IndexedTask) -> Self {
        let (view, state) = (&task.summary.view, task.state);
        let is_running = state == TaskState::Running;
        let end = match state {
            TaskState::Quarantined => view.ttl.and_then(|ttl| view.created_at.checked_add(ttl)),
            TaskState::Waiting => task.summary.due_at,
            _ => None,
        };
        Self {
            id: view.id.as_str().to_owned(),
            href: format!("{}tasks/{}", cx.base, encode(view.id.as_str())),
            badge: StateBadge::html(state),
            tool: view.tool.clone(),
            prefix: view.id.prefix().to_owned(),
            caller: task.person.as_deref().map_or_else(|| "anonymous".to_owned(), cut),
            age: cx.age(view.created_at),
            text: short(&task.summary, state),
            percent: progress(&task.summary).filter(|_| is_running).and_then(|it| it.percent()),
            end: end.map(|at| cx.left(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive::store::{TaskCount, TaskPage, TaskState};

    use super::{Filter, TaskList, render};
    use crate::{
        pages::testing::{NOW, check_live, check_page, context, hostile, task, task_page},
        urlencoded::Values,
    };

    fn list<'a>(filter: &'a Filter, page: &'a TaskPage, count: usize) -> TaskList<'a> {
        let mut total = TaskCount::default();
        total.count = count;
        TaskList { filter, page, count: total, next: None, is_first: true }
    }

    #[test]
    fn address_is_read_and_written() {
        let query = b"state=input-required&tool=de%20ploy&caller=&tag=order%3D1&since=24h&x=1";
        let filter = Filter::read(&Values::decode(query));
        assert_eq!(filter.state, Some(TaskState::InputRequired));
        let query = "state=input-required&tool=de%20ploy&tag=order%3D1&since=24h&after=c";
        assert_eq!(filter.query(&[("after", "c")]), query);
        assert_eq!(Filter::read(&Values::decode(b"state=unknown")), Filter::default());
    }

    #[test]
    fn every_state_has_shape_word_and_color() {
        let page = task_page(TaskState::ALL.map(task).to_vec());
        let page = render(&context(), &list(&Filter::default(), &page, 9));
        check_page(&page);
        check_live(&page);
        for state in TaskState::ALL {
            let badge = format!("class=\"state s-{}\"", state.as_str());
            assert!(page.as_str().contains(&badge), "{badge}: {}", page.as_str());
        }
    }

    #[test]
    fn rows_link_to_tasks_and_show_progress() {
        let mut page = task_page(vec![task(TaskState::Running)]);
        page.searched_to = Some(NOW - 86_400_000);
        let filter = Filter { tool: "deploy".to_owned(), ..Filter::default() };
        let data = TaskList { next: Some("sealed"), is_first: false, ..list(&filter, &page, 1) };
        let html = render(&context(), &data);
        check_page(&html);
        for part in [
            "href=\"./tasks/3b5819090beb\"",
            ">3b581909<",
            "<progress max=\"100\" value=\"12\"",
            "frame 31 of 240",
            "searched back to",
            "17 Nov 10:16 UTC",
            "href=\"?tool=deploy&amp;after=sealed\"",
            "1 matches",
        ] {
            assert!(html.as_str().contains(part), "{part}: {}", html.as_str());
        }
    }

    #[test]
    fn empty_list_names_the_filter_to_remove() {
        let filter =
            Filter { tool: hostile("deploy"), state: Some(TaskState::Failed), ..Filter::default() };
        let page = TaskPage::default();
        let html = render(&context(), &list(&filter, &page, 0));
        check_page(&html);
        assert!(html.as_str().contains("No task matches."), "{}", html.as_str());
        assert!(
            html.as_str().contains("href=\"?state=failed\">Remove tool</a>"),
            "{}",
            html.as_str()
        );
    }

    #[test]
    fn only_operators_with_a_filter_act_on_all_tasks() {
        let page = task_page(vec![task(TaskState::Quarantined)]);
        let filter = Filter { state: Some(TaskState::Quarantined), ..Filter::default() };
        let actions = |cx: &_, filter: &Filter| {
            let html = render(cx, &list(filter, &page, 214)).into_string();
            let all = ["Retry all", "Cancel all"];
            all.into_iter().filter(|action| html.contains(action)).collect::<Vec<_>>()
        };
        assert_eq!(actions(&context(), &filter), ["Retry all", "Cancel all"]);
        assert!(actions(&context(), &Filter::default()).is_empty());
        let mut viewer = context();
        viewer.role = outlive::people::Role::Viewer;
        assert!(actions(&viewer, &filter).is_empty());
        let ended = Filter { state: Some(TaskState::Completed), ..Filter::default() };
        assert!(actions(&context(), &ended).is_empty());
    }

    #[test]
    fn full_page_of_hostile_tasks_is_small_and_escaped() {
        let row = |at: usize| {
            let mut task = task(TaskState::ALL[at % 9]);
            task.summary.view.tool = hostile("tool");
            task.summary.view.status_message = Some(hostile("message").repeat(20));
            task.person = Some(hostile("person"));
            task.summary.view.id = outlive::store::TaskId::new(format!("task-{at}"));
            task
        };
        let page = task_page((0..50).map(row).collect());
        check_page(&render(&context(), &list(&Filter::default(), &page, 50)));
    }
}
