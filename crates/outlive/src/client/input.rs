//! What a server may ask, and who answers: one way for all wires.
//!
//! A question comes as a request (before 2026-07-28), as the end of a round, or from inside a task.
//! The answerer is the same, and is told where the question comes from.

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

/// Answers what servers ask.
///
/// [`InputCallbacks`] is one made of closures. Whatever it is: a question is for a person or a policy to
/// decide, and says which server asks. A URL is shown in full, never fetched, and opened only after
/// consent.
pub trait InputHandler: Send + Sync + 'static {
    /// What it can answer. Nothing else is declared to servers, and nothing else is asked.
    fn capabilities(&self) -> InputCapabilities;

    /// Answers one question. Dropped when nobody waits for the answer any more.
    fn handle(&self, question: PendingInput) -> impl Future<Output = InputResponse> + Send;
}

/// What an answerer can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a switch for each kind")]
#[expect(clippy::struct_excessive_bools, reason = "a switch for each kind")]
pub struct InputCapabilities {
    /// Forms.
    pub form: bool,
    /// Visits to a URL.
    pub url: bool,
    /// Sampling from a model.
    pub sampling: bool,
    /// Sampling from a model that may use tools.
    pub sampling_tools: bool,
    /// Roots.
    pub roots: bool,
}

/// A question of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingInput {
    /// What is asked.
    pub request: InputKind,
    /// Where it comes from.
    pub origin: InputOrigin,
    /// The server that asks, as this program knows it: an address or a program, not what the server
    /// says of itself.
    pub server: Arc<str>,
    /// The key of the question, where it has one. Nothing to show, and nothing to interpret.
    pub key: Option<String>,
    /// The number of the event that it is, where a call waits for the response to one.
    pub(crate) event: Option<u64>,
}

/// What is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputKind {
    /// Fill in a form.
    Form(ElicitRequestFormParams),
    /// Visit a URL.
    Url(ElicitRequestURLParams),
    /// Sample from a model.
    Sample(Box<CreateMessageRequestParams>),
    /// List the roots.
    Roots,
}

/// Where a question comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputOrigin {
    /// A request of the server, before 2026-07-28; with the task that it belongs to, if it names one.
    Request {
        /// The task.
        task: Option<String>,
    },
    /// The end of a round of a call.
    Round {
        /// The tool, prompt or resource that was called.
        name: String,
        /// Which round it ends, from 1.
        round: u32,
    },
    /// A task.
    Task {
        /// Its id.
        id: String,
    },
}

/// An answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputResponse {
    /// The form is filled in, or the user agreed to visit the URL (without content).
    Accept(Option<RawJson>),
    /// The user said no.
    Decline,
    /// The user closed it without a word.
    Cancel,
    /// What the model said.
    Message(Box<CreateMessageResult>),
    /// The roots.
    Roots(Vec<Root>),
    /// There will be no answer: the call fails.
    Error(String),
}

impl InputResponse {
    /// A form that is filled in.
    pub fn accept(content: impl Serialize) -> Self {
        match to_raw_value(&content) {
            Ok(content) => Self::Accept(Some(content)),
            Err(error) => Self::Error(error.to_string()),
        }
    }

    /// Consent to visit a URL.
    pub fn accept_url() -> Self {
        Self::Accept(None)
    }
}

impl PendingInput {
    /// Reads a question as it came.
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
            _ => return Err(Error::broke("it asks something that no revision knows")),
        };
        Ok(Self { request: ask, origin, server: Arc::clone(server), key, event: None })
    }

    /// A question of a task that was read from its store, and not from a server.
    ///
    /// # Errors
    ///
    /// When it is none that this version knows.
    pub fn of_task(request: InputRequest, task: &str, key: &str) -> Result<Self, Error> {
        let origin = InputOrigin::Task { id: task.to_owned() };
        Self::read(request, origin, &Arc::from(format!("task {task}")), Some(key.to_owned()))
    }

    /// The answer as a task is given it.
    ///
    /// # Errors
    ///
    /// When it does not fit the question, or is a refusal.
    pub fn response(&self, answer: InputResponse) -> Result<RawJson, Error> {
        settle_with(&self.request, answer).into()
    }

    /// Says whether an answer fits the question, before it is given.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn check(&self, answer: &InputResponse) -> Result<(), String> {
        match settle_with(&self.request, answer.clone()) {
            Settled::Send(_) | Settled::Refused(_) => Ok(()),
            Settled::Undeclared(kind) => Err(format!("nobody answers {kind} here")),
            Settled::Bad(why) => Err(why),
        }
    }

    /// Says whether a value fits one field of a form. What is no field fits.
    ///
    /// # Errors
    ///
    /// Why it does not; a sentence that the name of the field begins.
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), String> {
        let InputKind::Form(form) = &self.request else { return Ok(()) };
        let fields = form.requested_schema.properties.iter();
        match fields.into_iter().find(|(field, _)| *field == name) {
            Some((_, field)) => forms::check_field(field, value),
            None => Ok(()),
        }
    }

    /// The answer that has every default of the form filled in; `None` if it is no form, or asks for
    /// something that has no default.
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
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Form(_) => "a form",
            Self::Url(_) => "a visit to a URL",
            Self::Sample(_) => "sampling from a model",
            Self::Roots => "the roots",
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

/// What a question came to: JSON to send, or why there is none.
#[derive(Debug)]
pub(crate) enum Settled {
    /// Send it.
    Send(RawJson),
    /// Nothing was declared that would allow the question.
    Undeclared(&'static str),
    /// The answerer would not.
    Refused(String),
    /// The answerer's answer is none.
    Bad(String),
}

/// Puts a question to an answerer, and holds the answer against it.
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

/// Holds an answer against its question.
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
            Settled::Bad("a form needs content".to_owned())
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
                Some(root) => Settled::Bad(format!("the root `{}` is no file: URI", root.uri)),
                None => json(&ListRootsResult { roots, meta: None }),
            }
        }
        (_, answer) => Settled::Bad(format!("{kind} cannot be answered with {answer:?}")),
    }
}

fn json(value: &impl Serialize) -> Settled {
    match to_raw_value(value) {
        Ok(json) => Settled::Send(json),
        Err(error) => Settled::Bad(error.to_string()),
    }
}

/// The answer of a user who closed the question: for one that nobody here can answer.
pub(crate) fn cancelled() -> RawJson {
    let result = ElicitResult { action: ElicitAction::Cancel, content: None, meta: None };
    to_raw_value(&result).expect("an action is JSON")
}

/// [`InputHandler`] behind a pointer.
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

/// An answerer made of closures: what has none is not declared.
///
/// ```
/// use outlive::client::input::{InputCallbacks, InputResponse};
///
/// let answers = InputCallbacks::new()
///     .form(|question| async move { question.defaults().unwrap_or(InputResponse::Decline) })
///     .roots([("file:///work", "work")]);
/// # let _ = answers;
/// ```
#[derive(Clone, Default)]
pub struct InputCallbacks {
    by_kind: BTreeMap<&'static str, Answering>,
    can: InputCapabilities,
}

impl fmt::Debug for InputCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("can", &self.can).finish_non_exhaustive()
    }
}

impl InputCallbacks {
    /// Answers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fills in forms.
    #[must_use]
    pub fn form<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.form = true;
        self.with("a form", answer)
    }

    /// Sends users to URLs, if they agree.
    #[must_use]
    pub fn url<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.url = true;
        self.with("a visit to a URL", answer)
    }

    /// Samples from a model. Not with tools: see [`InputCallbacks::sampling_with_tools`].
    #[must_use]
    pub fn sampling<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.sampling = true;
        self.with("sampling from a model", answer)
    }

    /// Samples from a model that may use tools.
    #[must_use]
    pub fn sampling_with_tools<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = InputResponse> + Send + 'static,
    {
        self.can.sampling_tools = true;
        self.sampling(answer)
    }

    /// Lists roots: URIs and names.
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
        self.with("the roots", move |_| {
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
            None => {
                InputResponse::Error(format!("nobody answers {} here", question.request.kind()))
            }
        }
    }
}

impl From<Settled> for Result<RawJson, Error> {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Send(json) => Ok(json),
            Settled::Undeclared(kind) => {
                Err(Error::broke(format!("it asks for {kind}, which this client did not declare")))
            }
            Settled::Refused(why) => Err(ClientError::Unanswered(why).into()),
            Settled::Bad(why) => Err(ClientError::InvalidInputResponse(why).into()),
        }
    }
}
