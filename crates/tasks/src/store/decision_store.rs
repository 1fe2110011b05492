//! Decisions of people: open input requests of a person, and votes on them.

use std::time::Duration;

use outlive_wire::{InputRequest, RawJson};

use super::{
    audit::AuditEvent,
    binding::Binding,
    id::{TaskId, UnixMillis},
    input::Audience,
    operator::InputRequestState,
    traits::StoreFuture,
};
use crate::setters::setters;

/// Input requests for people, and their votes.
pub trait DecisionStore: Send + Sync + 'static {
    /// Returns the open input requests that a person may respond to, oldest first, after a cursor.
    /// Includes requests of the person's own tasks. Input requests of tasks without an index entry
    /// ([`NewTask::indexed`](super::NewTask::indexed)) are included only if their audience is
    /// [`Audience::Names`], [`Audience::Scope`] or [`Audience::NamesOrScope`].
    fn open_for<'a>(
        &'a self,
        reader: &'a InboxReader,
        after: Option<&'a InboxCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxItem>>;

    /// Returns the number of open input requests that a person may respond to: of those that
    /// [`open_for`](Self::open_for) returns, but at most `limit`.
    fn count_open<'a>(&'a self, reader: &'a InboxReader, limit: usize) -> StoreFuture<'a, usize>;

    /// Returns the responses that have settled approval requests with a
    /// [denial key](Binding::denial) since a time, newest first. A response is returned from the
    /// commit that settles its request, until its task is deleted.
    fn settled_since<'a>(
        &'a self,
        denial: &'a str,
        since: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SettledResponse>>;

    /// Returns the last requests that a person has voted on, newest vote first.
    fn voted_by<'a>(&'a self, person: &'a str, limit: usize) -> StoreFuture<'a, Vec<InboxItem>>;

    /// Returns an input request in any state, with its call and its votes. The caller of this
    /// method checks who may read it.
    fn input_request<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputRequestDetail>>;

    /// Records the vote of a person, with its audit event, in one transaction. The vote that settles
    /// the request also stores its response as a journal entry and queues the task.
    ///
    /// The row of the task orders concurrent decisions: exactly one of them settles the request,
    /// and the others get its outcome. A request whose timeout has ended by the clock of the store
    /// is expired, whether a worker has seen this or not.
    fn decide<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
        decision: &'a Decision,
    ) -> StoreFuture<'a, DecisionOutcome>;
}

/// A person who reads an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxReader {
    /// Person, or `None` for a reader who is not a person, such as an operator of a store.
    pub person: Option<String>,
    /// Scopes of the person's credential.
    pub scopes: Vec<String>,
    /// Whether to return the open requests of all tasks, for operators.
    pub all: bool,
    /// Principal whose tasks alone are read; `None` for the tasks of all principals.
    pub principal: Option<String>,
}

impl InboxReader {
    /// Creates a reader with scopes.
    pub fn new(person: impl Into<String>, scopes: Vec<String>) -> Self {
        Self { person: Some(person.into()), scopes, all: false, principal: None }
    }
}

setters!(InboxReader {
    person: Option<String>,
    scopes: Vec<String>,
    all: bool,
    principal: Option<String>,
});

/// A response that has settled an input request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SettledResponse {
    /// Response of a person, or of the client.
    pub response: RawJson,
    /// When the request was settled.
    pub settled_at: UnixMillis,
}

impl SettledResponse {
    /// Creates a response.
    pub fn new(response: RawJson, settled_at: UnixMillis) -> Self {
        Self { response, settled_at }
    }
}

/// Position in an inbox: the last input request of the previous page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct InboxCursor {
    /// When that request was opened.
    pub opened_at: UnixMillis,
    /// Task of that request.
    pub task: TaskId,
    /// Wire key of that request.
    pub name: String,
}

impl InboxCursor {
    /// Creates a cursor after an input request.
    pub fn new(opened_at: UnixMillis, task: TaskId, name: impl Into<String>) -> Self {
        Self { opened_at, task, name: name.into() }
    }
}

/// An input request in a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InboxItem {
    /// Task of the request.
    pub task: TaskId,
    /// Wire key.
    pub name: String,
    /// Name of the tool.
    pub tool: String,
    /// Principal of the task.
    pub principal: String,
    /// Person of the task; `None` for an anonymous caller.
    pub person: Option<String>,
    /// Call that the task executes.
    pub call: RawJson,
    /// Request to the people.
    pub request: InputRequest,
    /// Parties that may respond.
    pub audience: Audience,
    /// Binding of an approval request; `None` for other requests.
    pub binding: Option<Binding>,
    /// State of the request.
    pub state: InputRequestState,
    /// When the request was opened.
    pub opened_at: UnixMillis,
    /// When the request was settled or withdrawn.
    pub settled_at: Option<UnixMillis>,
    /// When the request times out.
    pub due: Option<UnixMillis>,
    /// Number of approvals so far.
    pub approvals: u32,
}

impl InboxItem {
    /// Creates an open input request to the client, opened at time zero.
    pub fn new(
        task: TaskId,
        name: impl Into<String>,
        tool: impl Into<String>,
        principal: impl Into<String>,
        call: RawJson,
        request: InputRequest,
    ) -> Self {
        Self {
            task,
            name: name.into(),
            tool: tool.into(),
            principal: principal.into(),
            person: None,
            call,
            request,
            audience: Audience::Client,
            binding: None,
            state: InputRequestState::Open,
            opened_at: 0,
            settled_at: None,
            due: None,
            approvals: 0,
        }
    }
}

/// An input request with its votes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputRequestDetail {
    /// The input request.
    pub item: InboxItem,
    /// Votes, oldest first.
    pub votes: Vec<Vote>,
    /// Response that settled the request.
    pub response: Option<RawJson>,
}

impl InputRequestDetail {
    /// Creates an input request without votes.
    pub fn new(item: InboxItem) -> Self {
        Self { item, votes: Vec::new(), response: None }
    }
}

/// A vote of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vote {
    /// Person who voted.
    pub person: String,
    /// Whether the person accepted the request.
    pub accepts: bool,
    /// Reason of the person.
    pub reason: Option<String>,
    /// Path of the vote, such as `console` or `link`.
    pub channel: String,
    /// Whether the person saw the tool as the [`Binding`] names it. False if the server that showed
    /// the request had another definition of the tool.
    pub saw_definition: bool,
    /// When the store recorded the vote.
    pub at: UnixMillis,
}

impl Vote {
    /// Creates a vote without a reason, of a person who saw the definition.
    pub fn new(
        person: impl Into<String>,
        accepts: bool,
        channel: impl Into<String>,
        at: UnixMillis,
    ) -> Self {
        let (person, channel) = (person.into(), channel.into());
        Self { person, accepts, reason: None, channel, saw_definition: true, at }
    }
}

/// A vote to record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decision {
    /// Person who votes; `None` for an operator. An operator responds only to [`Audience::Client`].
    pub person: Option<String>,
    /// Scopes of the person's credential at this moment.
    pub scopes: Vec<String>,
    /// Whether the person accepts the request.
    pub accepts: bool,
    /// Response that the handler gets if this vote settles the request.
    pub response: RawJson,
    /// Reason of the person.
    pub reason: Option<String>,
    /// Path of the vote, such as `console` or `link`.
    pub channel: String,
    /// Digest that the person saw. Compared with [`Binding::digest`] if the request has a binding.
    pub digest: Option<String>,
    /// Whether the person saw the tool as the binding names it.
    pub saw_definition: bool,
    /// Audit event of the vote, and its retention.
    pub audit: Option<(AuditEvent, Duration)>,
    /// Maximum stored bytes of the task's principal.
    pub max_bytes: u64,
}

impl Decision {
    /// Creates a decision without a reason and without an audit event.
    pub fn new(person: Option<String>, accepts: bool, response: RawJson) -> Self {
        Self {
            person,
            scopes: Vec::new(),
            accepts,
            response,
            reason: None,
            channel: "console".to_owned(),
            digest: None,
            saw_definition: true,
            audit: None,
            max_bytes: u64::MAX,
        }
    }

    /// Returns the vote to store; `None` for an operator, whose decision is only in the audit log.
    pub(super) fn to_vote(&self, at: UnixMillis) -> Option<Vote> {
        Some(Vote {
            person: self.person.clone()?,
            accepts: self.accepts,
            reason: self.reason.clone(),
            channel: self.channel.clone(),
            saw_definition: self.saw_definition,
            at,
        })
    }
}

setters!(Decision {
    scopes: Vec<String>,
    reason: Option<String>,
    channel: String,
    digest: Option<String>,
    saw_definition: bool,
    audit: Option<(AuditEvent, Duration)>,
    max_bytes: u64,
});

/// Result of [`DecisionStore::decide`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every variant has its own status on each path")]
pub enum DecisionOutcome {
    /// No such request exists, or this person may not respond to it. A person who is not in the
    /// audience cannot tell the difference.
    Unknown,
    /// The vote was recorded. The request stays open until it has `needed` approvals.
    Counted {
        /// Number of approvals, with this one.
        approvals: u32,
        /// Number of approvals that settle the request.
        needed: u32,
    },
    /// The vote settled the request.
    Settled,
    /// This person has voted before. Nothing was recorded.
    AlreadyVoted,
    /// The request was settled before. Nothing was recorded.
    AlreadySettled,
    /// The person saw another digest. Nothing was recorded.
    DigestDiffers,
    /// The request was withdrawn, or its task has ended. Nothing was recorded.
    Withdrawn,
    /// The timeout of the request has ended. Nothing was recorded.
    Expired,
    /// The principal of the task has no bytes left for the response. Nothing was recorded.
    BytesExceeded,
}

impl DecisionOutcome {
    /// Returns whether the vote was recorded.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Self::Counted { .. } | Self::Settled)
    }
}
