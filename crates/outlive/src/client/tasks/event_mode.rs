//! State of a handle whose input requests are events.

use std::{fmt, future::Future, pin::Pin};

use super::complete::{Drive, TaskEvent};
use crate::client::{error::Result, input_events::InputEvents, send::Boxed};

/// A call that is in progress.
pub(super) struct Starting<T>(pub(super) Boxed<'static, T>);

/// State of a call whose input requests are events.
pub(super) struct EventMode {
    pub(super) inputs: InputEvents,
    /// Observation of a task of 2025-11-25. The server sends input requests during `tasks/result`,
    /// so that request must stay open when one arrives.
    pub(super) driving: Option<Driving>,
}

pub(super) type Driving = Pin<Box<dyn Future<Output = (Box<Drive>, Result<TaskEvent>)> + Send>>;

impl<T> fmt::Debug for Starting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starting")
    }
}

impl fmt::Debug for EventMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventMode")
    }
}
