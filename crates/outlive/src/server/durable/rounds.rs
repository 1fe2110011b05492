//! [`Round`], for handlers that manage their rounds themselves.
//!
//! Such a handler returns its input requests and a state, and reads the input responses and the
//! state in the next round. Code before the request runs again in every round.

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

/// The input responses and the handler state of a round.
pub struct Round<S = ()> {
    cx: Cx,
    run: Arc<RunState>,
    state: Option<Arc<S>>,
}

impl<S> Round<S> {
    /// Returns the state that the handler returned in the previous round, if any.
    pub fn state(&self) -> Option<&S> {
        self.state.as_deref()
    }

    /// Returns the number of earlier rounds.
    pub fn number(&self) -> u32 {
        self.run.rounds()
    }

    /// Returns the user's response to a form. Returns `None` if the form was not requested, has no
    /// response, or has an invalid response. Request the form in these cases.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is malformed, or if the client replied with an error.
    pub fn form<T: Form>(&self, key: impl IntoKey) -> Result<Option<ElicitOutcome<T>>> {
        let schema = forms::schema_of::<T>()?;
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        let read = read_elicit(&raw, |content| read_form(&schema, content));
        Ok(malformed(&key, read)?.ok())
    }

    /// Returns the user's response to a URL elicitation.
    ///
    /// # Errors
    ///
    /// Fails as [`Round::form`] does.
    pub fn url(&self, key: impl IntoKey) -> Result<Option<ElicitOutcome<()>>> {
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        Ok(malformed(&key, read_elicit(&raw, |_| Ok(())))?.ok())
    }

    /// Returns the message of the client's model.
    ///
    /// # Errors
    ///
    /// Fails as [`Round::form`] does.
    pub fn sampled(&self, key: impl IntoKey) -> Result<Option<CreateMessageResult>> {
        let Some((key, raw)) = self.answer(key)? else { return Ok(None) };
        Ok(Some(malformed(&key, read(&raw))?))
    }

    /// Returns the roots of the client.
    ///
    /// # Errors
    ///
    /// Fails as [`Round::form`] does.
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

/// Rejects the call if the client sent a malformed response.
fn malformed<T>(key: &str, read: std::result::Result<T, String>) -> Result<T> {
    read.map_err(|why| Error::invalid_params(format!("`params.inputResponses`: `{key}`: {why}")))
}

impl<S: DeserializeOwned + Send + Sync + 'static> Extract for Round<S> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let (cx, run) = cx.with_run();
        let raw = run.journal().rounds().state();
        let state = raw.map(|raw| serde_json::from_str(raw.get())).transpose();
        // The state is sealed, so only a changed handler can make it undecodable. The handler
        // starts without a state.
        let state = state.unwrap_or_else(|error| {
            tracing::warn!(%error, "state of an earlier round does not match its type; starting without it");
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
