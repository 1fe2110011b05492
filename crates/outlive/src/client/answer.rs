//! What a server may ask, and who answers: one way for all wires.
//!
//! A question comes as a request (before 2026-07-28), as the end of a round, or from inside a task.
//! The answerer is the same, and is told where the question comes from.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use outlive_wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestURLParams, ElicitResult, InputRequest, ListRootsResult,
    PrimitiveSchemaDefinition as Field, RawJson, Root,
};
use serde::Serialize;
use serde_json::{Map, Value, value::to_raw_value};

use super::error::{Error, GaveUp};
use crate::server::{check_form, check_form_field};

/// Answers what servers ask.
///
/// [`Answers`] is one made of closures. Whatever it is: a question is for a person or a policy to
/// decide, and says which server asks. A URL is shown in full, never fetched, and opened only after
/// consent.
pub trait Answerer: Send + Sync + 'static {
    /// What it can answer. Nothing else is declared to servers, and nothing else is asked.
    fn can(&self) -> Can;

    /// Answers one question. Dropped when nobody waits for the answer any more.
    fn answer(&self, question: Question) -> impl Future<Output = Answer> + Send;
}

/// What an answerer can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a switch for each kind")]
#[expect(clippy::struct_excessive_bools, reason = "a switch for each kind")]
pub struct Can {
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
pub struct Question {
    /// What is asked.
    pub ask: Ask,
    /// Where it comes from.
    pub origin: Origin,
    /// The server that asks, as this program knows it: an address or a program, not what the server
    /// says of itself.
    pub server: Arc<str>,
    /// The key of the question, where it has one. Nothing to show, and nothing to interpret.
    pub key: Option<String>,
}

/// What is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ask {
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
pub enum Origin {
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
pub enum Answer {
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
    Refuse(String),
}

impl Answer {
    /// A form that is filled in.
    pub fn accept(content: impl Serialize) -> Self {
        match to_raw_value(&content) {
            Ok(content) => Self::Accept(Some(content)),
            Err(error) => Self::Refuse(error.to_string()),
        }
    }

    /// Consent to visit a URL.
    pub fn consent() -> Self {
        Self::Accept(None)
    }
}

impl Question {
    /// Reads a question as it came.
    pub(crate) fn read(
        request: InputRequest,
        origin: Origin,
        server: &Arc<str>,
        key: Option<String>,
    ) -> Result<Self, Error> {
        let ask = match request {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => Ask::Form(form),
            InputRequest::Elicit(ElicitRequestParams::Url(url)) => Ask::Url(url),
            InputRequest::CreateMessage(params) => Ask::Sample(params),
            InputRequest::ListRoots => Ask::Roots,
            _ => return Err(Error::broke("it asks something that no revision knows")),
        };
        Ok(Self { ask, origin, server: Arc::clone(server), key })
    }

    /// A question of a task that was read from its store, and not from a server.
    ///
    /// # Errors
    ///
    /// When it is none that this version knows.
    pub fn of_task(request: InputRequest, task: &str, key: &str) -> Result<Self, Error> {
        let origin = Origin::Task { id: task.to_owned() };
        Self::read(request, origin, &Arc::from(format!("task {task}")), Some(key.to_owned()))
    }

    /// The answer as a task is given it.
    ///
    /// # Errors
    ///
    /// When it does not fit the question, or is a refusal.
    pub fn response(&self, answer: Answer) -> Result<RawJson, Error> {
        settle_with(&self.ask, answer).into()
    }

    /// Says whether an answer fits the question, before it is given.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        match settle_with(&self.ask, answer.clone()) {
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
        let Ask::Form(form) = &self.ask else { return Ok(()) };
        let fields = form.requested_schema.properties.iter();
        match fields.into_iter().find(|(field, _)| *field == name) {
            Some((_, field)) => check_form_field(field, value),
            None => Ok(()),
        }
    }

    /// The answer that has every default of the form filled in; `None` if it is no form, or asks for
    /// something that has no default.
    pub fn defaults(&self) -> Option<Answer> {
        let Ask::Form(form) = &self.ask else { return None };
        let mut content = Map::new();
        for (name, field) in form.requested_schema.properties.iter() {
            if let Some(value) = default_of(field) {
                content.insert(name.to_owned(), value);
            }
        }
        let required = form.requested_schema.required.iter().flatten();
        let complete = required.into_iter().all(|name| content.contains_key(name));
        complete.then(|| Answer::accept(content))
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

impl Ask {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Form(_) => "a form",
            Self::Url(_) => "a visit to a URL",
            Self::Sample(_) => "sampling from a model",
            Self::Roots => "the roots",
        }
    }

    fn is_within(&self, can: Can) -> bool {
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
pub(crate) async fn settle(answerer: Option<&dyn DynAnswerer>, question: Question) -> Settled {
    let can = answerer.map(DynAnswerer::can).unwrap_or_default();
    let kind = question.ask.kind();
    let Some(answerer) = answerer.filter(|_| question.ask.is_within(can)) else {
        return Settled::Undeclared(kind);
    };
    let ask = question.ask.clone();
    let answer = answerer.answer(question).await;
    settle_with(&ask, answer)
}

/// Holds an answer against its question.
pub(crate) fn settle_with(ask: &Ask, answer: Answer) -> Settled {
    let kind = ask.kind();
    let elicited = |action, content| json(&ElicitResult { action, content, meta: None });
    match (ask, answer) {
        (_, Answer::Refuse(why)) => Settled::Refused(why),
        (Ask::Form(form), Answer::Accept(Some(content))) => {
            match check_form(&form.requested_schema, content.get()) {
                Ok(_) => elicited(ElicitAction::Accept, Some(content)),
                Err(why) => Settled::Bad(why),
            }
        }
        (Ask::Form(_), Answer::Accept(None)) => Settled::Bad("a form needs content".to_owned()),
        (Ask::Url(_), Answer::Accept(_)) => elicited(ElicitAction::Accept, None),
        (Ask::Form(_) | Ask::Url(_), Answer::Decline) => elicited(ElicitAction::Decline, None),
        (Ask::Form(_) | Ask::Url(_), Answer::Cancel) => elicited(ElicitAction::Cancel, None),
        (Ask::Sample(_), Answer::Message(message)) => json(&*message),
        (Ask::Sample(_), Answer::Decline | Answer::Cancel) => {
            Settled::Refused("the user rejected the sampling request".to_owned())
        }
        (Ask::Roots, Answer::Roots(roots)) => {
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

/// [`Answerer`] behind a pointer.
pub(crate) trait DynAnswerer: Send + Sync {
    fn can(&self) -> Can;
    fn answer(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}

impl<A: Answerer> DynAnswerer for A {
    fn can(&self) -> Can {
        Answerer::can(self)
    }

    fn answer(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(Answerer::answer(self, question))
    }
}

type Answering =
    Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// An answerer made of closures: what has none is not declared.
///
/// ```
/// use outlive::client::{Answer, Answers};
///
/// let answers = Answers::new()
///     .form(|question| async move { question.defaults().unwrap_or(Answer::Decline) })
///     .roots([("file:///work", "work")]);
/// # let _ = answers;
/// ```
#[derive(Clone, Default)]
pub struct Answers {
    by_kind: BTreeMap<&'static str, Answering>,
    can: Can,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("can", &self.can).finish_non_exhaustive()
    }
}

impl Answers {
    /// Answers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fills in forms.
    #[must_use]
    pub fn form<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.can.form = true;
        self.with("a form", answer)
    }

    /// Sends users to URLs, if they agree.
    #[must_use]
    pub fn url<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.can.url = true;
        self.with("a visit to a URL", answer)
    }

    /// Samples from a model. Not with tools: see [`Answers::sampling_with_tools`].
    #[must_use]
    pub fn sampling<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.can.sampling = true;
        self.with("sampling from a model", answer)
    }

    /// Samples from a model that may use tools.
    #[must_use]
    pub fn sampling_with_tools<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
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
            async move { Answer::Roots(roots) }
        })
    }

    fn with<F, Fut>(mut self, kind: &'static str, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.by_kind.insert(kind, Arc::new(move |question| Box::pin(answer(question))));
        self
    }
}

impl Answerer for Answers {
    fn can(&self) -> Can {
        self.can
    }

    async fn answer(&self, question: Question) -> Answer {
        match self.by_kind.get(question.ask.kind()) {
            Some(answering) => answering(question).await,
            None => Answer::Refuse(format!("nobody answers {} here", question.ask.kind())),
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
            Settled::Refused(why) => Err(GaveUp::Unanswered(why).into()),
            Settled::Bad(why) => Err(GaveUp::BadAnswer(why).into()),
        }
    }
}
