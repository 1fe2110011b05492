//! One input request of a task in memory.

use crate::store::{
    Audience, InputRequestRecord, InputRequestState, InputSource, NewInputRequest, OpenInput,
    UnixMillis, Vote,
};

pub(super) struct InputRow {
    pub(super) asked: NewInputRequest,
    pub(super) state: InputRequestState,
    pub(super) opened_at: UnixMillis,
    /// When the request got its response or was withdrawn.
    pub(super) settled_at: Option<UnixMillis>,
    /// Votes, oldest first.
    pub(super) votes: Vec<Vote>,
}

impl InputRow {
    /// Creates the row of a request that is opened now.
    pub(super) fn new(asked: NewInputRequest, now: UnixMillis) -> Self {
        let state = InputRequestState::Open;
        Self { asked, state, opened_at: now, settled_at: None, votes: Vec::new() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == InputRequestState::Open
    }

    /// Returns whether the client or people must respond.
    pub(super) fn is_required(&self) -> bool {
        self.is_open() && self.asked.request.is_some()
    }

    /// Returns whether the request is open and a source may respond to it.
    pub(super) fn accepts(&self, from: InputSource) -> bool {
        let allowed = match self.asked.request {
            Some(_) => self.asked.audience.allows(from),
            None => from == InputSource::External,
        };
        self.is_open() && allowed
    }

    /// Returns the denial key of an approval request that was answered.
    pub(super) fn denial(&self) -> Option<&str> {
        let denial = self.asked.binding.as_ref().and_then(|binding| binding.denial.as_deref());
        denial.filter(|_| self.state == InputRequestState::Answered)
    }

    /// Closes the request. Returns its wire key if targets are notified of the request.
    pub(super) fn close(&mut self, state: InputRequestState, now: UnixMillis) -> Option<String> {
        (self.state, self.settled_at) = (state, Some(now));
        self.notified_name()
    }

    /// Returns the wire key if targets are notified of the request.
    pub(super) fn notified_name(&self) -> Option<String> {
        let is_for_people = self.asked.request.is_some() && self.asked.audience != Audience::Client;
        is_for_people.then(|| self.asked.name.clone())
    }

    /// Returns the request in the form for readers, if it is an open request to the client.
    pub(super) fn open(&self) -> Option<OpenInput> {
        let NewInputRequest { name, request, audience, due, .. } = &self.asked;
        let is_for_client = self.is_open() && !audience.is_people();
        let request = request.clone().filter(|_| is_for_client)?;
        Some(OpenInput { name: name.clone(), request, audience: audience.clone(), due: *due })
    }

    /// Returns the request in the form for operators.
    pub(super) fn to_record(&self) -> InputRequestRecord {
        let asked = self.asked.clone();
        InputRequestRecord {
            key: asked.key,
            name: asked.name,
            request: asked.request,
            audience: asked.audience,
            due: asked.due,
            state: self.state,
            opened_at: self.opened_at,
            settled_at: self.settled_at,
        }
    }
}
