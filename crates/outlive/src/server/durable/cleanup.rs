//! What a tool does after a task of it that was cancelled or has expired.

use std::{fmt, future::ready, sync::Arc};

use outlive_protocol::ProtocolError;
use outlive_tasks::{IntoKey, engine::CleanupFuture};
use serde::de::DeserializeOwned;

use crate::server::{
    durable::context::recorded,
    error::{Error, Result},
    extract::{
        cx::Cx,
        extractor::{Extract, HandlerRequirements, Rejection, RejectionKind},
        handler::Handler,
    },
    run::{placement::CleanupReason, state::RunState},
};

/// The context of a clean-up: what is left of a task that ended before its work did.
///
/// Its handler is gone, and so is what it had in memory; what it has recorded is here. Other
/// arguments are those of any handler: [`Args`](crate::server::Args) are the task's own.
///
/// ```
/// use outlive::{
///     server::{Durable, Result, durable::Cleanup},
///     tool,
/// };
/// # async fn build(_: &str) -> std::io::Result<String> { Ok(String::new()) }
/// # async fn delete(_: &str) -> std::io::Result<()> { Ok(()) }
///
/// /// Builds, and asks whether to deploy.
/// #[tool(task = "always")]
/// async fn deploy(cx: Durable, repo: String) -> Result<String> {
///     let image: String = cx.step("build", async || Ok(build(&repo).await?)).await?;
///     # Ok(image)
///     // …
/// }
///
/// /// Leaves no image behind that nobody will deploy.
/// async fn tidy(task: Cleanup) -> Result<()> {
///     if let Some(image) = task.get::<String>("build")? {
///         delete(&image).await?;
///     }
///     Ok(())
/// }
///
/// let tool = deploy::tool().cleanup(tidy);
/// # drop(tool);
/// ```
#[derive(Clone)]
pub struct Cleanup {
    cx: Cx,
    run: Arc<RunState>,
    reason: CleanupReason,
    scope: String,
}

impl Cleanup {
    /// Why the task ended before its work did.
    pub fn reason(&self) -> CleanupReason {
        self.reason
    }

    /// What a step of the task has returned, or its client has answered; `None` if it did not come
    /// so far. A step that was under way may have had its effects all the same.
    ///
    /// # Errors
    ///
    /// What the step has failed with for good, or that its value is no `T`.
    pub fn get<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        recorded(self.run.journal(), &self.full(key))
    }

    /// The key that [`Durable::idempotency_key`](crate::server::Durable::idempotency_key) gave the task for
    /// foreign systems.
    pub fn idempotency_key(&self, key: impl IntoKey) -> String {
        self.run.idempotency_key(self.cx.env(), &self.full(key))
    }

    /// A context whose keys are all under `key`, as those of
    /// [`Durable::scope`](crate::server::Durable::scope) are.
    #[must_use]
    pub fn scope(&self, key: impl IntoKey) -> Self {
        Self { scope: self.full(key), ..self.clone() }
    }

    /// The task.
    pub fn task_id(&self) -> Option<String> {
        self.cx.task_id()
    }

    fn full(&self, key: impl IntoKey) -> String {
        key.into_key().within(&self.scope).into_string()
    }
}

impl Extract for Cleanup {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let run = cx.run().and_then(|run| Some((Arc::clone(run), run.cleanup_reason()?)));
        let (run, reason) = run.ok_or_else(|| {
            ProtocolError::internal(
                "`CleanUp` is for what is given to `Tool::clean_up`, and nothing else",
            )
        })?;
        Ok(Self { cx: cx.clone(), run, reason, scope: String::new() })
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanUp")
            .field("call", self.cx.call())
            .field("reason", &self.reason)
            .finish()
    }
}

/// What a clean-up returns: nothing, or that it failed.
#[diagnostic::on_unimplemented(
    message = "a clean-up returns nothing, not `{Self}`",
    note = "make it return `()` or `Result<()>`"
)]
pub trait IntoCleanupResult {
    /// Whether it failed.
    ///
    /// # Errors
    ///
    /// When it did.
    fn into_cleaned_up(self) -> Result<()>;
}

impl IntoCleanupResult for () {
    fn into_cleaned_up(self) -> Result<()> {
        Ok(())
    }
}

impl<E: Into<Error>> IntoCleanupResult for Result<(), E> {
    fn into_cleaned_up(self) -> Result<()> {
        self.map_err(Into::into)
    }
}

/// A clean-up whose types have been forgotten.
pub(crate) struct Hook {
    start: Box<dyn Fn(&Cx) -> CleanupFuture + Send + Sync>,
    pub(crate) needs: HandlerRequirements,
}

impl Hook {
    pub(crate) fn new<M: 'static, H>(handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCleanupResult,
    {
        let handler = Arc::new(handler);
        let start = move |cx: &Cx| -> CleanupFuture {
            match handler.start(cx) {
                Ok(work) => Box::pin(async move {
                    work.await.into_cleaned_up().map_err(|error| error.to_string())
                }),
                Err(Rejection(why)) => Box::pin(ready(Err(match why {
                    RejectionKind::Arguments(error) => format!("its arguments: {error}"),
                    RejectionKind::Refused(fault) => fault.to_string(),
                }))),
            }
        };
        Self { start: Box::new(start), needs: H::needs() }
    }

    pub(crate) fn start(&self, cx: &Cx) -> CleanupFuture {
        (self.start)(cx)
    }
}
