//! [`JournalRounds`]: the journal of a handler that is called once for each round.

use outlive_wire::{InputRequest, RawJson};

use super::{inputs::InputPoll, state::Journal};
use crate::{error::JournalError, record::JournalEntry};

/// Where the state of such a handler is. No key of an author begins so.
const STATE: &str = "#state";

/// The journal of a handler that is called once for each round.
#[derive(Clone, Copy, Debug)]
pub struct JournalRounds<'a>(&'a Journal);

impl Journal {
    /// Returns the view of a handler that is called once for each round.
    pub fn rounds(&self) -> JournalRounds<'_> {
        JournalRounds(self)
    }
}

impl JournalRounds<'_> {
    /// Returns the state that the handler returned in the last round.
    pub fn state(&self) -> Option<RawJson> {
        let mut state = self.0.lock();
        let Some(JournalEntry::State(raw)) = state.entry(STATE) else { return None };
        let raw = raw.clone();
        // A handler may read it twice.
        let _ = state.steps.take_key(STATE);
        Some(raw)
    }

    /// Replaces the state.
    ///
    /// # Errors
    ///
    /// When the state does not fit into the journal.
    pub fn set_state(&self, raw: RawJson) -> Result<(), JournalError> {
        let limits = self.0.limits();
        let mut state = self.0.lock();
        state.forget(STATE);
        state.record(STATE, JournalEntry::State(raw), limits).map(drop)
    }

    /// Returns the response to an input request.
    ///
    /// # Errors
    ///
    /// When the key belongs to another kind of entry, or the response does not fit into the journal.
    pub fn response(&self, key: &str) -> Result<InputPoll, JournalError> {
        let limits = self.0.limits();
        let mut state = self.0.lock();
        state.record_unrequested(key, limits)?;
        let input = state.input(key);
        // A handler may read it twice.
        let _ = state.steps.take_key(key);
        input
    }

    /// Opens an input request.
    pub fn open(&self, key: &str, request: InputRequest) {
        let mut state = self.0.lock();
        // The handler has seen the response, if there is one, and requests it again.
        if state.entry(key).is_some() {
            state.forget(key);
            state.inputs.count_reissue(key);
        }
        state.inputs.push(key, Some(request), None);
    }
}
