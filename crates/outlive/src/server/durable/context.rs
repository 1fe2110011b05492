//! [`Durable`], the context of a handler that can be replayed.

use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use outlive_protocol::InputMode;
use outlive_tasks::{IntoKey, Journal, JournalEntry, RunId, Step, StepStart, in_step};
use outlive_wire::{ContentBlock, Method, RawJson};
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use crate::server::{
    durable::{recordable::Recordable, step_once::first_time},
    durable_error::DurableError,
    error::{Error, Result},
    extract::{
        cx::Cx,
        extractor::{Extract, HandlerRequirements, Rejection},
    },
    retry::{Attempt, Retry},
    run::state::{RunState, run_id},
    secret::record,
    time::{millis, now},
};

/// The context of a handler that can be replayed.
///
/// It extends [`Cx`]. Steps, input requests and timers are recorded in the call's journal under
/// their keys. When the handler runs again, they return their recorded values. A handler runs again
/// after a crash, and when a client of 2026-07-28 sends an input response. In legacy protocol
/// versions, the handler waits for the response.
///
/// Code between steps can run more than once. Put every side effect, and every decision that steps
/// depend on, into a step.
///
/// When the task is cancelled, waits fail at once with [`DurableError::TaskCancelled`], and so does
/// every later step, timer, input request and external event. [`Durable::shielded`] returns a
/// context that continues.
///
/// ```
/// use outlive::{Form, server::{Durable, Result}, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
/// struct Approval {
///     /// Whether to deploy.
///     yes: bool,
/// }
///
/// /// Builds and deploys.
/// #[tool]
/// async fn deploy(cx: Durable, repo: String) -> Result<String> {
///     let image: String = cx.step("build", async || Ok(format!("{repo}:1"))).await?;
///     let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
///     Ok(if approval.yes { format!("{image} deployed") } else { "not deployed".into() })
/// }
/// # deploy::tool();
/// ```
#[derive(Clone)]
pub struct Durable {
    cx: Cx,
    run: Arc<RunState>,
    scope: String,
    /// Whether the context ignores the cancellation of the task.
    shielded: bool,
}

impl Durable {
    /// Returns a context that prefixes its keys with `key`, for helpers and loops that reuse names.
    /// A clone of the context has the same keys.
    pub fn scope(&self, key: impl IntoKey) -> Durable {
        Durable { scope: self.full(key), ..self.clone() }
    }

    /// Returns the recorded result of a step, of this run or an earlier one. Returns `None` if the
    /// step has not completed. Use it if a handler must know its progress before it decides what to
    /// do.
    ///
    /// # Errors
    ///
    /// Returns the permanent failure of the step, or an error if the value does not decode as `T`.
    pub fn get<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        recorded(self.journal(), &self.full(key))
    }

    /// Runs `body` and records its result in the journal. When the handler runs again, the step
    /// returns the recorded value and does not run `body`. The first run also returns the value as
    /// recorded.
    ///
    /// The body returns this crate's [`Result`]. `?` converts other errors, so a body that is a
    /// single call is written `Ok(call().await?)`. Annotate the type of the returned value: it
    /// determines how the journal entry is decoded.
    ///
    /// ```
    /// use outlive::server::{Durable, Result};
    ///
    /// async fn settings(cx: &Durable) -> Result<usize> {
    ///     let text: String = cx.step("read", async || Ok(std::fs::read_to_string("settings.toml")?)).await?;
    ///     Ok(text.len())
    /// }
    /// # let _ = settings;
    /// ```
    ///
    /// If the process crashes before the result is recorded, the body runs again. Pass an
    /// [`idempotency_key`] to external systems so that they can detect the repetition.
    ///
    /// # Errors
    ///
    /// Returns the error of the body, which is recorded only if it is [`permanent`], or a
    /// [`DurableError`].
    ///
    /// [`idempotency_key`]: Durable::idempotency_key
    /// [`permanent`]: Error::permanent
    pub async fn step<T, F>(&self, key: impl IntoKey, body: F) -> Result<T>
    where
        T: Recordable,
        F: AsyncFnOnce() -> Result<T>,
    {
        let key = self.full(key);
        self.begin_step(&key).await?;
        match self.journal().begin(self.run_id(), &key).map_err(DurableError::from)? {
            StepStart::Recorded(entry) => self.read_back(&key, entry).await,
            StepStart::Ambiguous => Err(DurableError::Ambiguous { key }.into()),
            StepStart::New(step) => {
                let returned = marked(&step, body()).await;
                self.finish_step(step, returned).await
            }
        }
    }

    /// Runs `body` as [`Durable::step`] does, and retries it if it fails with an error that is not
    /// [`permanent`](Error::permanent). The body receives the [`Attempt`].
    ///
    /// ```
    /// use outlive::server::{Durable, Result, durable::Retry};
    /// # async fn fetch(_: &str) -> std::io::Result<String> { Ok(String::new()) }
    ///
    /// async fn page(cx: &Durable) -> Result<String> {
    ///     cx.step_retry("page", Retry::attempts(3), async |attempt| {
    ///         let mirror = if attempt.last { "b.example" } else { "a.example" };
    ///         Ok(fetch(mirror).await?)
    ///     })
    ///     .await
    /// }
    /// # let _ = page;
    /// ```
    ///
    /// The body may borrow values that it reads. It must change captured values before it creates
    /// its future: `|_| { tries += 1; async move { … } }`.
    ///
    /// # Errors
    ///
    /// Returns the error of the last attempt, or a [`DurableError`].
    // Not `AsyncFnMut`: the compiler cannot prove that a future that borrows from its closure is
    // `Send`.
    pub async fn step_retry<T, F, Fut>(
        &self,
        key: impl IntoKey,
        retry: Retry,
        mut body: F,
    ) -> Result<T>
    where
        T: Recordable,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let key = self.full(key);
        self.begin_step(&key).await?;
        let step = match self.journal().begin(self.run_id(), &key).map_err(DurableError::from)? {
            StepStart::Recorded(entry) => return self.read_back(&key, entry).await,
            StepStart::Ambiguous => return Err(DurableError::Ambiguous { key }.into()),
            StepStart::New(step) => step,
        };
        let mut attempt = retry.first();
        let returned = loop {
            match marked(&step, body(attempt)).await {
                Err(error) if !attempt.last && !error.is_permanent() => {
                    let tried = attempt.number;
                    tracing::debug!(key, tried, %error, "step failed; retrying");
                    self.back_off(&key, retry.pause(tried)).await?;
                    attempt = retry.after(attempt);
                    step.restart();
                }
                returned => break returned,
            }
        };
        self.finish_step(step, returned).await
    }

    /// Runs `body` as [`Durable::step`] does, but never twice. The step records its start in the
    /// store before the body runs. If the process crashes during the body, the step fails instead
    /// of running again. An error of the body is recorded like a value.
    ///
    /// # Errors
    ///
    /// Returns [`DurableError::Ambiguous`] if an earlier run started the step and did not record a
    /// result. Returns [`DurableError::StoreRequired`] if the server has no store. Declare the step
    /// with [`Tool::uses_step_once`], so that building a server without a store fails.
    ///
    /// [`Tool::uses_step_once`]: crate::server::Tool::uses_step_once
    pub async fn step_once<T, F>(&self, key: impl IntoKey, body: F) -> Result<T>
    where
        T: Recordable,
        F: AsyncFnOnce() -> Result<T>,
    {
        let key = self.full(key);
        self.begin_step(&key).await?;
        let (begun, ticket) =
            self.journal().begin_once(self.run_id(), &key).map_err(DurableError::from)?;
        let step = match begun {
            StepStart::Recorded(entry) => return self.read_back(&key, entry).await,
            StepStart::Ambiguous => return Err(DurableError::Ambiguous { key }.into()),
            StepStart::New(step) => step,
        };
        if !self.run.is_task() {
            let place = self.run.idempotency_key(self.cx.env(), &key);
            match first_time(self.cx.env(), self.cx.principal(), &place).await {
                Some(Ok(true)) => {}
                Some(Ok(false)) => return Err(DurableError::Ambiguous { key }.into()),
                Some(Err(error)) => return Err(error),
                None => return Err(DurableError::StoreRequired { key }.into()),
            }
        }
        poll_fn(|cx| self.journal().poll_written(ticket, cx)).await.map_err(DurableError::from)?;
        self.survive().await;
        let returned = marked(&step, body()).await;
        self.finish_step(step, returned.map_err(Error::permanent)).await
    }

    /// Returns an idempotency key for external systems. It is the same in every run of this call,
    /// and differs for every other call and key.
    pub fn idempotency_key(&self, key: impl IntoKey) -> String {
        self.run.idempotency_key(self.cx.env(), &self.full(key))
    }

    /// Waits for `span`, which starts when the handler first reaches this key. Time that passes
    /// between runs counts.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`].
    pub async fn sleep(&self, key: impl IntoKey, span: Duration) -> Result<()> {
        let key = self.full(key);
        self.go_on(&key)?;
        let (now, span) = (self.now(), millis(span));
        let timer =
            self.journal().timer(self.run_id(), &key, now, span).map_err(DurableError::from)?;
        self.survive().await;
        if timer.due() > now {
            self.pause(&key, Duration::from_millis(timer.due() - now)).await?;
        }
        Ok(())
    }

    /// Adds a content block to the result while the handler runs. Emitted blocks precede the blocks
    /// that the handler returns. Each block appears once, even if the handler runs several times.
    /// Only tools can emit.
    ///
    /// In a task, each block is a numbered segment that clients with support for partial results
    /// can read before the task ends. A segment is stored before a client can read it. Several
    /// segments share one commit.
    ///
    /// A replay does not emit stored segments again. A segment is identified by the step or
    /// [`scope`](Durable::scope) that emitted it and its position there, so concurrent branches
    /// each need a scope. If a replay emits different content, the stored segment stays and the log
    /// has a warning.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`].
    pub async fn emit(&self, block: impl Into<ContentBlock>) -> Result<()> {
        if self.call().method() != Some(Method::ToolsCall) {
            return Err(Error::new(
                "only tools can emit; return all content of a prompt or resource",
            ));
        }
        let block = to_raw_value(&block.into())?;
        self.journal().emit(Some(self.run_id()), &self.scope, block).map_err(DurableError::from)?;
        // Backpressure: waits if the handler emits faster than the store commits.
        poll_fn(|cx| self.journal().poll_capacity(cx)).await;
        self.survive().await;
        Ok(())
    }

    /// Lets another replica continue the call. A task returns to the store, and the first replica
    /// to claim it continues, possibly this one. For an inline call of 2026-07-28, the response
    /// carries the journal in a request state, and the client retries at once. Has no effect on
    /// inline calls of legacy versions, or above `max_yields` in one call.
    pub fn yield_to_replica(&self) -> YieldToReplica<'_> {
        YieldToReplica { cx: self, after: None }
    }

    /// Decodes a recorded entry. If a task's entry does not decode, the task is quarantined,
    /// because the handler could otherwise repeat effects that took place.
    async fn read_back<T: DeserializeOwned>(&self, key: &str, entry: JournalEntry) -> Result<T> {
        match decode(key, entry) {
            Err(error) if is_undecodable(&error) => Err(self.give_up(error).await),
            read => read,
        }
    }

    async fn finish_step<T: Recordable>(&self, step: Step<'_>, returned: Result<T>) -> Result<T> {
        let key = Arc::clone(step.key());
        let (entry, secret) = match returned {
            Ok(value) => {
                let (raw, secret) = record(|| to_raw_value(&value));
                (JournalEntry::Value(raw?), secret)
            }
            Err(error) => match error.to_failure() {
                Some(failure) => (JournalEntry::Failed(failure), false),
                None => return Err(error),
            },
        };
        let (stored, ticket) = step.record(entry, secret).map_err(DurableError::from)?;
        // With a store, the step completes only when its entry is committed.
        poll_fn(|cx| self.journal().poll_written(ticket, cx)).await.map_err(DurableError::from)?;
        self.survive().await;
        decode(&key, stored)
    }

    /// Continues, or stays pending if a test simulates a crash at this point. The test then drops
    /// the run.
    async fn survive(&self) {
        poll_fn(|_| match self.journal().crashed() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    pub(crate) fn full(&self, key: impl IntoKey) -> String {
        key.into_key().within(&self.scope).into_string()
    }

    pub(crate) fn journal(&self) -> &Journal {
        self.run.journal()
    }

    pub(crate) fn run(&self) -> &RunState {
        &self.run
    }

    pub(crate) fn shared_run(&self) -> Arc<RunState> {
        Arc::clone(&self.run)
    }

    /// Returns the prefix of the keys of this context.
    pub(crate) fn scope_text(&self) -> &str {
        &self.scope
    }

    pub(crate) fn run_id(&self) -> RunId {
        run_id(self.cx.call())
    }

    pub(crate) fn now(&self) -> u64 {
        now(&self.cx.env().profile)
    }

    /// Returns a context that continues when the task is cancelled.
    pub(crate) fn to_shielded(&self) -> Self {
        Self { shielded: true, ..self.clone() }
    }

    pub(crate) fn is_shielded(&self) -> bool {
        self.shielded
    }
}

/// Polls the body of a step with a marker, so that nested steps and input requests are rejected.
async fn marked<F: Future>(step: &Step<'_>, body: F) -> F::Output {
    let mut body = pin!(body);
    poll_fn(|cx| in_step(step.key(), || body.as_mut().poll(cx))).await
}

fn is_undecodable(error: &Error) -> bool {
    matches!(error.durable_error(), Some(DurableError::IncompatibleEntry { .. }))
}

/// Returns the decoded journal entry of a step or an input response.
pub(crate) fn recorded<T: DeserializeOwned>(journal: &Journal, key: &str) -> Result<Option<T>> {
    match journal.get(key) {
        None => Ok(None),
        Some(JournalEntry::Answer(raw)) => decode_raw(key, &raw).map(Some),
        Some(entry) => decode(key, entry).map(Some),
    }
}

/// Decodes a recorded value, or returns the recorded failure.
fn decode<T: DeserializeOwned>(key: &str, entry: JournalEntry) -> Result<T> {
    match entry {
        JournalEntry::Value(raw) | JournalEntry::Secret(raw) => decode_raw(key, &raw),
        JournalEntry::Failed(failure) => Err(Error::from_failure(failure)),
        _ => {
            Err(DurableError::from(outlive_tasks::JournalError::KindMismatch(key.to_owned()))
                .into())
        }
    }
}

pub(crate) fn decode_raw<T: DeserializeOwned>(key: &str, raw: &RawJson) -> Result<T> {
    serde_json::from_str(raw.get()).map_err(|error| {
        DurableError::IncompatibleEntry { key: key.to_owned(), reason: error.to_string() }.into()
    })
}

/// Future that lets another replica continue; see [`Durable::yield_to_replica`].
#[must_use = "has no effect until the future is awaited"]
#[derive(Debug)]
pub struct YieldToReplica<'a> {
    cx: &'a Durable,
    after: Option<Duration>,
}

impl YieldToReplica<'_> {
    /// Sets the delay before the client retries.
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.after = Some(pause);
        self
    }
}

impl Future for YieldToReplica<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let cx = self.cx;
        // A task always yields: it waits in the store, independent of the client's protocol
        // version.
        let stays = cx.call().rules().input_mode == InputMode::Stream
            || cx.run.yields() >= cx.env().profile.limits.max_yields;
        if stays && !cx.run.is_task() {
            return Poll::Ready(Ok(()));
        }
        match cx.journal().yield_run(cx.run_id(), self.after, None) {
            // The run ends here; the next run may not need to yield.
            Ok(()) => Poll::Pending,
            Err(wrong) => Poll::Ready(Err(DurableError::from(wrong).into())),
        }
    }
}

impl Deref for Durable {
    type Target = Cx;

    fn deref(&self) -> &Cx {
        &self.cx
    }
}

impl Extract for Durable {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let (cx, run) = cx.with_run();
        Ok(Self { cx, run, scope: String::new(), shielded: false })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.durable = true;
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable")
            .field("call", self.cx.call())
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
