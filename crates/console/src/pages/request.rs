//! An input request with its call: the part that the input request page and the answer page share.

use std::collections::BTreeMap;

use askama::Template;
use outlive::{
    people::{Answer, FieldError, InputView, ShownArgument},
    store::{InboxItem, InputRequestDetail, InputRequestState, UnixMillis, Vote},
    wire::{ElicitRequestParams, InputRequest, OrderedMap, RawJson},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    arguments::Argument,
    form::{self, Field, fields},
    html::Markup,
    status_text::{cut, message, people},
    time_text,
    urlencoded::Values,
};

/// Number of characters of a digest that a page shows.
const SHOWN_DIGEST: usize = 8;

/// Values that a person submitted and the server did not accept.
#[derive(Default)]
pub(crate) struct Submission<'a> {
    pub(crate) values: Option<&'a Values>,
    /// Errors by field name. Each is a predicate whose subject is the field.
    pub(crate) errors: BTreeMap<String, String>,
    /// An error that belongs to no field.
    pub(crate) notice: Option<String>,
}

impl<'a> Submission<'a> {
    /// Creates a submission with an error that belongs to no field.
    pub(crate) fn notice(values: &'a Values, notice: &str) -> Self {
        Self { values: Some(values), notice: Some(notice.to_owned()), ..Self::default() }
    }

    /// Creates a submission with errors of fields.
    pub(crate) fn invalid(values: &'a Values, errors: &[FieldError]) -> Self {
        let (of_fields, others): (Vec<_>, Vec<_>) =
            errors.iter().partition(|error| !error.field.is_empty());
        let of_fields = of_fields.into_iter();
        let notice = others.first().map(|error| format!("Your answer {}", error.message));
        let errors = of_fields.map(|error| (error.field.clone(), error.message.clone()));
        Self { values: Some(values), errors: errors.collect(), notice }
    }
}

/// Reads the answer that a form submits.
///
/// # Errors
///
/// If the form has no known action, or a value that its field cannot have.
pub(crate) fn read_answer<'a>(
    view: &InputView,
    values: &'a Values,
) -> Result<Answer, Submission<'a>> {
    let accepts = match values.get("action") {
        Some("accept") => true,
        Some("decline") => false,
        _ => {
            let notice = "Choose one of the buttons at the end of the page.";
            return Err(Submission::notice(values, notice));
        }
    };
    let fields = answer_fields(&view.detail.item);
    let mut content = None;
    if accepts && !fields.is_empty() {
        // The function behind the page validates the values.
        let read = form::read(&fields, values, |_, _| Ok(()));
        if !read.errors.is_empty() {
            return Err(Submission { values: Some(values), errors: read.errors, notice: None });
        }
        content = Some(Value::Object(read.content));
    }
    let digest = values.get("digest").unwrap_or_default().to_owned();
    let reason = values.get("reason").map(str::to_owned);
    Ok(Answer { digest, accepts, content, reason })
}

/// Returns arguments as a view has them.
pub(crate) fn shown_arguments(arguments: Option<&RawJson>) -> Vec<ShownArgument> {
    let Some(arguments) = arguments else { return Vec::new() };
    match serde_json::from_str::<OrderedMap<RawJson>>(arguments.get()) {
        Ok(members) => {
            members.0.iter().map(|(name, json)| ShownArgument::new(name, json.get())).collect()
        }
        Err(_) => vec![ShownArgument::new("arguments", arguments.get())],
    }
}

/// An input request with its call.
#[derive(Template)]
#[template(path = "request.html")]
pub(crate) struct RequestPart {
    tool: String,
    notice: Option<String>,
    errors: Markup,
    message: String,
    /// Address of a URL elicitation, and whether it becomes a link.
    address: Option<(String, bool)>,
    shows_contents: bool,
    arguments: Vec<Argument>,
    runs: Option<String>,
    facts: Vec<(&'static str, String)>,
    votes: Vec<VoteRow>,
    /// State of a request that the visitor cannot answer.
    state: Option<String>,
    form: Option<FormPart>,
    /// Token that the form must repeat; `None` if its address is the credential.
    form_token: Option<String>,
    /// Whether the person may also give no answer.
    can_cancel: bool,
}

struct VoteRow {
    person: String,
    word: &'static str,
    at: Markup,
    channel: String,
    reason: String,
}

/// The form of an open request.
struct FormPart {
    is_approval: bool,
    digest: String,
    shown_digest: String,
    fields: Markup,
    reason: Markup,
    reason_error: Option<String>,
    accept: &'static str,
}

impl RequestPart {
    /// Creates the part of a request. `clock` shows a time.
    pub(crate) fn new(
        view: &InputView,
        submission: &Submission<'_>,
        clock: impl Fn(UnixMillis) -> Markup,
    ) -> Self {
        let InputRequestDetail { item, votes, .. } = &view.detail;
        let fields = answer_fields(item);
        let has_form = view.can_answer;
        let is_approval = item.binding.is_some();
        let message = match is_approval {
            true => String::new(),
            false => message(&item.request).unwrap_or_default().to_owned(),
        };
        Self {
            tool: cut(&item.tool),
            notice: submission.notice.clone(),
            errors: errors(item, submission),
            message,
            address: address(&item.request),
            shows_contents: view.shows_contents,
            arguments: compared(&view.arguments, &view.previous),
            runs: view.runs.as_deref().map(command_line),
            facts: facts(view),
            votes: votes.iter().map(|vote| VoteRow::new(vote, &clock)).collect(),
            state: (!has_form).then(|| state(view)),
            form: has_form.then(|| FormPart::new(view, &fields, submission)),
            form_token: None,
            can_cancel: false,
        }
    }

    /// Sets the token that the form must repeat.
    pub(crate) fn form_token(mut self, token: &str) -> Self {
        self.form_token = Some(token.to_owned());
        self
    }

    /// Sets whether the person may also give no answer.
    pub(crate) fn can_cancel(mut self, can_cancel: bool) -> Self {
        self.can_cancel = can_cancel;
        self
    }
}

/// Returns the heading of a request.
pub(crate) fn heading(item: &InboxItem) -> String {
    let tool = cut(&item.tool);
    match item.binding.is_some() {
        true => format!("Approve {tool}?"),
        false => format!("{tool} requests input"),
    }
}

impl VoteRow {
    fn new(vote: &Vote, clock: impl Fn(UnixMillis) -> Markup) -> Self {
        Self {
            person: cut(&vote.person),
            word: if vote.accepts { "approved" } else { "denied" },
            at: clock(vote.at),
            channel: match vote.channel.as_str() {
                "link" => ", by link".to_owned(),
                _ => String::new(),
            },
            reason: vote.reason.clone().unwrap_or_default(),
        }
    }
}

impl FormPart {
    fn new(view: &InputView, fields: &[Field], submission: &Submission<'_>) -> Self {
        let item = &view.detail.item;
        let is_approval = item.binding.is_some();
        let digest: String = view.digest.chars().take(SHOWN_DIGEST).collect();
        let (start, end) = digest.split_at_checked(SHOWN_DIGEST / 2).unwrap_or((&digest, ""));
        let typed = submission.values.and_then(|values| values.get("reason"));
        Self {
            is_approval,
            digest: view.digest.clone(),
            shown_digest: format!("{start}·{end}"),
            fields: Markup::from_html(form::render(fields, submission.values, &submission.errors)),
            reason: Markup::exact(typed.unwrap_or_default()),
            reason_error: submission.errors.get("reason").filter(|_| is_approval).cloned(),
            accept: match &item.request {
                _ if is_approval => "Approve",
                InputRequest::Elicit(ElicitRequestParams::Url(_)) => "I have opened the address",
                _ if fields.is_empty() => "Accept",
                _ => "Send answer",
            },
        }
    }
}

/// Returns the fields that a person fills in. An approval has none beside the reason, whatever form
/// a client shows for it.
fn answer_fields(item: &InboxItem) -> Vec<Field> {
    match item.binding {
        Some(_) => Vec::new(),
        None => form_fields(&item.request),
    }
}

/// Returns the fields of a form.
pub(crate) fn form_fields(request: &InputRequest) -> Vec<Field> {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => fields(&form.requested_schema),
        _ => Vec::new(),
    }
}

fn errors(item: &InboxItem, submission: &Submission<'_>) -> Markup {
    let mut fields = answer_fields(item);
    if item.binding.is_some() {
        fields.push(Field::own("reason", "Reason"));
    }
    Markup::from_html(form::errors(&fields, &submission.errors))
}

/// Returns the arguments with the values of the last approved call, where they differ.
fn compared(arguments: &[ShownArgument], previous: &[ShownArgument]) -> Vec<Argument> {
    let compared = arguments.iter().map(|argument| {
        let mut shown = Argument::new(argument);
        if !previous.is_empty() && !argument.is_hidden {
            let earlier = previous.iter().find(|it| it.name == argument.name);
            shown.previous = match earlier {
                Some(earlier) if earlier.is_hidden || earlier.json == argument.json => None,
                Some(earlier) => Some(format!("was {}", cut(&earlier.json))),
                None => Some("was absent".to_owned()),
            };
        }
        shown
    });
    compared.collect()
}

/// Fact about an approval whose command this server cannot show.
const OTHER_DEFINITION: &str = "the tool has changed since the call was made; if you approve, you are asked again with what then runs";

fn facts(view: &InputView) -> Vec<(&'static str, String)> {
    let item = &view.detail.item;
    let caller = match (view.is_own, &item.person) {
        (true, _) => "you".to_owned(),
        (false, Some(person)) => person.clone(),
        (false, None) => "anonymous".to_owned(),
    };
    let mut facts = Vec::new();
    facts.extend(view.tool_description.clone().map(|text| ("description", text)));
    // The holder of a client's link does not learn the caller.
    if !item.principal.is_empty() {
        facts.push(("caller", caller.clone()));
    }
    if let Some(binding) = &item.binding {
        facts.push(("then", format!("the call runs once, for {caller}")));
        let needed = time_text::count(binding.count.max(1).into(), "vote");
        facts.push(("needs", format!("{needed} of {}", people(&item.audience))));
        if !view.has_definition && item.state == InputRequestState::Open {
            facts.push(("changed", OTHER_DEFINITION.to_owned()));
        }
    }
    facts
}

/// Returns the words of a command as one line. A word that contains a space has quotes.
fn command_line(words: &[String]) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:=@%+,{}".contains(char);
    let words = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("{word:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the address of a URL elicitation. Only a plain web address becomes a link.
fn address(request: &InputRequest) -> Option<(String, bool)> {
    let InputRequest::Elicit(ElicitRequestParams::Url(params)) = request else { return None };
    let url = &*params.url;
    let is_web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    Some((url.to_owned(), is_web && is_plain))
}

/// Returns why the visitor cannot answer.
fn state(view: &InputView) -> String {
    let InputRequestDetail { item, votes, response, .. } = &view.detail;
    match item.state {
        InputRequestState::Withdrawn => "This request was withdrawn.".to_owned(),
        InputRequestState::Answered => settled(item, votes, response.as_ref().map(|it| it.get())),
        InputRequestState::Open => match item.binding.is_some() {
            true => format!("Open. {} can decide.", capitalized(&people(&item.audience))),
            false => format!("Open. {} can respond.", capitalized(&people(&item.audience))),
        },
    }
}

fn settled(item: &InboxItem, votes: &[Vote], response: Option<&str>) -> String {
    #[derive(Deserialize)]
    struct Settled {
        action: String,
        reason: Option<String>,
    }
    let settled = response.and_then(|json| serde_json::from_str::<Settled>(json).ok());
    let accepted = settled.as_ref().is_none_or(|it| it.action == "accept");
    let word = match (item.binding.is_some(), accepted) {
        (true, true) => "Approved",
        (true, false) => "Denied",
        (false, true) => "Answered",
        (false, false) => "Declined",
    };
    let voters = votes.iter().filter(|vote| vote.accepts == accepted);
    let voters: Vec<String> = voters.map(|vote| cut(&vote.person)).collect();
    let by = match voters.is_empty() {
        true => String::new(),
        false => format!(" by {}", voters.join(", ")),
    };
    let reason = settled.and_then(|it| it.reason).map(|reason| format!(": “{}”", cut(&reason)));
    format!("{word}{by}{}.", reason.unwrap_or_default())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn command_shows_the_words_that_the_system_receives() {
        let words =
            ["./deploy", "--", "1.4.2", "two words", "", "$(rm)", "a\"b"].map(str::to_owned);
        let line = "./deploy -- 1.4.2 \"two words\" \"\" \"$(rm)\" \"a\\\"b\"";
        assert_eq!(command_line(&words), line);
    }
}
