//! [`Durable`]: the context of a handler that may run again from the top.

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

/// The context of a handler that may run again from the top.
///
/// It is a [`Cx`], and more: what it does under a key is recorded in the call's journal, and read
/// back instead of done again when the handler runs again. A handler runs again when a client of
/// 2026-07-28 comes back with the answer to a question; on older revisions it waits for the answer.
/// When its task is cancelled, steps, timers, questions and waits for something outside fail with
/// [`DurableError::TaskCancelled`]: at once where the handler waits, else where it comes to the next
/// one; [`Durable::shielded`] goes on. Between its steps anything may run twice, so whatever has an effect, and every decision that
/// steers steps, belongs into a step.
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
///     Ok(if approval.yes { format!("{image} is out") } else { "nothing happened".into() })
/// }
/// # deploy::tool();
/// ```
#[derive(Clone)]
pub struct Durable {
    cx: Cx,
    run: Arc<RunState>,
    scope: String,
    /// Whether it goes on though the task was cancelled.
    shielded: bool,
}

impl Durable {
    /// Returns a context whose keys are all under `key`: for helpers and loops that use the same names
    /// more than once. A clone of the context has the same keys.
    pub fn scope(&self, key: impl IntoKey) -> Durable {
        Durable { scope: self.full(key), ..self.clone() }
    }

    /// What a step has returned before, in this run or an earlier one; `None` if it did not come so
    /// far. For a handler that has to know where it was before it decides what to do.
    ///
    /// # Errors
    ///
    /// What the step has failed with for good, or that its value is no `T`.
    pub fn get<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        recorded(self.journal(), &self.full(key))
    }

    /// Runs `body` and records its result in the journal. When the handler runs again, the recorded
    /// value is returned and `body` is not run. The first run, too, gets the value as it was recorded.
    ///
    /// The body returns this crate's [`Result`]. Errors of others become one by `?`, so a call that is
    /// the whole body is written `Ok(call().await?)`. Annotate what the step returns: the type decides
    /// how the record is read.
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
    /// A body that has run and whose record was lost, as in a crash, runs again; [`idempotency_key`]
    /// gives foreign systems a key by which they can tell.
    ///
    /// # Errors
    ///
    /// What the body fails with, which is not recorded unless it is [`permanent`], or a
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

    /// As [`Durable::step`], but tries again when the body fails, unless the error is
    /// [`permanent`](Error::permanent). The body gets the [`Attempt`].
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
    /// The body may borrow what it only reads. What it changes, it changes before its future:
    /// `|_| { tries += 1; async move { … } }`.
    ///
    /// # Errors
    ///
    /// Returns the error of the last attempt, or a [`DurableError`].
    // Not `AsyncFnMut`: a future that borrows from its closure cannot be shown to be `Send` here.
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
                    tracing::debug!(key, tried, %error, "a step failed and is tried again");
                    self.back_off(&key, retry.pause(tried)).await?;
                    attempt = retry.after(attempt);
                    step.restart();
                }
                returned => break returned,
            }
        };
        self.finish_step(step, returned).await
    }

    /// As [`Durable::step`], for what must not be done twice: that it begins is written to the store
    /// before, and after a crash in the middle of it the step fails instead of being done again. An
    /// error of the body is recorded like a value.
    ///
    /// # Errors
    ///
    /// [`DurableError::Ambiguous`] if it was begun before and nobody knows how far it came;
    /// [`DurableError::StoreRequired`] where the server has none. Declare the step with
    /// [`Tool::uses_step_once`], so that such a server refuses the tool when it is built.
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

    /// A key for foreign systems: the same each time this call comes to this key, and different
    /// for every other call and key.
    pub fn idempotency_key(&self, key: impl IntoKey) -> String {
        self.run.idempotency_key(self.cx.env(), &self.full(key))
    }

    /// Waits. When the handler runs again the time that has passed counts.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
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

    /// Adds a block to the result while the work goes on. Blocks stand before those that the
    /// handler returns, each once, however often the handler runs. Only tools have them.
    ///
    /// In a task a block has a number, and clients that can do it read it before the task ends. It is
    /// stored before anybody sees it, together with others: a line costs no commit of its own. When
    /// the handler runs again, what is stored is not emitted again; it is known by the step or
    /// [`scope`](Durable::scope) it was emitted in and its place there, so branches that run side by
    /// side each need a scope. A block that differs then is a warning in the log, and the stored one
    /// stays.
    ///
    /// # Errors
    ///
    /// A [`DurableError`].
    pub async fn emit(&self, block: impl Into<ContentBlock>) -> Result<()> {
        if self.call().method() != Some(Method::ToolsCall) {
            return Err(Error::new("only a tool emits; a prompt or resource returns all it has"));
        }
        let block = to_raw_value(&block.into())?;
        self.journal().emit(Some(self.run_id()), &self.scope, block).map_err(DurableError::from)?;
        // Who emits faster than the store takes it waits here.
        poll_fn(|cx| self.journal().poll_capacity(cx)).await;
        self.survive().await;
        Ok(())
    }

    /// Lets another replica go on. A task is given back to the store, and whichever replica is first
    /// takes it, which may be this one. For other calls the client is sent away with what has been
    /// recorded, and comes back at once; where that cannot be, on revisions before 2026-07-28 or too
    /// often in one call, nothing happens.
    pub fn yield_to_replica(&self) -> YieldToReplica<'_> {
        YieldToReplica { cx: self, after: None }
    }

    /// What was recorded before. A task whose records cannot be read any more fails, and its handler
    /// gets no chance to make something else of it: it would do again what was done.
    async fn read_back<T: DeserializeOwned>(&self, key: &str, entry: JournalEntry) -> Result<T> {
        match decode(key, entry) {
            Err(error) if self.run.is_task() && is_undecodable(&error) => {
                self.run.quarantine(error.to_string());
                // Whoever polls the run looks, and drops it.
                std::future::pending().await
            }
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
        // With a store it has happened when it is written.
        poll_fn(|cx| self.journal().poll_written(ticket, cx)).await.map_err(DurableError::from)?;
        self.survive().await;
        decode(&key, stored)
    }

    /// Continues, unless a test has the run lost here: then it is dropped while it waits.
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

/// Polls the body of a step marked as such, so that it cannot ask or take steps itself.
async fn marked<F: Future>(step: &Step<'_>, body: F) -> F::Output {
    let mut body = pin!(body);
    poll_fn(|cx| in_step(step.key(), || body.as_mut().poll(cx))).await
}

fn is_undecodable(error: &Error) -> bool {
    matches!(error.durable_error(), Some(DurableError::IncompatibleEntry { .. }))
}

/// What stands in a journal under a key, whoever asks.
pub(crate) fn recorded<T: DeserializeOwned>(journal: &Journal, key: &str) -> Result<Option<T>> {
    match journal.get(key) {
        None => Ok(None),
        Some(JournalEntry::Answer(raw)) => decode_raw(key, &raw).map(Some),
        Some(entry) => decode(key, entry).map(Some),
    }
}

/// The value that is recorded, or the failure.
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

/// Sends the client away, to come back to another replica; see [`Durable::yield_to_replica`].
#[must_use = "nothing happens until it is awaited"]
#[derive(Debug)]
pub struct YieldToReplica<'a> {
    cx: &'a Durable,
    after: Option<Duration>,
}

impl YieldToReplica<'_> {
    /// Asks the client to wait before it comes back.
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.after = Some(pause);
        self
    }
}

impl Future for YieldToReplica<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let cx = self.cx;
        // A task waits in the store, whatever its client speaks, for whoever comes first.
        let stays = cx.call().rules().input_mode == InputMode::Stream
            || cx.run.yields() >= cx.env().profile.limits.max_yields;
        if stays && !cx.run.is_task() {
            return Poll::Ready(Ok(()));
        }
        match cx.journal().yield_run(cx.run_id(), self.after, None) {
            // The run ends here; the next one may find that it can go on.
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
