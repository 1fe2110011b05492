//! Input requests of any kind, whose responses are not read here.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use outlive_tasks::{IntoKey, store::Audience};
use outlive_wire::{ElicitRequestParams, InputRequest, RawJson};

use crate::server::{
    durable::{
        context::Durable,
        input_future::{InputFuture, Verdict},
    },
    error::Result,
    run::input::with_elicitation_id,
};

impl Durable {
    /// Sends an input request of any kind, such as one of another server, and returns the response
    /// as the client sent it. The response is neither validated nor converted.
    ///
    /// The ID of a URL elicitation is replaced by one of this server. Dropping the future withdraws
    /// the request.
    pub fn request_input(&self, key: impl IntoKey, request: InputRequest) -> RequestInput<'_> {
        RequestInput { question: InputFuture::new(self, key), request }
    }
}

/// Future of an input request of any kind; see [`Durable::request_input`].
#[must_use = "no request is sent until the future is awaited"]
#[derive(Debug)]
pub struct RequestInput<'a> {
    question: InputFuture<'a>,
    request: InputRequest,
}

impl RequestInput<'_> {
    /// Sets the timeout of the input request; see [`Elicit::timeout`](super::Elicit::timeout).
    pub fn timeout(mut self, span: Duration) -> Self {
        self.question.within = Some(span);
        self
    }

    /// Sets the parties that may respond; see [`Elicit::audience`](super::Elicit::audience).
    pub fn audience(mut self, audience: Audience) -> Self {
        self.question.audience = audience;
        self
    }
}

impl Future for RequestInput<'_> {
    type Output = Result<RawJson>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { question, request } = &mut *self;
        let (cx, key) = (question.cx, question.key.clone());
        let request = |_: Option<&str>| {
            Ok(match request.clone() {
                InputRequest::Elicit(ElicitRequestParams::Url(params)) => {
                    with_elicitation_id(cx.env(), cx.call(), cx.run(), &key, params)
                }
                other => other,
            })
        };
        question.poll(task, request, |raw| Verdict::Yes(raw.to_owned()))
    }
}
