//! Several futures as one, on the task of a run: an idle run needs all of its branches there.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

/// A boxed future.
pub(super) type Branch<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs all branches, and returns their outputs in order.
pub(super) async fn join_all<T>(branches: Vec<Branch<'_, T>>) -> Vec<T> {
    let mut branches: Vec<(Branch<'_, T>, Option<T>)> =
        branches.into_iter().map(|branch| (branch, None)).collect();
    poll_fn(|cx| {
        let mut is_pending = false;
        for (branch, output) in branches.iter_mut().filter(|(_, output)| output.is_none()) {
            match branch.as_mut().poll(cx) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => is_pending = true,
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    branches.into_iter().filter_map(|(_, output)| output).collect()
}

/// Branches that come and go.
pub(super) struct Branches<'a, T>(Vec<Branch<'a, T>>);

impl<'a, T> Branches<'a, T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, branch: impl Future<Output = T> + Send + 'a) {
        self.0.push(Box::pin(branch));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the output of a branch that completes, and removes it. Pending without branches.
    pub(super) async fn next(&mut self) -> T {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        for at in 0..self.0.len() {
            if let Poll::Ready(output) = self.0[at].as_mut().poll(cx) {
                drop(self.0.swap_remove(at));
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    }
}
