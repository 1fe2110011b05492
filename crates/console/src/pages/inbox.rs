//! The inbox: the open input requests of a visitor, oldest first.

use askama::Template;
use outlive::{
    people::{InboxEntry, InboxPage, ShownArgument},
    store::{InboxItem, InputRequestState},
    wire::{ElicitRequestParams, InputRequest},
};

use super::context::{Frame, PageContext, Section};
use crate::{
    html::{Html, Markup},
    status_text::{cut, message},
    time_text::count,
    urlencoded::encode,
};

/// Maximum number of arguments in a row.
const MAX_ARGUMENTS: usize = 4;

/// Maximum number of characters of an argument in a row.
const MAX_ARGUMENT: usize = 40;

#[derive(Template)]
#[template(path = "inbox.html")]
struct Page<'a> {
    frame: Frame<'a>,
    rows: Vec<Row>,
    /// Whether no request is open, so that the rows are settled requests.
    is_empty: bool,
    next: Option<&'a str>,
}

/// An input request in the list.
struct Row {
    href: String,
    icon: &'static str,
    tool: String,
    /// Number of equal calls; zero if there is one.
    equal: usize,
    /// Names and values of arguments.
    arguments: Vec<(String, String)>,
    message: String,
    kind: String,
    caller: String,
    opened: Markup,
    end: Option<Markup>,
}

/// Returns the inbox. `next` is the address of older requests; `settled` has the last settled ones,
/// which an empty inbox shows.
pub(crate) fn render(
    cx: &PageContext,
    page: &InboxPage,
    settled: &[InboxEntry],
    next: Option<&str>,
) -> Html {
    let is_empty = page.items.is_empty();
    let rows = match is_empty {
        true => settled.iter().map(|entry| Row::settled(cx, entry)).collect(),
        false => page.items.iter().map(|entry| Row::new(cx, entry)).collect(),
    };
    Html::new(&Page { frame: Frame::new(cx, Section::Inbox), rows, is_empty, next })
}

impl Row {
    fn new(cx: &PageContext, entry: &InboxEntry) -> Self {
        let item = &entry.item;
        let is_approval = item.binding.is_some();
        let arguments = match is_approval {
            true => entry.arguments.iter().take(MAX_ARGUMENTS).map(short).collect(),
            false => Vec::new(),
        };
        let more = entry.arguments.len().saturating_sub(MAX_ARGUMENTS);
        let message = match (is_approval, entry.shows_contents) {
            (_, false) => "contents are visible to the caller only".to_owned(),
            (true, true) if more > 0 => format!("and {more} more"),
            (true, true) => String::new(),
            (false, true) => message(&item.request).map(cut).unwrap_or_default(),
        };
        Self {
            href: address(cx, item),
            icon: if is_approval { "input-required" } else { "form" },
            tool: item.tool.clone(),
            equal: if entry.equal > 1 { entry.equal } else { 0 },
            arguments,
            message,
            kind: kind(item),
            caller: match (entry.is_own, &item.person) {
                (true, _) => "yours".to_owned(),
                (false, Some(person)) => cut(person),
                (false, None) => "anonymous".to_owned(),
            },
            opened: cx.ago(item.opened_at),
            end: item.due.map(|due| cx.left(due)),
        }
    }

    fn settled(cx: &PageContext, entry: &InboxEntry) -> Self {
        let item = &entry.item;
        let kind = match item.state {
            InputRequestState::Open => "open, you voted",
            InputRequestState::Answered => "settled",
            InputRequestState::Withdrawn => "withdrawn",
        };
        let end = item.settled_at.map(|at| cx.ago(at));
        Self { kind: kind.to_owned(), end, ..Self::new(cx, entry) }
    }
}

/// Returns the address of an input request.
fn address(cx: &PageContext, item: &InboxItem) -> String {
    format!("{}inputs/{}/{}", cx.base, encode(item.task.as_str()), encode(&item.name))
}

/// Returns the kind of a request, as in `approval, 1 of 2 votes`.
fn kind(item: &InboxItem) -> String {
    if let Some(binding) = &item.binding {
        return match binding.count {
            0 | 1 => "approval".to_owned(),
            needed => format!("approval, {} of {}", item.approvals, count(needed.into(), "vote")),
        };
    }
    match &item.request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            match form.requested_schema.properties.0.len() {
                0 => "confirmation".to_owned(),
                fields => format!("form, {}", count(fields as u64, "field")),
            }
        }
        InputRequest::Elicit(ElicitRequestParams::Url(_)) => "address to open".to_owned(),
        _ => "input".to_owned(),
    }
}

/// Returns name and value of an argument in a few characters. A text has no quotes.
fn short(argument: &ShownArgument) -> (String, String) {
    let text = argument.text();
    let value = serde_json::from_str::<String>(&text).unwrap_or_else(|_| text.into_owned());
    let value = cut(&value);
    let value = match value.char_indices().nth(MAX_ARGUMENT) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    };
    (cut(&argument.name), value)
}

#[cfg(test)]
mod tests {
    use outlive::people::InboxPage;

    use super::render;
    use crate::pages::testing::{
        approval, check_live, check_page, context, elicitation, hostile, inbox_entry, inbox_page,
    };

    #[test]
    fn empty_inbox_explains_itself_and_shows_settled_requests() {
        let page = render(&context(), &InboxPage::default(), &[], None);
        check_page(&page);
        assert!(page.as_str().contains("No input request is open for you."));
        assert!(!page.as_str().contains("Last settled"));
        let settled = [inbox_entry(approval("deploy"))];
        let page = render(&context(), &InboxPage::default(), &settled, None);
        check_page(&page);
        assert!(page.as_str().contains("Last settled"), "{}", page.as_str());
    }

    #[test]
    fn rows_show_call_kind_caller_and_end() {
        let mut own = inbox_entry(elicitation("report", "Which quarter?"));
        own.is_own = true;
        let mut equal = inbox_entry(approval("deploy"));
        equal.equal = 3;
        let page = render(&context(), &inbox_page(vec![equal, own]), &[], Some("?after=x"));
        check_page(&page);
        check_live(&page);
        for part in [
            "href=\"./inputs/task-1/%23approval\"",
            "<b>1.4.2</b>",
            "×3",
            "approval, 1 of 2 votes",
            "Which quarter?",
            "form, 1 field",
            ">yours",
            "7 h left</time>",
            "href=\"?after=x\"",
        ] {
            assert!(page.as_str().contains(part), "{part}: {}", page.as_str());
        }
    }

    #[test]
    fn hostile_text_is_shown_as_text() {
        let mut item = elicitation(&hostile("tool"), &hostile("message"));
        item.person = Some(hostile("person"));
        item.name = hostile("key");
        let page = render(&context(), &inbox_page(vec![inbox_entry(item)]), &[], None);
        check_page(&page);
        assert!(page.as_str().contains("tool&lt;script&gt;"), "{}", page.as_str());
    }
}
