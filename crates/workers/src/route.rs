//! A tool, as its handler knows it.

use std::{sync::Arc, time::Duration};

use crate::{line::declared::DeclaredTool, pool::Pool};

/// A tool, as its handler knows it.
pub(crate) struct ToolRoute {
    pub(crate) pool: Arc<Pool>,
    pub(crate) declared: Arc<DeclaredTool>,
    /// Whether another process may start a call of a function that is not durable.
    pub(crate) may_rerun: bool,
    /// Processes in a row that a call may lose without recording a step.
    pub(crate) max_attempts: u32,
    pub(crate) timeout: Duration,
}

impl ToolRoute {
    /// Returns the name of the tool worker.
    pub(crate) fn worker(&self) -> &str {
        &self.pool.settings.name
    }
}
