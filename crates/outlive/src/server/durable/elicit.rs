//! Input requests to the client: form and URL elicitation, sampling and roots.
//!
//! Each is a future that resolves with the input response. On 2026-07-28, the run that makes the
//! request is dropped; a later run finds the response in the journal and resolves at once.

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
use outlive_tasks::{IntoKey, store::Audience};
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
    /// Requests that the user fills in a form.
    ///
    /// The fields of the form are the fields of `T`. An invalid response makes the server request
    /// the form again. With `?`, the handler ends if the user declines; [`Elicit::outcome`] returns
    /// the user's action instead. The protocol forbids forms for passwords, keys or tokens; use
    /// [`Durable::elicit_url`] for those.
    pub fn elicit<T: Form>(&self, key: impl IntoKey, prompt: impl Into<String>) -> Elicit<'_, T> {
        self.elicit_form(key, prompt, forms::schema_of::<T>())
    }

    /// Requests that the user fills in a form whose schema is built at run time.
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

    /// Requests that the user opens a URL, for data that must not pass through the client: a login,
    /// a payment, a password.
    ///
    /// The response says whether the user agreed to open the URL, not what happened there. The URL
    /// must not contain secrets or grant access by itself. The page must check that its visitor is
    /// the user of this call. [`Durable::complete_url_elicitation`] notifies clients of 2025-11-25
    /// when the interaction is complete.
    pub fn elicit_url(
        &self,
        key: impl IntoKey,
        prompt: impl Into<String>,
        url: impl Into<String>,
    ) -> ElicitUrl<'_> {
        ElicitUrl { question: InputFuture::new(self, key), prompt: prompt.into(), url: url.into() }
    }

    /// Notifies a client of 2025-11-25 that a URL elicitation is complete. Has no effect in other
    /// protocol versions, which have no such notification.
    pub fn complete_url_elicitation(&self, key: impl IntoKey) {
        self.say(Notify::UrlDone { elicitation_id: self.idempotency_key(key) });
    }

    /// Requests a message from the client's model.
    ///
    /// The protocol deprecated sampling in 2026-07-28. It works with clients that still declare it.
    pub fn sample(&self, key: impl IntoKey, params: CreateMessageRequestParams) -> Sample<'_> {
        Sample { question: InputFuture::new(self, key), params: Box::new(params) }
    }

    /// Requests the roots of the client: the directories that servers should work in. Roots are a
    /// hint, not a permission.
    ///
    /// The protocol deprecated roots in 2026-07-28. They work with clients that still declare them.
    pub fn roots(&self, key: impl IntoKey) -> Roots<'_> {
        Roots { question: InputFuture::new(self, key) }
    }
}

/// Future of a form elicitation; see [`Durable::elicit`].
#[must_use = "no request is sent until the future is awaited"]
#[derive(Debug)]
pub struct Elicit<'a, T> {
    question: InputFuture<'a>,
    prompt: String,
    schema: std::result::Result<Arc<RequestedSchema>, FormError>,
    answer: PhantomData<fn() -> T>,
}

impl<'a, T: DeserializeOwned> Elicit<'a, T> {
    /// Sets the timeout of the input request. The time starts with the first request and continues
    /// across replays. A timeout around the future would restart in every run.
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Sets the parties that may respond. The default is [`Audience::Client`].
    ///
    /// With [`Audience::Caller`], a person must decide: the store rejects a response from a fallback
    /// tool or an answer link, which a model could use on its own.
    ///
    /// With [`Audience::Names`] or [`Audience::Scope`], other people respond in the console, and the
    /// client sees only that the task runs. The call becomes a task for that.
    ///
    /// ```
    /// use outlive::{
    ///     Form,
    ///     server::{Durable, Result, durable::Audience},
    /// };
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
    /// struct Approval { deploy: bool }
    ///
    /// async fn deploy(cx: Durable) -> Result<String> {
    ///     let asked = cx.elicit::<Approval>("approve", "Deploy shop:1?").audience(Audience::Caller);
    ///     Ok(if asked.await?.deploy { "deployed" } else { "not deployed" }.to_owned())
    /// }
    /// # outlive::server::Tool::new("deploy", deploy);
    /// ```
    pub fn audience(mut self, audience: Audience) -> Self {
        self.question.audience = audience;
        self
    }

    /// Sends the request and returns the user's action.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`].
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

/// Future of a URL elicitation; see [`Durable::elicit_url`].
#[must_use = "no request is sent until the future is awaited"]
#[derive(Debug)]
pub struct ElicitUrl<'a> {
    question: InputFuture<'a>,
    prompt: String,
    url: String,
}

impl ElicitUrl<'_> {
    /// Sets the timeout of the input request; see [`Elicit::timeout`].
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Sets the parties that may respond; see [`Elicit::audience`].
    pub fn audience(mut self, audience: Audience) -> Self {
        self.question.audience = audience;
        self
    }

    /// Sends the request and returns the user's action.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`].
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

/// Future of a sampling request; see [`Durable::sample`].
#[must_use = "no request is sent until the future is awaited"]
#[derive(Debug)]
pub struct Sample<'a> {
    question: InputFuture<'a>,
    params: Box<CreateMessageRequestParams>,
}

impl Sample<'_> {
    /// Sets the timeout of the input request; see [`Elicit::timeout`].
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

/// Future of a roots request; see [`Durable::roots`].
#[must_use = "no request is sent until the future is awaited"]
#[derive(Debug)]
pub struct Roots<'a> {
    question: InputFuture<'a>,
}

impl Roots<'_> {
    /// Sets the timeout of the input request; see [`Elicit::timeout`].
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
