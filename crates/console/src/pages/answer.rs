//! The answer page: shows one input request with its call, and takes the response.
//!
//! GET and HEAD change nothing, so a program that opens links decides nothing. The token in the path
//! is the only credential. A link belongs to the client of a call ([`AnswerLinks`]) or to a person
//! of its audience ([`People::open_link`]).

use askama::Template;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use outlive::{
    people::{
        AnswerError, AnswerLinks, AnswerReceipt, InputView, OpenLink, People, PeopleError,
        PersonLink,
    },
    store::{InboxItem, InputRequestDetail, TaskId},
    wire::ElicitAction,
};
use serde_json::{Map, value::RawValue};

use super::{
    input_request::rejection,
    request::{RequestPart, Submission, form_fields, heading, read_answer, shown_arguments},
};
use crate::{
    assets::CSS,
    form::{self, Answer},
    html::{Html, Markup},
    style::Style,
    time_text,
    urlencoded::Values,
};

const NOT_READY: &str =
    "Your answer was not stored, because the server is not ready. Send it again.";
const NO_ACTION: &str = "Choose one of the buttons at the end of the page.";
const CHANGED: &str = "The request has changed since you opened this page. Read it again.";

/// The answer links of a server, with the style of their pages.
pub(crate) struct AnswerPages {
    links: AnswerLinks,
    /// Links of people; `None` if the store has no decisions.
    people: Option<People>,
    style: Style,
}

/// An input request behind a token.
enum Opened {
    /// The client of the call responds.
    Client(Box<OpenLink>),
    /// A person of the audience responds.
    Person(Box<PersonLink>),
}

#[derive(Template)]
#[template(path = "answer.html")]
struct Page<'a> {
    title: &'a str,
    css: &'static str,
    tool: &'a str,
    text: &'a str,
    due: Option<String>,
    request: Markup,
}

impl AnswerPages {
    /// Creates the pages of a server.
    pub(crate) fn new(links: AnswerLinks, people: Option<People>) -> Self {
        Self { links, people, style: Style::new() }
    }

    /// Shows the input request of a token.
    pub(crate) async fn show(&self, token: &str) -> Response<Bytes> {
        match self.open(token).await {
            Ok(Some((_, view))) => self.request(StatusCode::OK, &view, &Submission::default()),
            Ok(None) => self.unknown(),
            Err(error) => self.unavailable(&error),
        }
    }

    /// Stores the submitted response to the input request of a token.
    pub(crate) async fn submit(&self, token: &str, body: &[u8]) -> Response<Bytes> {
        let (opened, view) = match self.open(token).await {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.unknown(),
            Err(error) => return self.unavailable(&error),
        };
        let values = Values::decode(body);
        match opened {
            Opened::Client(link) => self.submit_client(&link, &view, &values).await,
            Opened::Person(link) => self.submit_person(&link, &view, &values).await,
        }
    }

    /// Returns the page for every token that does not open. It has one text, so it tells nothing
    /// about the token.
    pub(crate) fn unknown(&self) -> Response<Bytes> {
        let text = "It was already used, has expired, or is not valid. If the tool still waits for \
                    your answer, ask for a new link, or run `outlive inbox`.";
        self.text(StatusCode::NOT_FOUND, "This link does not work", "", text)
    }

    /// Returns the page for a method that the answer page does not support.
    pub(crate) fn method_not_allowed(&self) -> Response<Bytes> {
        let (status, text) =
            (StatusCode::METHOD_NOT_ALLOWED, "This page supports GET, HEAD and POST.");
        let mut response = self.text(status, "Method not allowed", "", text);
        let allowed = HeaderValue::from_static("GET, HEAD, POST");
        response.headers_mut().insert(header::ALLOW, allowed);
        response
    }

    /// Opens a token. Returns `None` if it does not open, whatever the reason.
    async fn open(&self, token: &str) -> Result<Option<(Opened, InputView)>, PeopleError> {
        if let Some(link) = self.links.open(token).await? {
            let view = client_view(&link);
            return Ok(Some((Opened::Client(Box::new(link)), view)));
        }
        let Some(people) = &self.people else { return Ok(None) };
        let opened = async {
            let link = people.open_link(token).await?;
            let view = people.input_request(&link.visitor, &link.task, &link.name).await?;
            Ok::<_, PeopleError>((Opened::Person(Box::new(link)), view))
        };
        match opened.await {
            Ok(opened) => Ok(Some(opened)),
            Err(PeopleError::Store(error)) => Err(PeopleError::Store(error)),
            Err(_) => Ok(None),
        }
    }

    async fn submit_client(
        &self,
        link: &OpenLink,
        view: &InputView,
        values: &Values,
    ) -> Response<Bytes> {
        let reject = |status, notice: &str| {
            let notice = Some(notice.to_owned());
            let submission = Submission { values: Some(values), notice, ..Submission::default() };
            self.request(status, view, &submission)
        };
        if values.get("digest") != Some(&view.digest) {
            return reject(StatusCode::CONFLICT, CHANGED);
        }
        let action = match values.get("action") {
            Some("accept") => ElicitAction::Accept,
            Some("decline") => ElicitAction::Decline,
            Some("cancel") => ElicitAction::Cancel,
            _ => return reject(StatusCode::BAD_REQUEST, NO_ACTION),
        };
        let mut content = Map::new();
        if action == ElicitAction::Accept {
            let check = |name: &str, value: &_| link.check_field(name, value);
            let read = form::read(&form_fields(link.request()), values, check);
            let Answer { content: typed, errors } = read;
            if !errors.is_empty() {
                let submission = Submission { values: Some(values), errors, notice: None };
                return self.request(StatusCode::UNPROCESSABLE_ENTITY, view, &submission);
            }
            content = typed;
        }
        match link.respond(action, content).await {
            Ok(true) => self.done(link.tool(), action),
            Ok(false) => self.unknown(),
            Err(AnswerError::Invalid(reason)) => {
                let notice = format!("Your answer was not sent: {reason}");
                reject(StatusCode::UNPROCESSABLE_ENTITY, &notice)
            }
            Err(error) => {
                tracing::warn!(%error, "an answer was not stored");
                reject(StatusCode::SERVICE_UNAVAILABLE, NOT_READY)
            }
        }
    }

    async fn submit_person(
        &self,
        link: &PersonLink,
        view: &InputView,
        values: &Values,
    ) -> Response<Bytes> {
        let Some(people) = &self.people else { return self.unknown() };
        let answer = match read_answer(view, values) {
            Ok(answer) => answer,
            Err(submission) => return self.request(StatusCode::BAD_REQUEST, view, &submission),
        };
        let accepts = answer.accepts;
        let PersonLink { visitor, task, name, .. } = link;
        let (status, submission) = match people.answer(visitor, task, name, answer).await {
            Ok(receipt) => match rejection(receipt) {
                None => return self.voted(view, receipt, accepts),
                Some(notice) => (StatusCode::CONFLICT, Submission::notice(values, notice)),
            },
            Err(PeopleError::Invalid(errors)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Submission::invalid(values, &errors))
            }
            Err(PeopleError::NotFound) => return self.unknown(),
            Err(PeopleError::Store(error)) => {
                tracing::warn!(%error, "a vote was not stored");
                (StatusCode::SERVICE_UNAVAILABLE, Submission::notice(values, NOT_READY))
            }
            Err(error) => (StatusCode::FORBIDDEN, Submission::notice(values, &error.to_string())),
        };
        // The request may have been settled meanwhile.
        match people.input_request(visitor, task, name).await {
            Ok(view) => self.request(status, &view, &submission),
            Err(_) => self.request(status, view, &submission),
        }
    }

    fn request(
        &self,
        status: StatusCode,
        view: &InputView,
        submission: &Submission<'_>,
    ) -> Response<Bytes> {
        let item = &view.detail.item;
        let clock = |at| Markup::from_html(time_text::exact(at));
        // Only a client may give no answer; a vote is yes or no.
        let can_cancel = !item.audience.is_people();
        let request = RequestPart::new(view, submission, clock).can_cancel(can_cancel);
        let (title, request) = (heading(item), Markup::new(&request));
        let due = item.due.map(time_text::exact);
        let page = Page { title: &title, css: CSS, tool: "", text: "", due, request };
        self.style.page(status, Html::new(&page))
    }

    fn done(&self, tool: &str, action: ElicitAction) -> Response<Bytes> {
        let (title, text) = match action {
            ElicitAction::Accept => ("Answer sent", "continues with your answer."),
            ElicitAction::Decline => ("Declined", "continues without your consent."),
            _ => ("Cancelled", "continues without an answer."),
        };
        let text = format!("{text} You can close this page.");
        self.text(StatusCode::OK, title, tool, &text)
    }

    fn voted(&self, view: &InputView, receipt: AnswerReceipt, accepts: bool) -> Response<Bytes> {
        let item = &view.detail.item;
        let (title, text) = match (item.binding.is_some(), accepts, receipt) {
            (true, true, AnswerReceipt::Counted { approvals, needed }) => {
                ("Vote recorded", format!("has {approvals} of {needed} votes."))
            }
            (true, true, _) => ("Approved", "runs when its caller is ready.".to_owned()),
            (true, false, _) => ("Denied", "does not run.".to_owned()),
            (false, true, _) => ("Answer sent", "continues with your answer.".to_owned()),
            (false, false, _) => ("Declined", "continues without your consent.".to_owned()),
        };
        let text = format!("{text} You can close this page.");
        self.text(StatusCode::OK, title, &item.tool, &text)
    }

    fn unavailable(&self, error: &dyn std::fmt::Display) -> Response<Bytes> {
        tracing::warn!(%error, "the input request of an answer link cannot be read");
        let text = "The server cannot read the input request at the moment. Reload this page.";
        let mut response = self.text(StatusCode::SERVICE_UNAVAILABLE, "Try again later", "", text);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        response
    }

    fn text(&self, status: StatusCode, title: &str, tool: &str, text: &str) -> Response<Bytes> {
        let page = Page { title, css: CSS, tool, text, due: None, request: Markup::default() };
        self.style.page(status, Html::new(&page))
    }
}

/// Returns the request of a link that belongs to the client of the call.
fn client_view(link: &OpenLink) -> InputView {
    // The holder of such a link does not learn the task and its principal.
    let (task, call) = (TaskId::new(""), RawValue::NULL.to_owned());
    let item = InboxItem::new(task, "", link.tool(), "", call, link.request().clone());
    let mut view = InputView::new(InputRequestDetail::new(item), link.digest());
    view.arguments = shown_arguments(link.arguments());
    view.can_answer = true;
    view
}
