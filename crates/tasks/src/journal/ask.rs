//! [`JournalInputs`]: input requests of a run, and the delivery of their responses.

use std::{
    collections::BTreeMap,
    task::{Context, Poll, Waker},
};

use outlive_wire::{InputRequest, RawJson};

use super::{
    inputs::{InputPoll, OpenInputRequest},
    pending_writes::WriteTicket,
    state::{DUE, Journal, JournalLimits, State},
};
use crate::{
    current_run::RunId,
    error::JournalError,
    record::{InputFailure, JournalEntry},
    store::Audience,
};

/// Input requests of a journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalInputs<'a>(pub(super) &'a Journal);

impl Journal {
    /// Returns the input requests.
    pub fn inputs(&self) -> JournalInputs<'_> {
        JournalInputs(self)
    }

    /// Takes input responses from the store. A response without an open request stays in the
    /// journal until the run makes the request.
    pub(crate) fn take_responses(&self, responses: Vec<(String, RawJson)>) {
        let mut state = self.lock();
        let mut wakers = Vec::new();
        for (key, response) in responses {
            if state.entry(&key).is_none() {
                state.read_back(&key, JournalEntry::Answer(response));
                wakers.extend(state.inputs.close(&key));
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of input responses.
    pub(crate) fn count_responses(&self) -> usize {
        let state = self.lock();
        state.entries().filter(|entry| matches!(entry, JournalEntry::Answer(_))).count()
    }
}

impl JournalInputs<'_> {
    /// Opens a request to the client for `audience` unless the journal has its response. `timeout`
    /// is the current time and the duration until the request times out, both in milliseconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, the key is already used, or the journal is
    /// full.
    pub fn ask(
        &self,
        run: RunId,
        key: &str,
        request: InputRequest,
        audience: Audience,
        timeout: Option<(u64, u64)>,
    ) -> Result<InputPoll, JournalError> {
        self.open(run, key, Some((request, audience)), timeout).map(|(input, _)| input)
    }

    /// Opens an input request that another system resolves, unless the journal has its response.
    /// The other system can respond once the ticket is written: [`Journal::poll_written`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`JournalInputs::ask`].
    pub fn open_external_event(
        &self,
        run: RunId,
        key: &str,
        timeout: Option<(u64, u64)>,
    ) -> Result<(InputPoll, WriteTicket), JournalError> {
        self.open(run, key, None, timeout)
    }

    fn open(
        &self,
        run: RunId,
        key: &str,
        request: Option<(InputRequest, Audience)>,
        timeout: Option<(u64, u64)>,
    ) -> Result<(InputPoll, WriteTicket), JournalError> {
        let limits = self.0.limits();
        let mut state = self.0.enter(run, key)?;
        state.steps.take_key(key)?;
        let due = match timeout {
            None => None,
            Some((now, span)) => Some(state.input_due(key, now, span, limits)?),
        };
        if request.is_some() {
            state.record_unrequested(key, limits)?;
        }
        match state.input(key)? {
            InputPoll::Open if state.inputs.count() >= limits.open_inputs => {
                state.steps.free_key(key);
                let limit = limits.open_inputs;
                Err(JournalError::TooManyInputRequests { key: key.to_owned(), limit })
            }
            InputPoll::Open => {
                let (request, audience) = request.unzip();
                state.inputs.push(key, request, audience.unwrap_or_default(), due);
                // The store writes a request like an entry, so the request needs space like an
                // entry.
                if let Err(full) = state.grow(|| key.to_owned(), 0, limits) {
                    state.inputs.close(key);
                    state.steps.free_key(key);
                    return Err(full);
                }
                Ok((InputPoll::Open, state.ticket()))
            }
            resolved => Ok((resolved, WriteTicket::NONE)),
        }
    }

    /// Polls for the response to an open request.
    pub fn poll(&self, key: &str, cx: &mut Context<'_>) -> Poll<Result<InputPoll, JournalError>> {
        let mut state = self.0.lock();
        match state.input(key) {
            Ok(InputPoll::Open) if state.is_closing() => {
                Poll::Ready(Err(JournalError::RunEnded(key.to_owned())))
            }
            Ok(InputPoll::Open) => {
                state.inputs.set_waker(key, cx.waker());
                Poll::Pending
            }
            resolved => Poll::Ready(resolved),
        }
    }

    /// Issues a request again under another wire key, because its response was invalid. Returns the
    /// number of reissues.
    pub fn reissue(&self, key: &str, request: InputRequest, audience: Audience) -> u32 {
        let mut state = self.0.lock();
        state.forget(key);
        let due = match state.entry(&due_key(key)) {
            Some(JournalEntry::Due(due)) => Some(*due),
            _ => None,
        };
        state.inputs.push(key, Some(request), audience, due);
        state.inputs.count_reissue(key)
    }

    /// Withdraws a request whose response the run no longer awaits.
    pub fn withdraw(&self, key: &str) {
        let mut state = self.0.lock();
        // A suspended run drops its futures, but its requests stay open.
        if state.is_closing() {
            return;
        }
        if let Some(name) = state.inputs.withdraw(key)
            && let Some(pending) = &mut state.pending
        {
            pending.add_withdrawn(name);
        }
        state.steps.free_key(key);
    }

    /// Rejects an invalid response that the client sent without a request state. The run does not
    /// continue. Returns `false` if the server had requested the response.
    pub fn refuse_unrequested(&self, key: &str, why: impl FnOnce() -> String) -> bool {
        let mut state = self.0.lock();
        if !state.inputs.was_unrequested(key) {
            return false;
        }
        state.forget(key);
        state.inputs.set_malformed(why());
        true
    }

    /// Returns the open requests that were not sent, and counts them as sent.
    pub fn take_unsent(&self) -> Vec<OpenInputRequest> {
        self.0.lock().inputs.take_unsent()
    }

    /// Returns whether a request is open.
    pub fn any_open(&self) -> bool {
        self.0.lock().inputs.count() > 0
    }

    /// Returns the issue number of an open request.
    pub fn serial_of(&self, key: &str) -> Option<u64> {
        self.0.lock().inputs.serial_of(key)
    }

    /// Records the client's response, or the failure of the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the response does not fit into the journal.
    pub fn resolve(
        &self,
        key: &str,
        response: Result<RawJson, InputFailure>,
    ) -> Result<(), JournalError> {
        let is_failure = response.is_err();
        let entry = response.map_or_else(JournalEntry::Unanswered, JournalEntry::Answer);
        let limits = self.0.limits();
        let mut state = self.0.lock();
        state.record(key, entry, limits)?;
        if is_failure {
            state.withdraw_in_store(key);
        }
        let waker = state.inputs.close(key);
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Takes the responses of a round. Ignores responses without a request, and records late ones
    /// as timeouts. If `requested` is `None`, keeps every response until the run makes its request.
    pub fn apply_responses(
        &self,
        requested: Option<&[String]>,
        mut responses: BTreeMap<String, RawJson>,
        now: u64,
    ) {
        let limits = self.0.limits();
        let mut state = self.0.lock();
        for key in requested.unwrap_or_default() {
            let Some(response) = responses.remove(&state.inputs.name(key)) else { continue };
            let is_late =
                matches!(state.entry(&due_key(key)), Some(JournalEntry::Due(due)) if now > *due);
            let entry = match is_late {
                true => JournalEntry::Unanswered(InputFailure::TimedOut),
                false => JournalEntry::Answer(response),
            };
            // A response that does not fit is dropped, so the run repeats the request.
            if state.record(key, entry, limits).is_err() {
                tracing::warn!(
                    key,
                    "input response is too large for the journal; the request is repeated"
                );
            }
        }
        if requested.is_none() {
            state.inputs.keep_unrequested(responses);
        }
    }
}

fn due_key(key: &str) -> String {
    format!("{key}{DUE}")
}

impl State {
    /// Returns the state of an input request.
    pub(super) fn input(&self, key: &str) -> Result<InputPoll, JournalError> {
        match self.entry(key) {
            Some(JournalEntry::Answer(raw)) => Ok(InputPoll::Answered(raw.clone())),
            Some(JournalEntry::Unanswered(why)) => Ok(InputPoll::Unanswered(why.clone())),
            Some(_) => Err(JournalError::KindMismatch(key.to_owned())),
            None => Ok(InputPoll::Open),
        }
    }

    /// Records a response that arrived without a request state, if it belongs to this request.
    pub(super) fn record_unrequested(
        &mut self,
        key: &str,
        limits: JournalLimits,
    ) -> Result<(), JournalError> {
        if self.entry(key).is_none()
            && let Some(response) = self.inputs.take_unrequested(key)
        {
            self.record(key, JournalEntry::Answer(response), limits)?;
        }
        Ok(())
    }

    /// Returns when an input request times out. The time is fixed at the first issue.
    fn input_due(
        &mut self,
        key: &str,
        now: u64,
        span: u64,
        limits: JournalLimits,
    ) -> Result<u64, JournalError> {
        let due_key = due_key(key);
        if let Some(JournalEntry::Due(due)) = self.entry(&due_key) {
            let due = *due;
            if now > due && self.entry(key).is_none() {
                self.record(key, JournalEntry::Unanswered(InputFailure::TimedOut), limits)?;
                self.withdraw_in_store(key);
            }
            return Ok(due);
        }
        let due = now.saturating_add(span);
        self.record(&due_key, JournalEntry::Due(due), limits)?;
        Ok(due)
    }

    /// Withdraws a failed request in the store, which has no response to it. Otherwise people would
    /// see the request as open until the task ends.
    fn withdraw_in_store(&mut self, key: &str) {
        let name = self.inputs.name(key);
        if let Some(pending) = &mut self.pending {
            pending.add_withdrawn(name);
        }
    }
}
