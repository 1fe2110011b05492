//! The explicit style: a handler that returns its questions and a state of its own, and reads the
//! answers and the state when it is called again. The same sealing, the same wires; what it does
//! before it asks, it does again each round.

use std::{fmt, sync::Arc};

use outlive_schema::forms::{self, Form};
use outlive_tasks::{InputFailure, InputPoll, IntoKey};
use outlive_wire::{CreateMessageResult, Root};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::server::{
    durable_error::DurableError,
    error::{Error, Result},
    extract::{
        cx::Cx,
        extractor::{Extract, HandlerRequirements, Rejection},
    },
    run::{
        input::{ElicitOutcome, read, read_elicit, read_form, read_roots},
        state::RunState,
    },
};

/// What a handler of the explicit style reads: the answers so far, and its state.
pub struct Round<S = ()> {
    cx: Cx,
    run: Arc<RunState>,
    state: Option<Arc<S>>,
}

impl<S> Round<S> {
    /// What the handler gave to remember, if it did.
    pub fn state(&self) -> Option<&S> {
        self.state.as_deref()
    }

    /// How many rounds of questions came before this one.
    pub fn number(&self) -> u32 {
        self.run.rounds()
    }

    /// What the user made of a form. `None` if it has not been asked, not been answered, or the
    /// answer does not fit: ask then.
    ///
    /// # Errors
    ///
    /// When the answer is none that the protocol knows, or the client refused to ask.
    pub fn form<T: Form>(&self, key: impl IntoKey) -> Result<Option<ElicitOutcome<T>>> {
        let schema = forms::schema_of::<T>()?;
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        let read = read_elicit(&raw, |content| read_form(&schema, content));
        Ok(malformed(&key, read)?.ok())
    }

    /// Whether the user agreed to open a URL.
    ///
    /// # Errors
    ///
    /// As [`Round::form`].
    pub fn url(&self, key: impl IntoKey) -> Result<Option<ElicitOutcome<()>>> {
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        Ok(malformed(&key, read_elicit(&raw, |_| Ok(())))?.ok())
    }

    /// What the client's model said.
    ///
    /// # Errors
    ///
    /// As [`Round::form`].
    pub fn sampled(&self, key: impl IntoKey) -> Result<Option<CreateMessageResult>> {
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        Ok(Some(malformed(&key, read(&raw))?))
    }

    /// Where the client lets servers work.
    ///
    /// # Errors
    ///
    /// As [`Round::form`].
    pub fn roots(&self, key: impl IntoKey) -> Result<Option<Vec<Root>>> {
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        Ok(Some(malformed(&key, read_roots(&raw))?))
    }

    fn answer(&self, key: impl IntoKey) -> Result<Option<(String, Box<RawValue>)>> {
        let key = key.into_key().into_string();
        match self.run.journal().rounds().response(&key).map_err(DurableError::from)? {
            InputPoll::Answered(raw) => Ok(Some((key, raw))),
            InputPoll::Open => Ok(None),
            InputPoll::Unanswered(InputFailure::Refused { code, message }) => {
                Err(DurableError::ClientError { key, code, message }.into())
            }
            InputPoll::Unanswered(_) => Err(DurableError::TimedOut { key }.into()),
        }
    }
}

/// What is no answer refuses the call: the client has sent it.
fn malformed<T>(key: &str, read: std::result::Result<T, String>) -> Result<T> {
    read.map_err(|why| Error::invalid_params(format!("`params.inputResponses`: `{key}`: {why}")))
}

impl<S: DeserializeOwned + Send + Sync + 'static> Extract for Round<S> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let (cx, run) = cx.with_run();
        let raw = run.journal().rounds().state();
        let state = raw.map(|raw| serde_json::from_str(raw.get())).transpose();
        // It is ours and sealed, so it is this handler that has changed: it begins again.
        let state = state.unwrap_or_else(|error| {
            tracing::warn!(%error, "the state of an earlier round does not fit its type any more");
            None
        });
        Ok(Self { cx, run, state: state.map(Arc::new) })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.durable = true;
    }
}

impl<S> fmt::Debug for Round<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Round").field("call", self.cx.call()).finish_non_exhaustive()
    }
}
