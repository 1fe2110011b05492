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

use outlive_protocol::Notify;
use outlive_schema::forms::{self, Form, FormError};
use outlive_tasks::IntoKey;
use outlive_wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestURLParams, InputRequest,
    RequestedSchema, Root,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::server::{
    conversation,
    durable::{
        context::Durable,
        input_future::{InputFuture, verdict},
    },
    durable_error::DurableError,
    error::Result,
    run::input::{
        ElicitOutcome, form_request, read, read_elicit, read_form, read_roots, url_request,
    },
};

impl Durable {
    /// Asks the user to fill in a form.
    ///
    /// The form's fields are those of `T`. An answer that does not fit is asked for again. With
    /// `?` a user who says no ends the handler; [`Elicit::outcome`] tells the three ways apart. Never
    /// ask for passwords, keys or tokens this way: the protocol forbids it. [`Durable::elicit_url`]
    /// is for those.
    pub fn elicit<T: Form>(&self, key: impl IntoKey, prompt: impl Into<String>) -> Elicit<'_, T> {
        self.elicit_form(key, prompt, forms::schema_of::<T>())
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
        let question = InputFuture::new(self, key);
        Elicit { question, prompt: prompt.into(), schema, answer: PhantomData }
    }

    /// Sends the user to a URL, for what must not pass through the client: logging in somewhere,
    /// paying, a password.
    ///
    /// The answer says whether the user agreed to go there, not what they did there. Put nothing
    /// secret into the URL and no access that it gives by itself; whoever opens it must be checked
    /// to be the user who was asked. [`Durable::complete_url_elicitation`] tells older clients when it is over.
    pub fn elicit_url(
        &self,
        key: impl IntoKey,
        prompt: impl Into<String>,
        url: impl Into<String>,
    ) -> ElicitUrl<'_> {
        ElicitUrl { question: InputFuture::new(self, key), prompt: prompt.into(), url: url.into() }
    }

    /// Tells a client of 2025-11-25 that what its user was sent to a URL for is done. Other
    /// revisions have no word for it, and nothing is said.
    pub fn complete_url_elicitation(&self, key: impl IntoKey) {
        self.say(Notify::UrlDone { elicitation_id: self.idempotency_key(key) });
    }

    /// Asks the client's model.
    ///
    /// The protocol has deprecated this in 2026-07-28; it works for as long as clients offer it.
    pub fn sample(&self, key: impl IntoKey, params: CreateMessageRequestParams) -> Sample<'_> {
        Sample { question: InputFuture::new(self, key), params: Box::new(params) }
    }

    /// Asks the client where it lets servers work. A hint, not a permission.
    ///
    /// The protocol has deprecated this in 2026-07-28; it works for as long as clients offer it.
    pub fn roots(&self, key: impl IntoKey) -> Roots<'_> {
        Roots { question: InputFuture::new(self, key) }
    }
}

/// A form that waits to be filled in; see [`Durable::elicit`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct Elicit<'a, T> {
    question: InputFuture<'a>,
    prompt: String,
    schema: std::result::Result<Arc<RequestedSchema>, FormError>,
    answer: PhantomData<fn() -> T>,
}

impl<'a, T: DeserializeOwned> Elicit<'a, T> {
    /// How long the question is open. The time counts from when it is first asked, whatever runs
    /// again; a time-out of your own around the question would begin anew each time.
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Asks, and tells the three ways to answer apart.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
    pub async fn outcome(mut self) -> Result<ElicitOutcome<T>> {
        std::future::poll_fn(|task| self.poll_reply(task)).await
    }

    fn poll_reply(&mut self, task: &mut Context<'_>) -> Poll<Result<ElicitOutcome<T>>> {
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
    question: InputFuture<'a>,
    prompt: String,
    url: String,
}

impl ElicitUrl<'_> {
    /// How long the question is open; see [`Elicit::timeout`].
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Asks, and tells the three ways to answer apart.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
    pub async fn outcome(mut self) -> Result<ElicitOutcome<()>> {
        std::future::poll_fn(|task| self.poll_reply(task)).await
    }

    fn poll_reply(&mut self, task: &mut Context<'_>) -> Poll<Result<ElicitOutcome<()>>> {
        let Self { question, prompt, url } = self;
        let (cx, key) = (question.cx, question.key.clone());
        let request = |_: Option<&str>| {
            let params = ElicitRequestURLParams {
                message: prompt.clone(),
                url: url.clone(),
                elicitation_id: None,
                task: None,
                meta: None,
            };
            Ok(url_request(cx.env(), cx.call(), cx.run(), &key, params)?)
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
    question: InputFuture<'a>,
    params: Box<CreateMessageRequestParams>,
}

impl Sample<'_> {
    /// How long the question is open; see [`Elicit::timeout`].
    pub fn timeout(mut self, span: Duration) -> Self {
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
                .map_err(|reason| DurableError::InvalidInputRequest { key: key.clone(), reason })?;
            Ok(InputRequest::CreateMessage(params))
        };
        question.poll(task, request, |raw| verdict(read::<CreateMessageResult>(raw).map(Ok)))
    }
}

/// A question for the client's roots; see [`Durable::roots`].
#[must_use = "nothing is asked until it is awaited"]
#[derive(Debug)]
pub struct Roots<'a> {
    question: InputFuture<'a>,
}

impl Roots<'_> {
    /// How long the question is open; see [`Elicit::timeout`].
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }
}

impl Future for Roots<'_> {
    type Output = Result<Vec<Root>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let judge = |raw: &RawValue| verdict(read_roots(raw).map(Ok));
        self.question.poll(task, |_| Ok(InputRequest::ListRoots), judge)
    }
}
