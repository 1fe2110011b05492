//! Input requests of servers, and the input handler that responds to them.
//!
//! An input request arrives as a request (legacy), at the end of a round, or from a task. One input
//! handler serves all three and receives the origin of the request.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use outlive_schema::forms;
use outlive_wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestURLParams, ElicitResult, InputRequest, ListRootsResult,
    PrimitiveSchemaDefinition as Field, RawJson, Root,
};
use serde::Serialize;
use serde_json::{Map, Value, value::to_raw_value};

use super::error::{ClientError, Error};

/// Client-side code that responds to input requests.
///
/// [`InputCallbacks`] builds one from closures. A person or a policy decides on an input request,
/// and must see which server sent it. Show a URL in full, never fetch it, and open it only with
/// consent.
pub trait InputHandler: Send + Sync + 'static {
    /// Returns the kinds of input request that this handler supports. The client declares only
    /// these to servers.
    fn capabilities(&self) -> InputCapabilities;

    /// Responds to an input request. The future is dropped if the response is no longer needed.
    fn handle(&self, question: PendingInput) -> impl Future<Output = InputResponse> + Send;
}

/// Kinds of input request that an input handler supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a switch for each kind")]
#[expect(clippy::struct_excessive_bools, reason = "a switch for each kind")]
pub struct InputCapabilities {
    /// Form elicitation.
    pub form: bool,
    /// URL elicitation.
    pub url: bool,
    /// Sampling from a model.
    pub sampling: bool,
    /// Sampling from a model that may use tools.
    pub sampling_tools: bool,
    /// Roots.
    pub roots: bool,
}

/// An input request that waits for its response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingInput {
    /// The input request.
    pub request: InputKind,
    /// Origin of the request.
    pub origin: InputOrigin,
    /// Server that sent the request, by its label in this program: an address or a command. The
    /// server does not choose it.
    pub server: Arc<str>,
    /// Key of the request, if it has one. Opaque.
    pub key: Option<String>,
    /// Event number of the request, if a call reports it as an event.
    pub(crate) event: Option<u64>,
}

/// Kinds of input request, with their parameters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputKind {
    /// Form elicitation.
    Form(ElicitRequestFormParams),
    /// URL elicitation.
    Url(ElicitRequestURLParams),
    /// Sampling from a model.
    Sample(Box<CreateMessageRequestParams>),
    /// List of roots.
    Roots,
}

/// Origin of an input request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputOrigin {
    /// A request of a legacy server.
    Request {
        /// ID of the related task, if the request names one.
        task: Option<String>,
    },
    /// The end of a round of a call.
    Round {
        /// Name of the tool or prompt, or URI of the resource.
        name: String,
        /// Number of the round, from 1.
        round: u32,
    },
    /// A task.
    Task {
        /// Task ID.
        id: String,
    },
}

/// Response to an input request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputResponse {
    /// The user filled in the form, or agreed to visit the URL (without content).
    Accept(Option<RawJson>),
    /// The user declined.
    Decline,
    /// The user closed the dialog without a decision.
    Cancel,
    /// Message sampled from the model.
    Message(Box<CreateMessageResult>),
    /// List of roots.
    Roots(Vec<Root>),
    /// No response; the call fails with this message.
    Error(String),
}

impl InputResponse {
    /// Accepts a form with its content.
    pub fn accept(content: impl Serialize) -> Self {
        match to_raw_value(&content) {
            Ok(content) => Self::Accept(Some(content)),
            Err(error) => Self::Error(error.to_string()),
        }
    }

    /// Accepts a visit to a URL.
    pub fn accept_url() -> Self {
        Self::Accept(None)
    }
}

impl PendingInput {
    /// Parses an input request.
    pub(crate) fn read(
        request: InputRequest,
        origin: InputOrigin,
        server: &Arc<str>,
        key: Option<String>,
    ) -> Result<Self, Error> {
        let ask = match request {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => InputKind::Form(form),
            InputRequest::Elicit(ElicitRequestParams::Url(url)) => InputKind::Url(url),
            InputRequest::CreateMessage(params) => InputKind::Sample(params),
            InputRequest::ListRoots => InputKind::Roots,
            _ => return Err(Error::broke("unknown kind of input request")),
        };
        Ok(Self { request: ask, origin, server: Arc::clone(server), key, event: None })
    }

    /// Creates the input request of a task from its stored form.
    ///
    /// # Errors
    ///
    /// If the kind of the request is unknown.
    pub fn of_task(request: InputRequest, task: &str, key: &str) -> Result<Self, Error> {
        let origin = InputOrigin::Task { id: task.to_owned() };
        Self::read(request, origin, &Arc::from(format!("task {task}")), Some(key.to_owned()))
    }

    /// Returns the response as JSON for the task.
    ///
    /// # Errors
    ///
    /// If the response does not match the request, or is [`InputResponse::Error`].
    pub fn response(&self, answer: InputResponse) -> Result<RawJson, Error> {
        settle_with(&self.request, answer).into()
    }

    /// Checks whether a response matches the request.
    ///
    /// # Errors
    ///
    /// Returns the reason why the response does not match.
    pub fn check(&self, answer: &InputResponse) -> Result<(), String> {
        match settle_with(&self.request, answer.clone()) {
            Settled::Send(_) | Settled::Refused(_) => Ok(()),
            Settled::Undeclared(kind) => Err(format!("this client does not declare {kind}")),
            Settled::Bad(why) => Err(why),
        }
    }

    /// Checks a value for one field of a form. Accepts values of unknown fields.
    ///
    /// # Errors
    ///
    /// Returns the reason, to be read after the name of the field.
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), String> {
        let InputKind::Form(form) = &self.request else { return Ok(()) };
        let fields = form.requested_schema.properties.iter();
        match fields.into_iter().find(|(field, _)| *field == name) {
            Some((_, field)) => forms::check_field(field, value),
            None => Ok(()),
        }
    }

    /// Returns the response with all default values of the form. Returns `None` if this is not a
    /// form, or a required field has no default.
    pub fn defaults(&self) -> Option<InputResponse> {
        let InputKind::Form(form) = &self.request else { return None };
        let mut content = Map::new();
        for (name, field) in form.requested_schema.properties.iter() {
            if let Some(value) = default_of(field) {
                content.insert(name.to_owned(), value);
            }
        }
        let required = form.requested_schema.required.iter().flatten();
        let complete = required.into_iter().all(|name| content.contains_key(name));
        complete.then(|| InputResponse::accept(content))
    }
}

fn default_of(field: &Field) -> Option<Value> {
    match field {
        Field::String(it) => it.default.clone().map(Value::from),
        Field::Number(it) => it.default.clone().map(Value::from),
        Field::Boolean(it) => it.default.map(Value::from),
        Field::UntitledSingleSelect(it) => it.default.clone().map(Value::from),
        Field::TitledSingleSelect(it) => it.default.clone().map(Value::from),
        Field::LegacyTitled(it) => it.default.clone().map(Value::from),
        Field::UntitledMultiSelect(it) => it.default.clone().map(Value::from),
        Field::TitledMultiSelect(it) => it.default.clone().map(Value::from),
        _ => None,
    }
}

impl InputKind {
    /// Returns the name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Form(_) => "form elicitation",
            Self::Url(_) => "URL elicitation",
            Self::Sample(_) => "sampling",
            Self::Roots => "roots",
        }
    }

    fn is_within(&self, can: InputCapabilities) -> bool {
        match self {
            Self::Form(_) => can.form,
            Self::Url(_) => can.url,
            Self::Sample(params) if params.tools.is_some() || params.tool_choice.is_some() => {
                can.sampling_tools
            }
            Self::Sample(_) => can.sampling,
            Self::Roots => can.roots,
        }
    }
}

/// Outcome of an input request.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The response, as JSON to send.
    Send(RawJson),
    /// The client does not declare this kind of request.
    Undeclared(&'static str),
    /// The input handler rejected the request.
    Refused(String),
    /// The response of the input handler is invalid.
    Bad(String),
}

/// Passes an input request to the input handler and checks the response.
pub(crate) async fn settle(answerer: Option<&dyn DynAnswerer>, question: PendingInput) -> Settled {
    let can = answerer.map(DynAnswerer::can).unwrap_or_default();
    let kind = question.request.kind();
    let Some(answerer) = answerer.filter(|_| question.request.is_within(can)) else {
        return Settled::Undeclared(kind);
    };
    let ask = question.request.clone();
    let answer = answerer.answer(question).await;
    settle_with(&ask, answer)
}

/// Checks a response against its request.
pub(crate) fn settle_with(ask: &InputKind, answer: InputResponse) -> Settled {
    let kind = ask.kind();
    let elicited = |action, content| json(&ElicitResult { action, content, meta: None });
    match (ask, answer) {
        (_, InputResponse::Error(why)) => Settled::Refused(why),
        (InputKind::Form(form), InputResponse::Accept(Some(content))) => {
            match forms::check(&form.requested_schema, content.get()) {
                Ok(_) => elicited(ElicitAction::Accept, Some(content)),
                Err(why) => Settled::Bad(why),
            }
        }
        (InputKind::Form(_), InputResponse::Accept(None)) => {
            Settled::Bad("a form requires content".to_owned())
        }
        (InputKind::Url(_), InputResponse::Accept(_)) => elicited(ElicitAction::Accept, None),
        (InputKind::Form(_) | InputKind::Url(_), InputResponse::Decline) => {
            elicited(ElicitAction::Decline, None)
        }
        (InputKind::Form(_) | InputKind::Url(_), InputResponse::Cancel) => {
            elicited(ElicitAction::Cancel, None)
        }
        (InputKind::Sample(_), InputResponse::Message(message)) => json(&*message),
        (InputKind::Sample(_), InputResponse::Decline | InputResponse::Cancel) => {
            Settled::Refused("the user rejected the sampling request".to_owned())
        }
        (InputKind::Roots, InputResponse::Roots(roots)) => {
            match roots.iter().find(|root| !root.uri.starts_with("file://")) {
                Some(root) => Settled::Bad(format!("the root `{}` is not a `file:` URI", root.uri)),
                None => json(&ListRootsResult { roots, meta: None }),
            }
        }
        (_, answer) => Settled::Bad(format!("{answer:?} is not a response to {kind}")),
    }
}

fn json(value: &impl Serialize) -> Settled {
    match to_raw_value(value) {
        Ok(json) => Settled::Send(json),
        Err(error) => Settled::Bad(error.to_string()),
    }
}

/// Returns the `cancel` response, for an elicitation that this client cannot show.
pub(crate) fn cancelled() -> RawJson {
    let result = ElicitResult { action: ElicitAction::Cancel, content: None, meta: None };
    to_raw_value(&result).expect("an elicitation result serializes to JSON")
}

/// Object-safe version of [`InputHandler`].
pub(crate) trait DynAnswerer: Send + Sync {
    fn can(&self) -> InputCapabilities;
    fn answer(
        &self,
        question: PendingInput,
    ) -> Pin<Box<dyn Future<Output = InputResponse> + Send + '_>>;
}

impl<A: InputHandler> DynAnswerer for A {
    fn can(&self) -> InputCapabilities {
        InputHandler::capabilities(self)
    }

    fn answer(
        &self,
        question: PendingInput,
    ) -> Pin<Box<dyn Future<Output = InputResponse> + Send + '_>> {
        Box::pin(InputHandler::handle(self, question))
    }
}

type Answering =
    Arc<dyn Fn(PendingInput) -> Pin<Box<dyn Future<Output = InputResponse> + Send>> + Send + Sync>;

/// Input handler built from closures. The client declares only kinds that have a closure.
///
/// ```
/// use outlive::client::input::{InputCallbacks, InputResponse};
///
/// let handler = InputCallbacks::new()
///     .form(|request| async move { request.defaults().unwrap_or(InputResponse::Decline) })
///     .roots([("file:///work", "work")]);
/// # let _ = handler;
/// ```
#[derive(Clone, Default)]
pub struct InputCallbacks {
    by_kind: BTreeMap<&'static str, Answering>,
    can: InputCapabilities,
}

impl fmt::Debug for InputCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputCallbacks").field("can", &self.can).finish_non_exhaustive()
    }
}

impl InputCallbacks {
    /// Creates a handler that supports no input requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the closure for form elicitation.
    #[must_use]
    pub fn form<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.form = true;
        self.with("form elicitation", answer)
    }

    /// Sets the closure for URL elicitation. It must ask the user for consent.
    #[must_use]
    pub fn url<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.url = true;
        self.with("URL elicitation", answer)
    }

    /// Sets the closure for sampling without tools. See [`InputCallbacks::sampling_with_tools`].
    #[must_use]
    pub fn sampling<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.sampling = true;
        self.with("sampling", answer)
    }

    /// Sets the closure for sampling, also with tools.
    #[must_use]
    pub fn sampling_with_tools<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.sampling_tools = true;
        self.sampling(answer)
    }

    /// Sets the roots, as pairs of URI and name.
    #[must_use]
    pub fn roots<U: Into<String>, N: Into<String>>(
        mut self,
        roots: impl IntoIterator<Item = (U, N)>,
    ) -> Self {
        self.can.roots = true;
        let roots: Vec<Root> = roots
            .into_iter()
            .map(|(uri, name)| Root { uri: uri.into(), name: Some(name.into()), meta: None })
            .collect();
        self.with("roots", move |_| {
            let roots = roots.clone();
            async move { InputResponse::Roots(roots) }
        })
    }

    fn with<F, Fut>(mut self, kind: &'static str, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.by_kind.insert(kind, Arc::new(move |question| Box::pin(answer(question))));
        self
    }
}

impl InputHandler for InputCallbacks {
    fn capabilities(&self) -> InputCapabilities {
        self.can
    }

    async fn handle(&self, question: PendingInput) -> InputResponse {
        match self.by_kind.get(question.request.kind()) {
            Some(answering) => answering(question).await,
            None => InputResponse::Error(format!(
                "this client does not declare {}",
                question.request.kind()
            )),
        }
    }
}

impl From<Settled> for Result<RawJson, Error> {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Send(json) => Ok(json),
            Settled::Undeclared(kind) => {
                Err(Error::broke(format!("it requests {kind}, which this client does not declare")))
            }
            Settled::Refused(why) => Err(ClientError::Unanswered(why).into()),
            Settled::Bad(why) => Err(ClientError::InvalidInputResponse(why).into()),
        }
    }
}
