//! The context of work that emits as it goes and must not run again.

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

/// The context of a handler that adds to its result while it works, and is not run again.
///
/// It is a [`Cx`] with [`emit`](Task::emit). Unlike [`Durable`](crate::server::Durable) it cannot ask or wait
/// in the store, and what its handler does is not recorded: a task whose worker is lost fails, unless
/// its tool says otherwise with [`Tool::on_crash`](crate::server::Tool::on_crash).
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
    /// Adds a block to the result while the work goes on. Blocks stand before those that the handler
    /// returns, in the order in which they were emitted, from wherever that is. Only tools have them.
    ///
    /// # Errors
    ///
    /// A [`DurableError`](crate::server::durable::DurableError): there are too many of them, or they are too large.
    pub async fn emit(&self, block: impl Into<ContentBlock>) -> Result<()> {
        if self.call().method() != Some(Method::ToolsCall) {
            return Err(Error::new("only a tool emits; a prompt or resource returns all it has"));
        }
        let block = to_raw_value(&block.into())?;
        let journal = self.run.journal();
        journal.emit(None, "", block).map_err(DurableError::from)?;
        // Who emits faster than the store takes it waits here.
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
