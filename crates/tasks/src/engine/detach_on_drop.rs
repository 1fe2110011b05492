//! Work that is done to its end, whether somebody waits for it or not.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// A future that goes on by itself when whoever polls it does not stay. It costs no task of the
/// runtime as long as somebody does.
pub(super) struct Waited<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Waited<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Waited<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Not there after it was ready, when nobody polls it again.
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            self.0 = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for Waited<T> {
    fn drop(&mut self) {
        // Without a runtime the process is about to end, and its work with it.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}
