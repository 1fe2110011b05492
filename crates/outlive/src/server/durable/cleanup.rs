//! The cleanup hook of a tool, which runs after a task was cancelled or expired.

use std::{fmt, future::ready, sync::Arc};

use outlive_protocol::ProtocolError;
use outlive_tasks::{IntoKey, Journal, engine::CleanupFuture};
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

/// The context of a cleanup, which runs after a task ended before its handler did.
///
/// The handler and its memory are gone, but its journal is available. Other arguments are extracted
/// as in every handler: [`Args`](crate::server::Args) are the arguments of the task.
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
/// /// Deletes an image that will not be deployed.
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
    /// Returns why the task ended before its handler did.
    pub fn reason(&self) -> CleanupReason {
        self.reason
    }

    /// Returns the recorded result of a step, or an input response. Returns `None` if the journal
    /// has no entry. A step that was in progress may have taken effect.
    ///
    /// # Errors
    ///
    /// Returns the permanent failure of the step, or an error if the value does not decode as `T`.
    pub fn get<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        recorded(self.run.journal(), &self.full(key))
    }

    /// Returns the same idempotency key as
    /// [`Durable::idempotency_key`](crate::server::Durable::idempotency_key) of the task.
    pub fn idempotency_key(&self, key: impl IntoKey) -> String {
        self.run.idempotency_key(self.cx.env(), &self.full(key))
    }

    /// Returns a context that prefixes its keys with `key`, as
    /// [`Durable::scope`](crate::server::Durable::scope) does.
    #[must_use]
    pub fn scope(&self, key: impl IntoKey) -> Self {
        Self { scope: self.full(key), ..self.clone() }
    }

    /// Returns the task ID.
    pub fn task_id(&self) -> Option<String> {
        self.cx.task_id()
    }

    pub(crate) fn journal(&self) -> &Journal {
        self.run.journal()
    }

    pub(crate) fn run(&self) -> &RunState {
        &self.run
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
                "`Cleanup` is only available in handlers passed to `Tool::cleanup`",
            )
        })?;
        Ok(Self { cx: cx.clone(), run, reason, scope: String::new() })
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup")
            .field("call", self.cx.call())
            .field("reason", &self.reason)
            .finish()
    }
}

/// Return value of a cleanup: `()` or a `Result<()>`.
#[diagnostic::on_unimplemented(
    message = "a cleanup returns nothing, not `{Self}`",
    note = "make it return `()` or `Result<()>`"
)]
pub trait IntoCleanupResult {
    /// Converts the value into a result.
    ///
    /// # Errors
    ///
    /// Returns the error of the cleanup.
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

/// A cleanup handler with its types erased.
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
                    RejectionKind::Arguments(error) => format!("invalid arguments: {error}"),
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
