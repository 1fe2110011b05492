//! Background work that ends with the server.

use std::future::Future;
use tokio::task::AbortHandle;

/// Handle of a background task. Dropping it aborts the task.
pub(super) struct Background(AbortHandle);

pub(super) fn in_background(work: impl Future<Output = ()> + Send + 'static) -> Background {
    Background(tokio::spawn(work).abort_handle())
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}
