//! [`Task`], the context of a handler that emits partial results and is not replayed.

use std::{fmt, future::poll_fn, ops::Deref, sync::Arc};

use outlive_wire::{ContentBlock, Method};
use serde_json::value::to_raw_value;

use crate::server::{
    durable_error::DurableError,
    error::{Error, Result},
    extract::{
        cx::Cx,
        extractor::{Extract, HandlerRequirements, Rejection},
    },
    run::state::RunState,
};

/// The context of a handler that emits partial results and is not replayed.
///
/// It extends [`Cx`] with [`emit`](Task::emit). Unlike [`Durable`](crate::server::Durable), it has
/// no steps, timers or input requests. If the worker crashes, the task fails, unless
/// [`Tool::on_crash`](crate::server::Tool::on_crash) allows a rerun.
///
/// ```
/// use outlive::{
///     server::{Result, Task},
///     tool,
/// };
///
/// /// Counts.
/// #[tool(task = "auto")]
/// async fn count(cx: Task, to: u32) -> Result<String> {
///     for number in 1..=to {
///         cx.emit(number.to_string()).await?;
///     }
///     Ok("done".into())
/// }
/// # count::tool();
/// ```
#[derive(Clone)]
pub struct Task {
    cx: Cx,
    run: Arc<RunState>,
}

impl Task {
    /// Adds a content block to the result while the handler runs. Emitted blocks precede the blocks
    /// that the handler returns, in the order of their emission. Only tools can emit.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`](crate::server::durable::DurableError) if the call emits too many
    /// blocks or too many bytes.
    pub async fn emit(&self, block: impl Into<ContentBlock>) -> Result<()> {
        if self.call().method() != Some(Method::ToolsCall) {
            return Err(Error::new(
                "only tools can emit; return all content of a prompt or resource",
            ));
        }
        let block = to_raw_value(&block.into())?;
        let journal = self.run.journal();
        journal.emit(None, "", block).map_err(DurableError::from)?;
        // Backpressure: waits if the handler emits faster than the store commits.
        poll_fn(|cx| journal.poll_capacity(cx)).await;
        Ok(())
    }
}

impl Deref for Task {
    type Target = Cx;

    fn deref(&self) -> &Cx {
        &self.cx
    }
}

impl Extract for Task {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let (cx, run) = cx.with_run();
        Ok(Self { cx, run })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.emits = true;
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("call", self.cx.call()).finish_non_exhaustive()
    }
}
