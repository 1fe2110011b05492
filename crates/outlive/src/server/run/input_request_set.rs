//! Input requests that a handler returns, in the explicit style.

use outlive_schema::forms::{self, Form};
use outlive_tasks::IntoKey;
use outlive_wire::{
    CreateMessageRequestParams, ElicitRequestParams, ElicitRequestURLParams, InputRequest, RawJson,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::{error::Result, run::input::form_request};

/// What a handler of the explicit style returns: its result, or questions first.
///
/// ```
/// use outlive::{
///     Form,
///     server::{
///         Result,
///         durable::{ElicitOutcome, InputRequestSet, Round, RoundOutcome},
///     },
///     tool,
/// };
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
/// # book::tool();
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
    pub(crate) requests: Vec<(String, InputRequest)>,
    pub(crate) state: Option<RawJson>,
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

    /// Sends the user to a URL; see [`Durable::elicit_url`](crate::server::Durable::elicit_url).
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
        self.requests.push((key.into_key().into_string(), request));
        self
    }
}
