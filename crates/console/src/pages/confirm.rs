//! The confirmation of an action on one task.

use askama::Template;
use outlive::{people::TaskView, text};

use super::{
    context::{Frame, PageContext, Section},
    state::{StateBadge, is_terminal},
};
use crate::{
    arguments::pretty,
    html::{Html, Markup},
    status_text::cut,
    urlencoded::encode,
};

/// An action on one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskAction {
    Cancel,
    Retry,
    Rerun,
    Purge,
}

impl TaskAction {
    const ALL: [Self; 4] = [Self::Cancel, Self::Retry, Self::Rerun, Self::Purge];

    /// Returns the action with a name in an address, as in `tasks/ID/cancel`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Rerun => "rerun",
            Self::Purge => "purge",
        }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct Page<'a> {
    frame: Frame<'a>,
    heading: String,
    text: &'static str,
    button: &'static str,
    is_destructive: bool,
    badge: Markup,
    id: &'a str,
    person: String,
    age: Markup,
    error: Option<&'a str>,
    /// Arguments to edit; `None` if the action has none, or if one of them is secret.
    arguments: Option<Markup>,
    needs_force: bool,
    back: String,
}

/// Returns the confirmation of an action. Its form posts to the page: `arguments` for a rerun, and
/// `force=on` to delete a task that has not ended. `typed` has rejected arguments.
pub(crate) fn render(
    cx: &PageContext,
    action: TaskAction,
    view: &TaskView,
    typed: Option<&str>,
    error: Option<&str>,
) -> Html {
    let task = &view.detail.task.view;
    let (verb, button, text) = match action {
        TaskAction::Cancel => (
            "Cancel",
            "Cancel the task",
            "The task ends as cancelled, when its handler has stopped. This cannot be undone.",
        ),
        TaskAction::Retry => (
            "Retry",
            "Retry the task",
            "The task continues from its journal. Recorded steps do not run again.",
        ),
        TaskAction::Rerun => (
            "Run",
            "Create a new task",
            "A new task runs the same call. Scopes, limits and approvals apply again.",
        ),
        TaskAction::Purge => (
            "Delete",
            "Delete 1 task",
            "The task, its journal, its output and its result are deleted. This cannot be undone.",
        ),
    };
    let again = if action == TaskAction::Rerun { " again" } else { "" };
    let arguments = || typed.map(str::to_owned).or_else(|| editable_arguments(view));
    Html::new(&Page {
        frame: Frame::new(cx, Section::Tasks),
        heading: format!("{verb} {}{again}?", cut(&task.tool)),
        text,
        button,
        is_destructive: matches!(action, TaskAction::Cancel | TaskAction::Purge),
        badge: StateBadge::html(view.state),
        id: task.id.as_str(),
        person: view.person.as_deref().map_or_else(|| "anonymous".to_owned(), cut),
        age: cx.age(task.created_at),
        error,
        arguments: (action == TaskAction::Rerun)
            .then(arguments)
            .flatten()
            .map(|text| Markup::exact(&text)),
        needs_force: action == TaskAction::Purge && !is_terminal(view.state),
        back: format!("{}tasks/{}", cx.base, encode(task.id.as_str())),
    })
}

/// Returns the arguments of a task as text to edit; `None` if one of them is secret.
pub(crate) fn editable_arguments(view: &TaskView) -> Option<String> {
    if view.arguments.iter().any(|argument| argument.is_hidden) {
        return None;
    }
    let member = |name: &str, json: &str| {
        let name = serde_json::to_string(name).unwrap_or_default();
        format!("{name}:{json}")
    };
    let members = view.arguments.iter().map(|it| member(&it.name, &it.json));
    let object = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    Some(text::json(&pretty(&object)).into_owned())
}

#[cfg(test)]
mod tests {
    use outlive::{people::ShownArgument, store::TaskState};

    use super::{TaskAction, editable_arguments, render};
    use crate::pages::testing::{check_page, context, hostile, task_view};

    #[test]
    fn every_action_has_a_confirmation() {
        for action in TaskAction::ALL {
            assert_eq!(TaskAction::from_name(action.as_str()), Some(action));
            let error = hostile("error");
            let page =
                render(&context(), action, &task_view(TaskState::Running), None, Some(&error));
            check_page(&page);
            assert!(page.as_str().contains("name=\"form_token\""));
            let has_arguments = page.as_str().contains("<textarea");
            assert_eq!(has_arguments, action == TaskAction::Rerun, "{action:?}");
            assert_eq!(page.as_str().contains("name=\"force\""), action == TaskAction::Purge);
        }
        assert_eq!(TaskAction::from_name("view"), None);
    }

    #[test]
    fn arguments_are_edited_as_they_were_sent() {
        let mut view = task_view(TaskState::Failed);
        view.arguments =
            vec![ShownArgument::new("a\"b", "1.50"), ShownArgument::new("c", "{\"d\":[]}")];
        let text = "{\n  \"a\\\"b\": 1.50,\n  \"c\": {\n    \"d\": []\n  }\n}";
        assert_eq!(editable_arguments(&view).as_deref(), Some(text));
        view.arguments[0].is_hidden = true;
        assert_eq!(editable_arguments(&view), None);
        let page = render(&context(), TaskAction::Rerun, &view, Some(&hostile("{")), None);
        check_page(&page);
        assert!(page.as_str().contains("{&lt;script&gt;"), "typed text stays");
    }
}
