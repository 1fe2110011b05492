//! [`ChangeStream`]: change notifications of several tasks.

use std::{
    collections::BTreeSet,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use crate::store::TaskId;

/// Change notifications of several tasks. Several changes of a task before [`ChangeStream::next`]
/// count as one.
pub struct ChangeStream(Arc<Listening>);

pub(super) struct Listening {
    ids: BTreeSet<TaskId>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    changed: BTreeSet<TaskId>,
    waker: Option<Waker>,
}

impl ChangeStream {
    pub(super) fn new(ids: &[TaskId]) -> (Self, Arc<Listening>) {
        let ids = ids.iter().cloned().collect();
        let listening = Arc::new(Listening { ids, state: Mutex::default() });
        (Self(Arc::clone(&listening)), listening)
    }

    /// Waits for the next task that may have changed.
    pub async fn next(&self) -> TaskId {
        poll_fn(|cx| {
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            match state.changed.pop_first() {
                Some(id) => Poll::Ready(id),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Listening {
    pub(super) fn tell(&self, id: &TaskId) {
        if !self.ids.contains(id) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.changed.insert(id.clone());
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream").field("tasks", &self.0.ids.len()).finish()
    }
}
