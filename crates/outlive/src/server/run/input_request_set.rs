//! Input requests that a handler returns instead of a result.

use outlive_schema::forms::{self, Form};
use outlive_tasks::{IntoKey, store::Audience};
use outlive_wire::{
    CreateMessageRequestParams, ElicitRequestParams, ElicitRequestURLParams, InputRequest, RawJson,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::{error::Result, run::input::form_request};

/// Return value of a handler that manages its rounds itself: a result or input requests.
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
#[expect(clippy::exhaustive_enums, reason = "a handler returns one of the two")]
pub enum RoundOutcome<T> {
    /// The result.
    Done(T),
    /// Input requests. The handler runs again with the input responses.
    Ask(InputRequestSet),
}

/// Input requests for the client, and a state for the next round.
#[derive(Debug, Default)]
#[must_use]
pub struct InputRequestSet {
    pub(crate) requests: Vec<(String, InputRequest)>,
    pub(crate) audience: Audience,
    pub(crate) state: Option<RawJson>,
}

impl InputRequestSet {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a form elicitation.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema of `T` is not a valid form.
    pub fn form<T: Form>(self, key: impl IntoKey, prompt: impl Into<String>) -> Result<Self> {
        let schema = forms::schema_of::<T>()?;
        Ok(self.with(key, form_request(&prompt.into(), None, &schema)))
    }

    /// Adds a URL elicitation; see [`Durable::elicit_url`](crate::server::Durable::elicit_url).
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

    /// Adds a sampling request.
    pub fn sample(self, key: impl IntoKey, params: CreateMessageRequestParams) -> Self {
        self.with(key, InputRequest::CreateMessage(Box::new(params)))
    }

    /// Adds a request for the client's roots.
    pub fn roots(self, key: impl IntoKey) -> Self {
        self.with(key, InputRequest::ListRoots)
    }

    /// Sets the parties that may respond to the elicitations of this set; see
    /// [`Elicit::audience`](crate::server::durable::Elicit::audience).
    pub fn audience(mut self, audience: Audience) -> Self {
        self.audience = audience;
        self
    }

    /// Sets the state that the handler receives in the next round.
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be serialized as JSON.
    pub fn state(mut self, state: &impl Serialize) -> Result<Self> {
        self.state = Some(to_raw_value(state)?);
        Ok(self)
    }

    fn with(mut self, key: impl IntoKey, request: InputRequest) -> Self {
        self.requests.push((key.into_key().into_string(), request));
        self
    }
}
