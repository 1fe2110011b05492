//! External events: a handler waits for a value that another system delivers.

use std::{
    fmt,
    future::{Future, IntoFuture, poll_fn},
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use outlive_tasks::{InputPoll, IntoKey};
use serde::de::DeserializeOwned;

use crate::server::{
    durable::{
        context::{Durable, decode_raw},
        input_future::unanswered,
    },
    durable_error::DurableError,
    error::Result,
    run::completion_token::CompletionToken,
    time::millis,
};

impl Durable {
    /// Creates an external event: a value that a job system, a person or another program delivers
    /// later.
    ///
    /// Awaiting the result returns an [`ExternalEvent`]. Its token authorizes the delivery, with
    /// [`Server::complete_external_event`] or over HTTP. The event is a future of the delivered
    /// value.
    ///
    /// The wait survives crashes and can last days. After a short time the task is parked and uses
    /// no memory. An external event therefore needs a task: a call that may become one is promoted
    /// at once.
    ///
    /// ```
    /// use outlive::{server::{Durable, Result}, tool};
    /// # async fn submit(_: &str) {}
    ///
    /// /// Renders a film.
    /// #[tool(task = "auto")]
    /// async fn render(cx: Durable) -> Result<String> {
    ///     let job = cx.external_event::<String>("render").await?;
    ///     cx.step("submit", async || Ok(submit(job.token()).await)).await?;
    ///     job.await
    /// }
    /// # render::tool();
    /// ```
    ///
    /// [`Server::complete_external_event`]: crate::server::Server::complete_external_event
    pub fn external_event<T: DeserializeOwned>(
        &self,
        key: impl IntoKey,
    ) -> CreateExternalEvent<'_, T> {
        CreateExternalEvent { cx: self, key: self.full(key), within: None, value: PhantomData }
    }
}

/// Future that creates an external event; see [`Durable::external_event`].
#[must_use = "no event is created until the future is awaited"]
pub struct CreateExternalEvent<'a, T> {
    cx: &'a Durable,
    key: String,
    within: Option<Duration>,
    value: PhantomData<fn() -> T>,
}

impl<'a, T: DeserializeOwned + 'a> CreateExternalEvent<'a, T> {
    /// Sets the timeout of the event. The time starts when the event is first created and continues
    /// across replays.
    pub fn timeout(mut self, span: Duration) -> Self {
        self.within = Some(span);
        self
    }

    async fn open(self) -> Result<ExternalEvent<'a, T>> {
        let Self { cx, key, within, .. } = self;
        cx.go_on(&key)?;
        if !poll_fn(|task| cx.run().poll_task(task)).await {
            return Err(DurableError::TaskRequired { key }.into());
        }
        let token = CompletionToken::seal(cx.env(), cx.call(), cx.run(), &key)?;
        let within = within.map(|span| (cx.now(), millis(span)));
        let asked = cx.journal().inputs().open_external_event(cx.run_id(), &key, within);
        let (asking, ticket) = asked.map_err(DurableError::from)?;
        let is_open = matches!(asking, InputPoll::Open);
        let external = ExternalEvent { cx, key, token, is_open, value: PhantomData };
        // The token is valid only after the event is committed.
        poll_fn(|task| cx.journal().poll_written(ticket, task))
            .await
            .map_err(DurableError::from)?;
        Ok(external)
    }
}

impl<'a, T: DeserializeOwned + 'a> IntoFuture for CreateExternalEvent<'a, T> {
    type Output = Result<ExternalEvent<'a, T>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

/// An external event that a task waits for; see [`Durable::external_event`].
#[must_use = "dropping the event withdraws it"]
pub struct ExternalEvent<'a, T> {
    cx: &'a Durable,
    key: String,
    token: String,
    /// Whether no value has been delivered, as far as this run knows.
    is_open: bool,
    value: PhantomData<fn() -> T>,
}

impl<T> ExternalEvent<'_, T> {
    /// Returns the completion token that authorizes the delivery of this event's value. Each run of
    /// the handler creates a different token; all of them stay valid.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl<T: DeserializeOwned> Future for ExternalEvent<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<T>> {
        if let Poll::Ready(stopped) = self.cx.poll_stopped(&self.key, task) {
            return Poll::Ready(Err(stopped.into()));
        }
        let asking = match self.cx.journal().inputs().poll(&self.key, task) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(asking) => asking.map_err(DurableError::from),
        };
        self.is_open = false;
        Poll::Ready(match asking? {
            InputPoll::Answered(raw) => decode_raw(&self.key, &raw),
            InputPoll::Unanswered(why) => Err(unanswered(&self.key, why).into()),
            InputPoll::Open => return Poll::Pending,
        })
    }
}

/// Losing a `select!` withdraws the event. Being dropped with the whole run does not: the journal
/// then rejects changes.
impl<T> Drop for ExternalEvent<'_, T> {
    fn drop(&mut self) {
        if self.is_open {
            self.cx.journal().inputs().withdraw(&self.key);
        }
    }
}

impl<T> fmt::Debug for CreateExternalEvent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateExternalEvent").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ExternalEvent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalEvent").field("key", &self.key).finish_non_exhaustive()
    }
}
