//! Questions to the client: forms and URLs for its user, prompts for its model, its roots.
//!
//! Each is a future that resolves with the answer. On 2026-07-28 it never resolves in the run that
//! asks: the run is dropped, and the one that finds the answer in the journal resolves at once.

use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use outlive_protocol::{
    Notify,
    era::{self, Asking as Way},
};
use outlive_tasks::{Asking, IntoKey, Unanswered};
use outlive_wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestURLParams, ElicitResult, FormMode, InputRequest,
    ListRootsResult, RequestedSchema, Root,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Durable, DurableError, millis, misuse};
use crate::server::{
    Form, Result, conversation,
    form::{self, FormError},
};

impl Durable {
    /// Asks the user to fill in a form.
    ///
    /// The form's fields are those of `T`. An answer that does not fit is asked for again. With
    /// `?` a user who says no ends the handler; [`Elicit::reply`] tells the three ways apart. Never
    /// ask for passwords, keys or tokens this way: the protocol forbids it. [`Durable::elicit_url`]
    /// is for those.
    pub fn elicit<T: Form>(&self, key: impl IntoKey, prompt: impl Into<String>) -> Elicit<'_, T> {
        self.elicit_form(key, prompt, form::schema_of::<T>())
    }

    /// Asks the user to fill in a form that is known only now.
    pub fn elicit_with<T: DeserializeOwned>(
        &self,
        key: impl IntoKey,
        prompt: impl Into<String>,
        schema: RequestedSchema,
    ) -> Elicit<'_, T> {
        self.elicit_form(key, prompt, Ok(Arc::new(schema)))
    }

    fn elicit_form<T>(
        &self,
        key: impl IntoKey,
        prompt: impl Into<String>,
        schema: std::result::Result<Arc<RequestedSchema>, FormError>,
    ) -> Elicit<'_, T> {
        let question = Question::new(self, key);
        Elicit { question, prompt: prompt.into(), schema, answer: PhantomData }
    }

    /// Sends the user to a URL, for what must not pass through the client: logging in somewhere,
    /// paying, a password.
    ///
    /// The answer says whether the user agreed to go there, not what they did there. Put nothing
    /// secret into the URL and no access that it gives by itself; whoever opens it must be checked
    /// to be the user who was asked. [`Durable::url_done`] tells older clients when it is over.
    pub fn elicit_url(
        &self,
        key: impl IntoKey,
        prompt: impl Into<String>,
        url: impl Into<String>,
    ) -> ElicitUrl<'_> {
        ElicitUrl { question: Question::new(self, key), prompt: prompt.into(), url: url.into() }
    }

    /// Tells a client of 2025-11-25 that what its user was sent to a URL for is done. Other
    /// revisions have no word for it, and nothing is said.
    pub fn url_done(&self, key: impl IntoKey) {
        self.say(Notify::UrlDone { elicitation_id: self.step_key(key) });
    }

    /// Asks the client's model.
    ///
    /// The protocol has deprecated this in 2026-07-28; it works for as long as clients offer it.
    pub fn sample(&self, key: impl IntoKey, params: CreateMessageRequestParams) -> Sample<'_> {
        Sample { question: Question::new(self, key), params: Box::new(params) }
    }

    /// Asks the client where it lets servers work. A hint, not a permission.
    ///
    /// The protocol has deprecated this in 2026-07-28; it works for as long as clients offer it.
    pub fn roots(&self, key: impl IntoKey) -> Roots<'_> {
        Roots { question: Question::new(self, key) }
    }
}

/// A form, as the user answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three of the protocol")]
pub enum Reply<T> {
    /// Filled in.
    Accepted(T),
    /// The user said no.
    Declined,
    /// The user closed it without a word.
    Cancelled,
}

impl<T> Reply<T> {
    fn accepted(self, key: &str) -> Result<T> {
        let key = key.to_owned();
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(DurableError::Declined { key }.into()),
            Self::Cancelled => Err(DurableError::Cancelled { key }.into()),
        }
    }
}

/// What all questions share: the key, and how far they are.
#[derive(Debug)]
struct Question<'a> {
    cx: &'a Durable,
    key: String,
    within: Option<Duration>,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    Settled,
}

/// What to make of an answer.
enum Verdict<T> {
    Yes(T),
    /// It is an answer, but not one to this question: asked again, saying why.
    Again(String),
    /// It is no answer at all.
    Never(String),
}

impl<'a> Question<'a> {
    fn new(cx: &'a Durable, key: impl IntoKey) -> Self {
        Self { cx, key: cx.full(key), within: None, stage: Stage::New }
    }

    /// Polls for an answer that `judge` finds good. `request` is asked for each time the question
    /// is put: with why, when an answer did not fit.
    fn poll<T>(
        &mut self,
        task: &mut Context<'_>,
        request: impl Fn(Option<&str>) -> Result<InputRequest>,
        judge: impl Fn(&RawValue) -> Verdict<T>,
    ) -> Poll<Result<T>> {
        loop {
            let asking = match self.stage {
                Stage::New => self.ask(request(None)?),
                Stage::Open => match self.cx.journal().poll_answer(&self.key, task) {
                    Poll::Ready(asking) => asking.map_err(|wrong| misuse(wrong).into()),
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Settled => panic!("polled after it was answered"),
            };
            if self.cx.journal().crashed() {
                return Poll::Pending;
            }
            let answer = match asking {
                Ok(Asking::Open) => continue,
                Ok(Asking::Answered(answer)) => answer,
                Ok(Asking::Unanswered(why)) => {
                    self.stage = Stage::Settled;
                    return Poll::Ready(Err(unanswered(&self.key, why).into()));
                }
                Err(error) => {
                    self.stage = Stage::Settled;
                    return Poll::Ready(Err(error));
                }
            };
            if let Some(settled) = self.judged(judge(&answer), &request) {
                self.stage = Stage::Settled;
                return Poll::Ready(settled);
            }
        }
    }

    fn ask(&mut self, request: InputRequest) -> Result<Asking> {
        let cx = self.cx;
        let missing = era::missing_for(cx.call(), &request);
        let within = self.within.map(|span| (cx.now(), millis(span)));
        let asking = cx.journal().ask(cx.run(), &self.key, request, within).map_err(misuse)?;
        self.stage = Stage::Open;
        match (&asking, missing) {
            // What has been answered needs no capability any more.
            (Asking::Open, Some(required)) => {
                cx.journal().withdraw(&self.key);
                Err(DurableError::MissingCapability { key: self.key.clone(), required }.into())
            }
            _ => Ok(asking),
        }
    }

    /// `None` if the question is open again.
    fn judged<T>(
        &mut self,
        verdict: Verdict<T>,
        request: impl Fn(Option<&str>) -> Result<InputRequest>,
    ) -> Option<Result<T>> {
        let cx = self.cx;
        let key = || self.key.clone();
        match verdict {
            Verdict::Yes(value) => Some(Ok(value)),
            Verdict::Again(why) => {
                let request = match request(Some(&why)) {
                    Ok(request) => request,
                    Err(error) => return Some(Err(error)),
                };
                let times = cx.journal().ask_again(&self.key, request);
                if times > cx.core().profile.limits.question_rounds {
                    cx.journal().withdraw(&self.key);
                    return Some(Err(DurableError::TooManyRounds { key: key() }.into()));
                }
                self.stage = Stage::Open;
                None
            }
            // Where the client has come back with it, the request is refused; where it is an
            // answer to a request of ours, there is nothing to refuse.
            Verdict::Never(why) if cx.call().era().asking() == Way::Suspend => {
                let why = format!("`params.inputResponses`: `{}`: {why}", self.key);
                cx.journal().refuse_answer(&self.key, why);
                self.stage = Stage::Open;
                None
            }
            Verdict::Never(why) => {
                let code = outlive_wire::code::INVALID_PARAMS;
                Some(Err(DurableError::Refused { key: key(), code, message: why }.into()))
            }
        }
    }
}

/// Losing a `select!` withdraws the question; being dropped with the run does not.
impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            self.cx.journal().withdraw(&self.key);
        }
    }
}

fn unanswered(key: &str, why: Unanswered) -> DurableError {
    let key = key.to_owned();
    match why {
        Unanswered::Refused { code, message } => DurableError::Refused { key, code, message },
        _ => DurableError::TimedOut { key },
    }
}

/// What a client answers to a form or a URL.
pub(super) fn read_elicit<T>(
    raw: &RawValue,
    accept: impl FnOnce(Option<&RawValue>) -> std::result::Result<T, String>,
) -> std::result::Result<std::result::Result<Reply<T>, String>, String> {
    let result: ElicitResult =
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(match result.action {
        ElicitAction::Accept => accept(result.content.as_deref()).map(Reply::Accepted),
        ElicitAction::Decline => Ok(Reply::Declined),
        _ => Ok(Reply::Cancelled),
    })
}

/// Reads the content of a form.
pub(super) fn read_form<T: DeserializeOwned>(
    schema: &RequestedSchema,
    content: Option<&RawValue>,
) -> std::result::Result<T, String> {
    let content = content.map_or("{}", RawValue::get);
    form::check(schema, content)?;
    serde_json::from_str(content).map_err(|error| error.to_string())
}

pub(super) fn form_request(
    prompt: &str,
    why: Option<&str>,
    schema: &RequestedSchema,
) -> InputRequest {
    let message = match why {
        None => prompt.to_owned(),
        Some(why) => format!("{prompt}\n\nThe last answer did not fit: {why}."),
    };
    InputRequest::Elicit(ElicitRequestParams::Form(ElicitRequestFormParams {
        mode: Some(FormMode::Form),
        message,
        requested_schema: schema.clone(),
        task: None,
        meta: None,
    }))
}

fn verdict<T>(read: std::result::Result<std::result::Result<T, String>, String>) -> Verdict<T> {
    match read {
        Ok(Ok(value)) => Verdict::Yes(value),
        Ok(Err(why)) => Verdict::Again(why),
        Err(why) => Verdict::Never(why),
    }
}

/// A form that waits to be filled in; see [`Durable::elicit`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct Elicit<'a, T> {
    question: Question<'a>,
    prompt: String,
    schema: std::result::Result<Arc<RequestedSchema>, FormError>,
    answer: PhantomData<fn() -> T>,
}

impl<'a, T: DeserializeOwned> Elicit<'a, T> {
    /// How long the question is open. The time counts from when it is first asked, whatever runs
    /// again; a time-out of your own around the question would begin anew each time.
    pub fn within(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Asks, and tells the three ways to answer apart.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
    pub async fn reply(mut self) -> Result<Reply<T>> {
        std::future::poll_fn(|task| self.poll_reply(task)).await
    }

    fn poll_reply(&mut self, task: &mut Context<'_>) -> Poll<Result<Reply<T>>> {
        let Self { question, prompt, schema, .. } = self;
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => {
                let error = DurableError::form(&question.key, error);
                return Poll::Ready(Err(error.into()));
            }
        };
        question.poll(
            task,
            |why| Ok(form_request(prompt, why, schema)),
            |raw| verdict(read_elicit(raw, |content| read_form(schema, content))),
        )
    }
}

impl<T: DeserializeOwned> Future for Elicit<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<T>> {
        let reply = self.poll_reply(task);
        reply.map(|reply| reply?.accepted(&self.question.key))
    }
}

/// A URL that waits to be opened; see [`Durable::elicit_url`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct ElicitUrl<'a> {
    question: Question<'a>,
    prompt: String,
    url: String,
}

impl ElicitUrl<'_> {
    /// How long the question is open; see [`Elicit::within`].
    pub fn within(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Asks, and tells the three ways to answer apart.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
    pub async fn reply(mut self) -> Result<Reply<()>> {
        std::future::poll_fn(|task| self.poll_reply(task)).await
    }

    fn poll_reply(&mut self, task: &mut Context<'_>) -> Poll<Result<Reply<()>>> {
        let Self { question, prompt, url } = self;
        // 2025-11-25 wants an id, and no other revision knows it.
        let waits = question.cx.call().era().asking() == Way::Wait;
        let id = waits.then(|| question.cx.key_of(&question.key));
        let request = |_: Option<&str>| {
            let url = ElicitRequestURLParams {
                message: prompt.clone(),
                url: url.clone(),
                elicitation_id: id.clone(),
                task: None,
                meta: None,
            };
            Ok(InputRequest::Elicit(ElicitRequestParams::Url(url)))
        };
        question.poll(task, request, |raw| verdict(read_elicit(raw, |_| Ok(()))))
    }
}

impl Future for ElicitUrl<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<()>> {
        let reply = self.poll_reply(task);
        reply.map(|reply| reply?.accepted(&self.question.key))
    }
}

/// A conversation that waits for the model; see [`Durable::sample`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct Sample<'a> {
    question: Question<'a>,
    params: Box<CreateMessageRequestParams>,
}

impl Sample<'_> {
    /// How long the question is open; see [`Elicit::within`].
    pub fn within(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }
}

impl Future for Sample<'_> {
    type Output = Result<CreateMessageResult>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { question, params } = &mut *self;
        let key = question.key.clone();
        let request = |_: Option<&str>| {
            let params = params.clone();
            conversation::check_conversation(&params.messages)
                .map_err(|reason| DurableError::Unaskable { key: key.clone(), reason })?;
            Ok(InputRequest::CreateMessage(params))
        };
        question.poll(task, request, |raw| verdict(read::<CreateMessageResult>(raw).map(Ok)))
    }
}

/// A question for the client's roots; see [`Durable::roots`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct Roots<'a> {
    question: Question<'a>,
}

impl Roots<'_> {
    /// How long the question is open; see [`Elicit::within`].
    pub fn within(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }
}

impl Future for Roots<'_> {
    type Output = Result<Vec<Root>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let judge = |raw: &RawValue| {
            verdict(read::<ListRootsResult>(raw).and_then(|list| {
                match list.roots.iter().find(|root| !root.uri.starts_with("file://")) {
                    Some(root) => Err(format!("the root `{}` is no file:// URI", root.uri)),
                    None => Ok(Ok(list.roots)),
                }
            }))
        };
        self.question.poll(task, |_| Ok(InputRequest::ListRoots), judge)
    }
}

pub(super) fn read<T: DeserializeOwned>(raw: &RawValue) -> std::result::Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
}
