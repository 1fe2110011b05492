//! What a tool does after a task of it that was cancelled or has expired.

use std::{fmt, future::ready, sync::Arc};

use outlive_protocol::ProtocolError;
use outlive_tasks::{IntoKey, engine::CleanupFuture, store::TaskOutcome};
use serde::de::DeserializeOwned;

use crate::server::{
    Cx, Error, Result,
    durable::{Durability, key_of, recorded},
    extract::{Extract, HandlerRequirements, Rejection, RejectionKind},
    handler::Handler,
};

/// The context of a clean-up: what is left of a task that ended before its work did.
///
/// Its handler is gone, and so is what it had in memory; what it has recorded is here. Other
/// arguments are those of any handler: [`Args`](crate::server::Args) are the task's own.
///
/// ```
/// use outlive::{server::{Cleanup, Durable, Result}, tool};
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
///     if let Some(image) = task.recorded::<String>("build")? {
///         delete(&image).await?;
///     }
///     Ok(())
/// }
///
/// let tool = deploy().cleanup(tidy);
/// # drop(tool);
/// ```
#[derive(Clone)]
pub struct Cleanup {
    cx: Cx,
    why: CleanupReason,
    scope: String,
}

/// Why a task ended before its work did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CleanupReason {
    /// Its caller has cancelled it, or has left before it could be told of it.
    Cancelled,
    /// Its time was over.
    Expired,
}

impl CleanupReason {
    pub(in crate::server) fn of(outcome: &TaskOutcome) -> Option<Self> {
        match outcome {
            TaskOutcome::Cancelled => Some(Self::Cancelled),
            TaskOutcome::Expired => Some(Self::Expired),
            TaskOutcome::Result(_) | TaskOutcome::Error(_) => None,
        }
    }
}

impl Cleanup {
    /// Why the task ended before its work did.
    pub fn reason(&self) -> CleanupReason {
        self.why
    }

    /// What a step of the task has returned, or its client has answered; `None` if it did not come
    /// so far. A step that was under way may have had its effects all the same.
    ///
    /// # Errors
    ///
    /// What the step has failed with for good, or that its value is no `T`.
    pub fn get<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        recorded(&Durability::of(&self.cx).journal, &self.full(key))
    }

    /// The key that [`Durable::idempotency_key`](crate::server::Durable::idempotency_key) gave the task for
    /// foreign systems.
    pub fn idempotency_key(&self, key: impl IntoKey) -> String {
        key_of(&self.cx, &self.full(key))
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
        let durability = cx.call().attached::<Durability>();
        let why = durability.and_then(Durability::unfinished).ok_or_else(|| {
            ProtocolError::internal(
                "`CleanUp` is for what is given to `Tool::clean_up`, and nothing else",
            )
        })?;
        Ok(Self { cx: cx.clone(), why, scope: String::new() })
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanUp").field("call", self.cx.call()).field("why", &self.why).finish()
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
pub(in crate::server) struct Hook {
    start: Box<dyn Fn(&Cx) -> CleanupFuture + Send + Sync>,
    pub(in crate::server) needs: HandlerRequirements,
}

impl Hook {
    pub(in crate::server) fn new<M: 'static, H>(handler: H) -> Self
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

    pub(in crate::server) fn start(&self, cx: &Cx) -> CleanupFuture {
        (self.start)(cx)
    }
}
