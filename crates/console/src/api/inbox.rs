//! `GET me`, `GET inbox`, `GET inputs/TASK/KEY`.

use http::StatusCode;
use outlive::{
    people::{InputView, Role, ShownArgument},
    store::{InboxItem, InputRequestState, Vote},
    wire::{ElicitRequestParams, InputRequest, RawJson},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{call::ApiCall, error::ApiError};
use crate::{
    http::{Reply, json},
    sign_in::form_token,
    times,
};

/// Path that form tokens of the API are sealed for.
pub(crate) const FORM_PATH: &str = "api/v1";

/// Returns the person and its role.
pub(crate) fn me(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Me<'a> {
        person: Option<&'a str>,
        role: &'static str,
        may_decide: bool,
        /// For scripts of the pages: the header `x-form-token` of their changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        form_token: Option<String>,
    }
    let visitor = call.visitor();
    let vault = &call.state.sign_in.vault;
    let session = call.signed_in.session.as_ref();
    let form_token = session.map(|it| form_token::create(vault, &it.digest, FORM_PATH));
    let (person, may_decide) = (visitor.person(), visitor.may_decide());
    let me = Me { person, role: role(visitor.role()), may_decide, form_token };
    Ok(json(StatusCode::OK, &me))
}

/// Returns the open input requests of the person, oldest first.
pub(crate) async fn inbox(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    #[derive(Serialize)]
    struct Inbox<'a> {
        requests: Vec<Listed<'a>>,
        next: Option<String>,
    }
    #[derive(Serialize)]
    struct Listed<'a> {
        #[serde(flatten)]
        request: Request<'a>,
        equal: usize,
        is_own: bool,
        arguments: Vec<Argument<'a>>,
    }
    let after = call.after()?;
    let page = call.people().inbox(call.visitor(), after.as_ref(), call.limit()?).await?;
    let listed = page.items.iter().map(|entry| Listed {
        request: Request::new(&entry.item),
        equal: entry.equal,
        is_own: entry.is_own,
        arguments: arguments(&entry.arguments),
    });
    let inbox = Inbox { requests: listed.collect(), next: call.next(page.next.clone()) };
    Ok(json(StatusCode::OK, &inbox))
}

/// Returns one input request with everything that its decision covers.
pub(crate) async fn input_request(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let view = call.people().input_request(call.visitor(), &call.task(), call.param(1)).await?;
    Ok(json(StatusCode::OK, &InputJson::new(&view)))
}

/// An input request in JSON.
#[derive(Serialize)]
pub(crate) struct InputJson<'a> {
    #[serde(flatten)]
    request: Request<'a>,
    digest: &'a str,
    can_answer: bool,
    can_link: bool,
    is_own: bool,
    /// Name and version of the client that made the call, as the client claims.
    client: Option<&'a str>,
    /// Request to the person, as in MCP; `null` if the visitor may not see it.
    input: Option<&'a InputRequest>,
    arguments: Vec<Argument<'a>>,
    previous: Vec<Argument<'a>>,
    runs: Option<&'a [String]>,
    tool_description: Option<&'a str>,
    votes: Vec<VoteJson<'a>>,
}

impl<'a> InputJson<'a> {
    pub(crate) fn new(view: &'a InputView) -> Self {
        Self {
            request: Request::new(&view.detail.item),
            digest: &view.digest,
            can_answer: view.can_answer,
            can_link: view.can_link,
            is_own: view.is_own,
            client: view.client.as_deref(),
            input: view.shows_contents.then_some(&view.detail.item.request),
            arguments: arguments(&view.arguments),
            previous: arguments(&view.previous),
            runs: view.runs.as_deref(),
            tool_description: view.tool_description.as_deref(),
            votes: view.detail.votes.iter().map(VoteJson::new).collect(),
        }
    }
}

/// An input request in a list.
#[derive(Serialize)]
struct Request<'a> {
    task: &'a str,
    key: &'a str,
    tool: &'a str,
    caller: Option<&'a str>,
    kind: &'static str,
    state: &'static str,
    message: Option<&'a str>,
    audience: &'static str,
    names: &'a [String],
    scope: Option<&'a str>,
    approvals: u32,
    needed: u32,
    opened_at: String,
    settled_at: Option<String>,
    open_until: Option<String>,
}

impl<'a> Request<'a> {
    fn new(item: &'a InboxItem) -> Self {
        let (kind, message) = kind(item);
        let (names, scope) = item.audience.addressees();
        Self {
            task: item.task.as_str(),
            key: &item.name,
            tool: &item.tool,
            caller: item.person.as_deref(),
            kind,
            state: state(item.state),
            message,
            audience: item.audience.as_str(),
            names,
            scope,
            approvals: item.approvals,
            needed: item.binding.as_ref().map_or(1, |binding| binding.count),
            opened_at: times::text(item.opened_at),
            settled_at: item.settled_at.map(times::text),
            open_until: item.due.map(times::text),
        }
    }
}

/// A vote in JSON.
#[derive(Serialize)]
struct VoteJson<'a> {
    person: &'a str,
    action: &'static str,
    reason: Option<&'a str>,
    channel: &'a str,
    voted_at: String,
}

impl<'a> VoteJson<'a> {
    fn new(vote: &'a Vote) -> Self {
        Self {
            person: &vote.person,
            action: if vote.accepts { "accept" } else { "decline" },
            reason: vote.reason.as_deref(),
            channel: &vote.channel,
            voted_at: times::text(vote.at),
        }
    }
}

/// An argument in JSON.
#[derive(Serialize)]
pub(crate) struct Argument<'a> {
    name: &'a str,
    /// The value, exactly as the client sent it; `null` for a secret.
    value: Option<RawJson>,
    is_hidden: bool,
    characters: usize,
}

/// Returns arguments in JSON.
pub(crate) fn arguments(arguments: &[ShownArgument]) -> Vec<Argument<'_>> {
    let argument = |it: &ShownArgument| -> Option<RawJson> {
        RawValue::from_string(it.json.clone()).ok().filter(|_| !it.is_hidden)
    };
    let shown = arguments.iter().map(|it| Argument {
        name: &it.name,
        value: argument(it),
        is_hidden: it.is_hidden,
        characters: it.characters,
    });
    shown.collect()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Person => "person",
        Role::Viewer => "viewer",
        Role::Operator => "operator",
    }
}

fn kind(item: &InboxItem) -> (&'static str, Option<&str>) {
    match &item.request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            let kind = if item.binding.is_some() { "approval" } else { "form" };
            (kind, Some(&form.message))
        }
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => ("url", Some(&url.message)),
        _ if item.binding.is_some() => ("approval", None),
        _ => ("other", None),
    }
}

fn state(state: InputRequestState) -> &'static str {
    match state {
        InputRequestState::Open => "open",
        InputRequestState::Answered => "answered",
        InputRequestState::Withdrawn => "withdrawn",
    }
}
