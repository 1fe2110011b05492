//! The explicit style: a handler that returns its questions and a state of its own, and reads the
//! answers and the state when it is called again. The same sealing, the same wires; what it does
//! before it asks, it does again each round.

use std::{fmt, sync::Arc};

use outlive_schema::forms::{self, Form};
use outlive_tasks::{InputFailure, InputPoll, IntoKey};
use outlive_wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitRequestURLParams,
    InputRequest, RawJson, Root,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    Durability, DurableError, ElicitOutcome, misuse,
    request::{form_request, read, read_elicit, read_form, read_roots},
};
use crate::server::{
    Cx, Result,
    extract::{Extract, HandlerRequirements, Rejection},
};

/// What a handler of the explicit style returns: its result, or questions first.
///
/// ```
/// use outlive::{Form, server::{RoundOutcome, InputRequestSet, ElicitOutcome, Result, Round}, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
/// struct Seat { window: bool }
///
/// #[tool]
/// async fn book(#[extract] round: Round, flight: String) -> Result<RoundOutcome<String>> {
///     match round.form::<Seat>("seat")? {
///         None => Ok(RoundOutcome::Ask(InputRequestSet::new().form::<Seat>("seat", "Which seat?")?)),
///         Some(ElicitOutcome::Accepted(seat)) => Ok(RoundOutcome::Done(format!("{flight}, window: {}", seat.window))),
///         Some(_) => Ok(RoundOutcome::Done("not booked".into())),
///     }
/// }
/// # book();
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third thing")]
pub enum RoundOutcome<T> {
    /// The result.
    Done(T),
    /// Questions; the handler is called again with the answers.
    Ask(InputRequestSet),
}

/// Questions to the client, and what to remember until they are answered.
#[derive(Debug, Default)]
#[must_use]
pub struct InputRequestSet {
    pub(super) asked: Vec<(String, InputRequest)>,
    pub(super) state: Option<RawJson>,
}

impl InputRequestSet {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the user to fill in a form.
    ///
    /// # Errors
    ///
    /// When the type is no form.
    pub fn form<T: Form>(self, key: impl IntoKey, prompt: impl Into<String>) -> Result<Self> {
        let schema = forms::schema_of::<T>()?;
        Ok(self.with(key, form_request(&prompt.into(), None, &schema)))
    }

    /// Sends the user to a URL; see [`Durable::elicit_url`](super::Durable::elicit_url).
    pub fn url(self, key: impl IntoKey, prompt: impl Into<String>, url: impl Into<String>) -> Self {
        let params = ElicitRequestURLParams {
            message: prompt.into(),
            url: url.into(),
            elicitation_id: None,
            task: None,
            meta: None,
        };
        self.with(key, InputRequest::Elicit(ElicitRequestParams::Url(params)))
    }

    /// Asks the client's model.
    pub fn sample(self, key: impl IntoKey, params: CreateMessageRequestParams) -> Self {
        self.with(key, InputRequest::CreateMessage(Box::new(params)))
    }

    /// Asks the client where it lets servers work.
    pub fn roots(self, key: impl IntoKey) -> Self {
        self.with(key, InputRequest::ListRoots)
    }

    /// Remembers something until the handler is called again.
    ///
    /// # Errors
    ///
    /// When it cannot be written as JSON.
    pub fn state(mut self, state: &impl Serialize) -> Result<Self> {
        self.state = Some(to_raw_value(state)?);
        Ok(self)
    }

    fn with(mut self, key: impl IntoKey, request: InputRequest) -> Self {
        self.asked.push((key.into_key().into_string(), request));
        self
    }
}

/// What a handler of the explicit style reads: the answers so far, and its state.
pub struct Round<S = ()> {
    cx: Cx,
    state: Option<Arc<S>>,
}

impl<S> Round<S> {
    /// What the handler gave to remember, if it did.
    pub fn state(&self) -> Option<&S> {
        self.state.as_deref()
    }

    /// How many rounds of questions came before this one.
    pub fn number(&self) -> u32 {
        Durability::of(&self.cx).rounds()
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
        match Durability::of(&self.cx).journal.read_answer(&key).map_err(misuse)? {
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
    read.map_err(|why| {
        crate::server::Error::invalid_params(format!("`params.inputResponses`: `{key}`: {why}"))
    })
}

impl<S: DeserializeOwned + Send + Sync + 'static> Extract for Round<S> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let raw = Durability::of(cx).journal.state();
        let state = raw.map(|raw| serde_json::from_str(raw.get())).transpose();
        // It is ours and sealed, so it is this handler that has changed: it begins again.
        let state = state.unwrap_or_else(|error| {
            tracing::warn!(%error, "the state of an earlier round does not fit its type any more");
            None
        });
        Ok(Self { cx: cx.clone(), state: state.map(Arc::new) })
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
