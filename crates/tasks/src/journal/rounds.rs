//! [`JournalRounds`]: journal of a handler that is called once for each round.

use outlive_wire::{InputRequest, RawJson};

use super::{inputs::InputPoll, state::Journal};
use crate::{error::JournalError, record::JournalEntry, store::Audience};

/// Key of the state of such a handler. An author's key cannot start with `#`.
const STATE: &str = "#state";

/// Journal of a handler that is called once for each round.
#[derive(Clone, Copy, Debug)]
pub struct JournalRounds<'a>(&'a Journal);

impl Journal {
    /// Returns the view for a handler that is called once for each round.
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
        // Ignored, because a handler may read its state twice.
        let _ = state.steps.take_key(STATE);
        Some(raw)
    }

    /// Replaces the state.
    ///
    /// # Errors
    ///
    /// Returns an error if the state does not fit into the journal.
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
    /// Returns an error if the key belongs to another kind of entry, or if the response does not
    /// fit into the journal.
    pub fn response(&self, key: &str) -> Result<InputPoll, JournalError> {
        let limits = self.0.limits();
        let mut state = self.0.lock();
        state.record_unrequested(key, limits)?;
        let input = state.input(key);
        // Ignored, because a handler may read a response twice.
        let _ = state.steps.take_key(key);
        input
    }

    /// Opens an input request for `audience`.
    pub fn open(&self, key: &str, request: InputRequest, audience: Audience) {
        let mut state = self.0.lock();
        // The handler has read the recorded response and repeats the request.
        if state.entry(key).is_some() {
            state.forget(key);
            state.inputs.count_reissue(key);
        }
        state.inputs.push(key, Some(request), audience, None);
    }
}
