//! The page of one input request, which a person reads before deciding.

use askama::Template;
use outlive::people::{AnswerReceipt, InputView};

use super::{
    context::{Frame, PageContext, Section},
    request::{RequestPart, Submission, heading},
};
use crate::{
    html::{Html, Markup},
    urlencoded::encode,
};

#[derive(Template)]
#[template(path = "input_request.html")]
struct Page<'a> {
    frame: Frame<'a>,
    heading: String,
    request: Markup,
    opened: Markup,
    due: Option<(Markup, Markup)>,
    settled: Option<Markup>,
    /// Address of the task, if the visitor sees it.
    task: Option<String>,
}

/// Returns the page of an input request. After a rejected submission, the page keeps everything
/// that was typed.
pub(crate) fn render(cx: &PageContext, view: &InputView, submission: &Submission<'_>) -> Html {
    let item = &view.detail.item;
    let task = format!("{}tasks/{}", cx.base, encode(item.task.as_str()));
    let request = RequestPart::new(view, submission, |at| cx.clock(at)).form_token(&cx.form_token);
    Html::new(&Page {
        frame: Frame::new(cx, Section::Inbox).tasks([item.task.as_str()]),
        heading: heading(item),
        request: Markup::new(&request),
        opened: cx.ago(item.opened_at),
        due: item.due.map(|due| (cx.clock(due), cx.left(due))),
        settled: item.settled_at.map(|at| cx.ago(at)),
        task: (view.is_own || cx.sees_all()).then_some(task),
    })
}

/// Returns the text for a receipt that did not record the answer; `None` if it was recorded.
pub(crate) fn rejection(receipt: AnswerReceipt) -> Option<&'static str> {
    match receipt {
        AnswerReceipt::Settled | AnswerReceipt::Counted { .. } => None,
        AnswerReceipt::AlreadyVoted => Some("You have voted before. Your first vote counts."),
        AnswerReceipt::AlreadySettled => Some("The request was settled before your answer."),
        AnswerReceipt::DigestDiffers => {
            Some("The request has changed since you opened this page. Read it again.")
        }
        AnswerReceipt::Withdrawn => Some("The request was withdrawn before your answer."),
        AnswerReceipt::Expired => Some("The request expired before your answer."),
        _ => Some("Your answer was not recorded. Reload the page."),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outlive::{people::ShownArgument, store::InputRequestState};
    use serde_json::json;

    use super::{Submission, render};
    use crate::{
        pages::testing::{
            NOW, approval, check_live, check_page, context, elicitation, hostile, input_view, raw,
            vote,
        },
        urlencoded::Values,
    };

    #[test]
    fn approval_shows_everything_that_it_covers() {
        let mut view = input_view(approval("deploy"));
        view.previous = vec![ShownArgument::new("version", "\"1.4.1\"")];
        view.runs = Some(["./deploy", "--", "1.4.2", "prod"].map(str::to_owned).to_vec());
        view.tool_description = Some("Deploys a version.".to_owned());
        view.detail.votes = vec![vote("ben", true)];
        let mut cx = context();
        cx.base = "../../".to_owned();
        let page = render(&cx, &view, &Submission::default());
        check_page(&page);
        for part in [
            "<h1>Approve deploy?</h1>",
            "was &quot;1.4.1&quot; in the last approved call",
            "was absent in the last approved call",
            "<code>./deploy -- 1.4.2 prod</code>",
            "Deploys a version.",
            "the call runs once, for ann",
            "2 votes of ada, ben or cid",
            "ben approved at",
            "<code>4ade·91c2</code>",
            "value=\"accept\">Approve</button>",
            "value=\"decline\">Deny</button>",
            "name=\"form_token\" value=\"token\"",
            "href=\"../../tasks/task-1\"",
        ] {
            assert!(page.as_str().contains(part), "{part}: {}", page.as_str());
        }
        let (approve, deny) = (page.as_str().find(">Approve<"), page.as_str().find(">Deny<"));
        assert!(approve < deny, "the buttons have one order");
    }

    #[test]
    fn settled_request_shows_the_decision_and_no_button() {
        let mut view = input_view(approval("deploy"));
        view.can_answer = false;
        view.detail.item.state = InputRequestState::Answered;
        view.detail.item.settled_at = Some(NOW - 60_000);
        view.detail.votes = vec![vote("ben", false)];
        view.detail.response = Some(raw(&json!({"action": "decline", "reason": "not now"})));
        let page = render(&context(), &view, &Submission::default());
        check_page(&page);
        assert!(page.as_str().contains("Denied by ben: “not now”."), "{}", page.as_str());
        assert!(!page.as_str().contains("<button"), "{}", page.as_str());
        view.detail.item.state = InputRequestState::Withdrawn;
        let page = render(&context(), &view, &Submission::default());
        assert!(page.as_str().contains("This request was withdrawn."));
    }

    #[test]
    fn rejected_form_keeps_typed_text_and_names_errors() {
        let view = input_view(elicitation("report", "Which quarter?"));
        let values = Values::decode(b"field.quarter=fi%22ve");
        let errors = BTreeMap::from([("quarter".to_owned(), "must be a whole number".to_owned())]);
        let submission = Submission { values: Some(&values), errors, notice: None };
        let page = render(&context(), &view, &submission);
        check_page(&page);
        assert!(page.as_str().contains("value=\"fi&quot;ve\""), "{}", page.as_str());
        assert!(page.as_str().contains("<a href=\"#field0\">quarter must be a whole number</a>"));
    }

    #[test]
    fn denial_without_reason_names_the_field() {
        let view = input_view(approval("deploy"));
        let errors = BTreeMap::from([("reason".to_owned(), "is required to deny".to_owned())]);
        let page = render(&context(), &view, &Submission { errors, ..Submission::default() });
        check_page(&page);
        assert!(page.as_str().contains("This field is required to deny"), "{}", page.as_str());
        assert!(page.as_str().contains("<a href=\"#reason\">Reason is required to deny</a>"));
    }

    #[test]
    fn hostile_text_is_shown_as_text() {
        let mut view = input_view(elicitation(&hostile("tool"), &hostile("message")));
        let json = json!(hostile("value")).to_string();
        view.arguments = vec![ShownArgument::new(hostile("name"), json)];
        view.runs = Some(vec![hostile("word")]);
        view.tool_description = Some(hostile("description"));
        view.detail.item.person = Some(hostile("person"));
        let mut ben = vote(&hostile("ben"), true);
        ben.reason = Some(hostile("reason"));
        view.detail.votes = vec![ben];
        view.digest = hostile("digest");
        let notice = Some(hostile("notice"));
        let page = render(&context(), &view, &Submission { notice, ..Submission::default() });
        check_page(&page);
        check_live(&page);
    }
}
