//! The answer page: shows one input request with its call, and takes the response.
//!
//! GET and HEAD change nothing, so a program that opens links decides nothing. The token in the path
//! is the only credential.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use outlive::{
    people::{AnswerError, AnswerLinks, OpenLink},
    text,
    wire::{ElicitAction, ElicitRequestParams, ElicitRequestURLParams, InputRequest},
};
use serde_json::Map;

use crate::{
    arguments::arguments,
    form::{self, Answer, Field, fields},
    html::{Style, line, lines},
    urlencoded::Values,
};

/// Shows the input request of a token.
pub(crate) async fn show(links: &AnswerLinks, style: &Style, token: &str) -> Response<Bytes> {
    match links.open(token).await {
        Ok(Some(link)) => Page::new(&link).show(style, StatusCode::OK),
        Ok(None) => unknown(style),
        Err(error) => unavailable(style, &error),
    }
}

/// Stores the submitted response to the input request of a token.
pub(crate) async fn submit(
    links: &AnswerLinks,
    style: &Style,
    token: &str,
    body: &[u8],
) -> Response<Bytes> {
    let link = match links.open(token).await {
        Ok(Some(link)) => link,
        Ok(None) => return unknown(style),
        Err(error) => return unavailable(style, &error),
    };
    let values = Values::decode(body);
    let page = Page { submitted: Some(&values), ..Page::new(&link) };
    if values.get("digest") != Some(&link.digest()) {
        let notice = "The request has changed since you opened this page. Read it again.";
        return Page { notice: Some(notice), ..page }.show(style, StatusCode::CONFLICT);
    }
    let action = match values.get("action") {
        Some("accept") => ElicitAction::Accept,
        Some("decline") => ElicitAction::Decline,
        Some("cancel") => ElicitAction::Cancel,
        _ => {
            let notice = "Choose one of the buttons at the end of the page.";
            return Page { notice: Some(notice), ..page }.show(style, StatusCode::BAD_REQUEST);
        }
    };
    let content = match action {
        ElicitAction::Accept => {
            let check = |name: &str, value: &_| link.check_field(name, value);
            let Answer { content, errors } = form::read(&page.fields, &values, check);
            if !errors.is_empty() {
                return Page { errors, ..page }.show(style, StatusCode::UNPROCESSABLE_ENTITY);
            }
            content
        }
        _ => Map::new(),
    };
    match link.respond(action, content).await {
        Ok(true) => done(style, &link, action),
        Ok(false) => unknown(style),
        Err(AnswerError::Invalid(reason)) => {
            let notice = format!("Your answer was not sent: {reason}");
            Page { notice: Some(&notice), ..page }.show(style, StatusCode::UNPROCESSABLE_ENTITY)
        }
        Err(error) => {
            tracing::warn!(%error, "an answer was not stored");
            let notice =
                "Your answer was not stored, because the server is not ready. Send it again.";
            Page { notice: Some(notice), ..page }.show(style, StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

/// Returns the page for every token that does not open. It has one text, so it tells nothing about
/// the token.
pub(crate) fn unknown(style: &Style) -> Response<Bytes> {
    let body = "<h1>This link does not work</h1>\n\
        <p>It was already used, has expired, or is not valid.</p>\n\
        <p>If the tool still waits for your answer, ask for a new link, or run \
        <code>outlive tasks answer</code>.</p>\n";
    style.page(StatusCode::NOT_FOUND, "This link does not work", body)
}

/// Returns the page for a method that the answer page does not support.
pub(crate) fn method_not_allowed(style: &Style) -> Response<Bytes> {
    let body = "<h1>Method not allowed</h1>\n<p>This page supports GET, HEAD and POST.</p>\n";
    let mut response = style.page(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", body);
    let allowed = HeaderValue::from_static("GET, HEAD, POST");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

fn unavailable(style: &Style, error: &dyn std::fmt::Display) -> Response<Bytes> {
    tracing::warn!(%error, "the input request of an answer link cannot be read");
    let body = "<h1>Try again later</h1>\n\
        <p>The server cannot read the input request at the moment. Reload this page.</p>\n";
    let mut response = style.page(StatusCode::SERVICE_UNAVAILABLE, "Try again later", body);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

fn done(style: &Style, link: &OpenLink, action: ElicitAction) -> Response<Bytes> {
    let tool = line(link.tool());
    let (title, text) = match action {
        ElicitAction::Accept => {
            ("Answer sent", format!("<code>{tool}</code> continues with your answer."))
        }
        ElicitAction::Decline => {
            ("Declined", format!("<code>{tool}</code> continues without your consent."))
        }
        _ => ("Cancelled", format!("<code>{tool}</code> continues without an answer.")),
    };
    let body = format!("<h1>{title}</h1>\n<p>{text} You can close this page.</p>\n");
    style.page(StatusCode::OK, title, &body)
}

/// The page of an open input request.
struct Page<'a> {
    link: &'a OpenLink,
    fields: Vec<Field>,
    submitted: Option<&'a Values>,
    errors: BTreeMap<String, String>,
    /// A problem that belongs to no field.
    notice: Option<&'a str>,
}

impl<'a> Page<'a> {
    fn new(link: &'a OpenLink) -> Self {
        let fields = match link.request() {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => fields(&form.requested_schema),
            _ => Vec::new(),
        };
        Self { link, fields, submitted: None, errors: BTreeMap::new(), notice: None }
    }

    fn show(&self, style: &Style, status: StatusCode) -> Response<Bytes> {
        let tool = line(self.link.tool());
        let (message, visit) = match self.link.request() {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
                (&*form.message, String::new())
            }
            InputRequest::Elicit(ElicitRequestParams::Url(url)) => (&*url.message, address(url)),
            _ => ("", String::new()),
        };
        let body = format!(
            "<h1>{tool} requests input</h1>\n{notice}{errors}<p class=\"message\">{message}</p>\n\
             <section aria-labelledby=\"call\"><h2 id=\"call\">The call</h2>\n\
             <dl><dt>Tool</dt><dd><code>{tool}</code></dd></dl>\n{arguments}</section>\n\
             {visit}{form}",
            notice = self.notice(),
            errors = form::errors(&self.fields, &self.errors),
            message = lines(message),
            arguments = arguments(self.link.arguments()),
            form = self.form(),
        );
        style.page(
            status,
            &format!("{} requests input", outlive::text::line(self.link.tool())),
            &body,
        )
    }

    fn notice(&self) -> String {
        let notice = self.notice.map(lines);
        notice
            .map(|it| format!("<div class=\"errors\" role=\"alert\"><p>{it}</p></div>\n"))
            .unwrap_or_default()
    }

    fn form(&self) -> String {
        let fields = form::render(&self.fields, self.submitted, &self.errors);
        let accept = match self.link.request() {
            InputRequest::Elicit(ElicitRequestParams::Url(_)) => "I have opened the address",
            _ if self.fields.is_empty() => "Accept",
            _ => "Send answer",
        };
        format!(
            "<form method=\"post\" novalidate>\n\
             <input type=\"hidden\" name=\"digest\" value=\"{digest}\">\n{fields}\
             <p class=\"muted\">Decline: the tool learns that you refuse. Cancel: the tool learns \
             that you give no answer.</p>\n<div class=\"buttons\">\
             <button class=\"primary\" name=\"action\" value=\"accept\">{accept}</button>\
             <button class=\"decline\" name=\"action\" value=\"decline\">Decline</button>\
             <button name=\"action\" value=\"cancel\">Cancel</button></div></form>\n",
            digest = text::html(&self.link.digest()),
        )
    }
}

/// Returns the whole address of a URL elicitation. Only a plain web address becomes a link.
fn address(params: &ElicitRequestURLParams) -> String {
    let url = &params.url;
    let is_web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let shown = line(url);
    let link = match is_web && is_plain {
        true => {
            format!("<a rel=\"noopener noreferrer\" target=\"_blank\" href=\"{shown}\">{shown}</a>")
        }
        false => format!("<code>{shown}</code>"),
    };
    format!(
        "<section aria-labelledby=\"visit\"><h2 id=\"visit\">The address to open</h2>\n\
         <p>{link}</p></section>\n"
    )
}
