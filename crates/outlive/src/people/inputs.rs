//! One input request: what a person reads before deciding, and the decision.

use outlive_schema::forms;
use outlive_tasks::store::{
    Audience, AuditEvent, Decision, DecisionOutcome, InboxItem, InputRequestDetail,
    InputRequestState, StoreError, TaskId, TaskQuery,
};
use outlive_wire::{ElicitAction, ElicitRequestParams, ElicitResult, InputRequest, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use sha2::{Digest, Sha256};

use super::{
    arguments::{ShownArgument, client, command_words, shown},
    error::{FieldError, PeopleError},
    inbox::{hide, hide_people},
    roles::{Role, Visitor},
    state::{People, event, log},
};
use crate::{hex::hex, server::ShownTool};

/// Maximum number of characters of a reason.
const MAX_REASON: usize = 1_000;

/// Number of earlier calls that are searched for the last approved one.
const MAX_PREVIOUS: usize = 10;

/// Wire key of the first approval request of a task.
const APPROVAL: &str = "#approval";

/// An input request as a person sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputView {
    /// The request with its votes, without its call.
    pub detail: InputRequestDetail,
    /// Digest of everything that the person sees. An answer must repeat it.
    pub digest: String,
    /// Whether the visitor may respond now.
    pub can_answer: bool,
    /// Whether the task belongs to the visitor.
    pub is_own: bool,
    /// Whether the visitor may see the contents. If not, `detail` has neither request nor response.
    pub shows_contents: bool,
    /// Whether the visitor may create an answer link.
    pub can_link: bool,
    /// Arguments of the call.
    pub arguments: Vec<ShownArgument>,
    /// Arguments of the last approved call of the same person and tool; empty without one.
    pub previous: Vec<ShownArgument>,
    /// Words of the command that the call runs.
    pub runs: Option<Vec<String>>,
    /// Whether this server has the definition of the tool that an approval covers. If not, `runs` is
    /// empty, and people who approve are asked again before the call runs.
    pub has_definition: bool,
    /// Description of the tool.
    pub tool_description: Option<String>,
    /// Name and version of the client that made the call, as the client claims.
    pub client: Option<String>,
}

impl InputView {
    /// Creates a view without arguments.
    pub fn new(detail: InputRequestDetail, digest: impl Into<String>) -> Self {
        Self {
            detail,
            digest: digest.into(),
            can_answer: false,
            is_own: false,
            shows_contents: true,
            can_link: false,
            arguments: Vec::new(),
            previous: Vec::new(),
            runs: None,
            has_definition: true,
            tool_description: None,
            client: None,
        }
    }
}

/// A person's answer to an input request.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a form that callers fill in")]
pub struct Answer {
    /// Digest that the person saw.
    pub digest: String,
    /// Whether the person accepts.
    pub accepts: bool,
    /// Values of the form, after `accepts`.
    pub content: Option<Value>,
    /// Reason, which the caller and its model read. Required to deny an approval.
    pub reason: Option<String>,
}

/// Result of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerReceipt {
    /// The answer settled the request.
    Settled,
    /// The vote was recorded. The request stays open.
    Counted {
        /// Number of approvals, with this one.
        approvals: u32,
        /// Number of approvals that settle the request.
        needed: u32,
    },
    /// The person has voted before. Nothing was recorded.
    AlreadyVoted,
    /// The request was settled before. Nothing was recorded.
    AlreadySettled,
    /// The person saw another digest. Nothing was recorded.
    DigestDiffers,
    /// The request was withdrawn, or its task has ended. Nothing was recorded.
    Withdrawn,
    /// The timeout of the request has ended. Nothing was recorded.
    Expired,
}

impl People {
    /// Returns an input request by its wire key, in any state.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) unless the request belongs to a task of the visitor, is
    /// addressed to the visitor, or the visitor sees everything.
    pub async fn input_request(
        &self,
        visitor: &Visitor,
        task: &TaskId,
        name: &str,
    ) -> Result<InputView, PeopleError> {
        let detail = self.find_request(visitor, task, name).await?;
        let digest = digest(&detail.item);
        let tool = self.tool(&detail.item.tool);
        let has_definition = tool.as_ref().is_none_or(|tool| covers(&detail.item, tool));
        let mut view = InputView::new(detail, digest);
        view.has_definition = has_definition;
        if !has_definition {
            view.digest.push_str(OTHER_DEFINITION);
        }
        let item = &view.detail.item;
        view.is_own = visitor.owns_request(item);
        view.shows_contents = visitor.sees_request_contents(item);
        view.can_answer = self.is_open(item) && may_respond(visitor, item).is_ok();
        view.can_link = self.is_open(item) && self.may_link(visitor, item).is_ok();
        view.tool_description = tool.as_ref().and_then(|tool| tool.description.clone());
        if view.shows_contents {
            view.arguments = shown(tool.as_ref(), &item.call);
            // Another definition would show a command that this approval does not cover.
            let covered = tool.as_ref().filter(|tool| covers(item, tool));
            view.runs = covered.and_then(|tool| command_words(tool, &item.call));
            if item.binding.is_some() && item.state == InputRequestState::Open {
                view.previous = self.previous(item).await?;
            }
        } else {
            view.detail.response = None;
        }
        view.client = client(&item.call);
        hide(&mut view.detail.item, view.shows_contents);
        if visitor.only_principal().is_some() {
            hide_people(visitor, &mut view.detail.item.audience);
            view.detail.votes.clear();
            view.detail.response = None;
        }
        Ok(view)
    }

    /// Responds to an input request. The first settling response counts; later ones learn the
    /// state.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) like [`input_request`](Self::input_request);
    /// [`Forbidden`](PeopleError::Forbidden) if the visitor may only read the request, and for an
    /// MCP token that would decide; [`Invalid`](PeopleError::Invalid) for values that do not match
    /// the form.
    pub async fn answer(
        &self,
        visitor: &Visitor,
        task: &TaskId,
        name: &str,
        answer: Answer,
    ) -> Result<AnswerReceipt, PeopleError> {
        let InputRequestDetail { item, .. } = self.find_request(visitor, task, name).await?;
        let person = may_respond(visitor, &item)?;
        let seen = answer.digest.strip_suffix(OTHER_DEFINITION);
        if seen.unwrap_or(&answer.digest) != digest(&item) {
            return Ok(AnswerReceipt::DigestDiffers);
        }
        let reason = answer.reason.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let response = response(&item, &answer, reason, person.as_deref())?;
        let audit = self.vote_event(visitor, &item, answer.accepts, reason);
        let decision = Decision::new(person, answer.accepts, response)
            .scopes(visitor.scopes_for(&item.audience))
            .reason(reason.map(str::to_owned))
            .channel(visitor.channel().as_str().to_owned())
            .digest(item.binding.as_ref().map(|binding| binding.digest.clone()))
            .saw_definition(seen.is_none())
            .audit(Some((audit.clone(), self.audit_limits().0)))
            .max_bytes(self.max_bytes(&item.principal));
        let outcome = self.store().decide(task, name, &decision).await?;
        let receipt = receipt(&outcome)?;
        // The gate writes `approved` and `denied` when it reads the decision.
        if matches!(receipt, AnswerReceipt::Settled | AnswerReceipt::Counted { .. }) {
            log(&audit);
        }
        Ok(receipt)
    }

    /// Returns an input request that the visitor sees.
    pub(super) async fn find_request(
        &self,
        visitor: &Visitor,
        task: &TaskId,
        name: &str,
    ) -> Result<InputRequestDetail, PeopleError> {
        let found = self.store().input_request(task, name).await?;
        found.filter(|detail| visitor.sees_request(&detail.item)).ok_or(PeopleError::NotFound)
    }

    /// Returns whether an input request waits for a response, by the clock of this process.
    pub(super) fn is_open(&self, item: &InboxItem) -> bool {
        item.state == InputRequestState::Open && item.due.is_none_or(|due| self.now() < due)
    }

    /// Returns the audit event of a vote, which the store writes with the vote.
    fn vote_event(
        &self,
        visitor: &Visitor,
        item: &InboxItem,
        accepts: bool,
        reason: Option<&str>,
    ) -> AuditEvent {
        let what = match (item.binding.is_some(), accepts) {
            (true, true) => "approve",
            (true, false) => "deny",
            (false, true) => "accept",
            (false, false) => "decline",
        };
        let by = visitor.person().unwrap_or("an operator");
        let mut cause = format!("{what}, by {by}, {}", visitor.channel().as_str());
        if let Some(reason) = reason {
            cause.push_str(": ");
            cause.push_str(reason);
        }
        let action = if item.binding.is_some() { "voted" } else { "updated" };
        event(visitor, &item.principal, &item.task, action, Some(cause))
    }

    /// Returns the arguments of the last approved call of the same person and tool.
    async fn previous(&self, item: &InboxItem) -> Result<Vec<ShownArgument>, PeopleError> {
        let Some(person) = &item.person else { return Ok(Vec::new()) };
        let query = TaskQuery::default()
            .person(Some(person.clone()))
            .tool(Some(item.tool.clone()))
            .until(Some(item.opened_at));
        let page = self.store().page(&query, None, MAX_PREVIOUS).await?;
        for earlier in page.tasks {
            let id = &earlier.summary.view.id;
            let found = self.store().input_request(id, APPROVAL).await?;
            if let Some(detail) = found.filter(|it| *id != item.task && is_approved(it)) {
                return Ok(shown(self.tool(&item.tool).as_ref(), &detail.item.call));
            }
        }
        Ok(Vec::new())
    }
}

/// End of the digest of a view without the definition that the approval covers.
const OTHER_DEFINITION: &str = "-other-definition";

/// Returns the digest of what a person sees: of the approval, or of tool, call and request.
pub(super) fn digest(item: &InboxItem) -> String {
    match &item.binding {
        Some(binding) => binding.digest.clone(),
        None => shown_digest(&item.tool, &item.call, &item.request),
    }
}

/// Returns whether an approval of the request covers the definition that this server has.
fn covers(item: &InboxItem, tool: &ShownTool) -> bool {
    let definition = item.binding.as_ref().map(|binding| &binding.definition);
    definition.is_none_or(|definition| Some(definition) == tool.definition.as_ref())
}

/// Returns the digest of a digest, which is short enough for the token of an answer link.
pub(super) fn link_digest(digest: &str) -> String {
    hex(&Sha256::digest(digest)[..16])
}

/// Returns a digest of tool, call and request, for input requests without a binding.
pub(super) fn shown_digest(tool: &str, call: &RawValue, request: &InputRequest) -> String {
    let request = serde_json::to_string(request).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in [tool, call.get(), &request] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    hex(&digest.finalize()[..16])
}

/// Returns the person who responds; `None` for an operator on behalf of the caller.
///
/// # Errors
///
/// If the visitor sees the request, but may not respond to it.
fn may_respond(visitor: &Visitor, item: &InboxItem) -> Result<Option<String>, PeopleError> {
    let person = || Ok(visitor.person().map(str::to_owned));
    let forbidden = |reason| Err(PeopleError::Forbidden(reason));
    if item.binding.is_none() && !matches!(item.request, InputRequest::Elicit(_)) {
        return forbidden("only the client can respond to this request");
    }
    let is_own = visitor.owns_request(item);
    match &item.audience {
        Audience::Client if is_own => person(),
        Audience::Client if visitor.role() == Role::Operator => Ok(None),
        Audience::Client => forbidden("only the caller and operators respond to this request"),
        // An MCP token lies in the configuration of an agent, so it decides nothing.
        _ if visitor.only_principal().is_some() => visitor.require_person().map(|()| None),
        Audience::Caller if is_own => person(),
        Audience::Caller => forbidden("only the caller decides this request; others may cancel it"),
        _ if !visitor.may_decide() => forbidden(
            "a console without a server does not know who you are; use that of the server",
        ),
        _ if is_own || visitor.person() == item.person.as_deref() => {
            forbidden("the vote of the caller does not count; another person must decide")
        }
        _ if visitor.is_addressed(item) && is_linked(visitor, item) => person(),
        _ => {
            forbidden("this request is for other people; an operator may cancel it, not approve it")
        }
    }
}

/// Returns whether an answer link was created for what the request shows now. Other visitors need no
/// link.
fn is_linked(visitor: &Visitor, item: &InboxItem) -> bool {
    visitor.linked_digest().is_none_or(|linked| linked == link_digest(&digest(item)))
}

/// Returns the response that the handler gets if this answer settles the request.
fn response(
    item: &InboxItem,
    answer: &Answer,
    reason: Option<&str>,
    person: Option<&str>,
) -> Result<RawJson, PeopleError> {
    if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(PeopleError::field(
            "reason",
            format!("must have at most {MAX_REASON} characters"),
        ));
    }
    let action = if answer.accepts { ElicitAction::Accept } else { ElicitAction::Decline };
    let response = match (&item.binding, &item.request) {
        (Some(_), _) if !answer.accepts && reason.is_none() => {
            return Err(PeopleError::field("reason", "is required to deny"));
        }
        (Some(_), _) => to_raw_value(&Approval { action, reason, by: person }),
        (None, InputRequest::Elicit(ElicitRequestParams::Form(form))) if answer.accepts => {
            let empty = Value::Object(Map::new());
            let content =
                checked(&form.requested_schema, answer.content.as_ref().unwrap_or(&empty))?;
            let content = to_raw_value(&content).map_err(|error| unreadable(&error))?;
            to_raw_value(&ElicitResult { action, content: Some(content), meta: None })
        }
        (None, _) => to_raw_value(&ElicitResult { action, content: None, meta: None }),
    };
    response.map_err(|error| unreadable(&error))
}

/// Response to an approval request. No caller sees `by`.
#[derive(Serialize)]
struct Approval<'a> {
    action: ElicitAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

/// Validates the values of a form. The errors name every invalid field.
fn checked(
    form: &outlive_wire::RequestedSchema,
    content: &Value,
) -> Result<Map<String, Value>, PeopleError> {
    let summary = match forms::check(form, &content.to_string()) {
        Ok(content) => return Ok(content),
        Err(summary) => summary,
    };
    let required = form.required.iter().flatten();
    let missing = required.filter(|name| content.get(name.as_str()).is_none());
    let mut errors: Vec<FieldError> =
        missing.map(|name| FieldError::new(name, "is required")).collect();
    for (name, field) in &form.properties.0 {
        if let Some(value) = content.get(name)
            && let Err(message) = forms::check_field(field, value)
        {
            errors.push(FieldError::new(name, message));
        }
    }
    if errors.is_empty() {
        errors.push(FieldError::new("", summary));
    }
    Err(PeopleError::Invalid(errors))
}

fn unreadable(error: &serde_json::Error) -> PeopleError {
    PeopleError::field("content", error.to_string())
}

fn receipt(outcome: &DecisionOutcome) -> Result<AnswerReceipt, PeopleError> {
    Ok(match *outcome {
        DecisionOutcome::Unknown => return Err(PeopleError::NotFound),
        DecisionOutcome::BytesExceeded => return Err(StoreError::BytesExceeded.into()),
        DecisionOutcome::Counted { approvals, needed } => {
            AnswerReceipt::Counted { approvals, needed }
        }
        DecisionOutcome::Settled => AnswerReceipt::Settled,
        DecisionOutcome::AlreadyVoted => AnswerReceipt::AlreadyVoted,
        DecisionOutcome::AlreadySettled => AnswerReceipt::AlreadySettled,
        DecisionOutcome::DigestDiffers => AnswerReceipt::DigestDiffers,
        DecisionOutcome::Withdrawn => AnswerReceipt::Withdrawn,
        DecisionOutcome::Expired => AnswerReceipt::Expired,
    })
}

/// Returns whether a settled approval request was approved.
fn is_approved(detail: &InputRequestDetail) -> bool {
    #[derive(Deserialize)]
    struct Settled {
        action: ElicitAction,
    }
    let response = detail.response.as_ref().filter(|_| detail.item.binding.is_some());
    let settled = response.and_then(|raw| serde_json::from_str::<Settled>(raw.get()).ok());
    settled.is_some_and(|settled| settled.action == ElicitAction::Accept)
}
