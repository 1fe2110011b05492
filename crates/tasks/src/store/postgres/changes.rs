//! Change listeners of this process.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use crate::store::{ChangeListener, ChangeSource, TaskId};

#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<ChangeListener>>);

impl Listeners {
    pub(super) fn add(&self, listener: ChangeListener) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(super) fn tell(&self, task: &TaskId, by: ChangeSource) {
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            // A panic here would end the connection that writes.
            if catch_unwind(AssertUnwindSafe(|| listener(task, by))).is_err() {
                tracing::error!(task_id = task.prefix(), "change listener panicked");
            }
        }
    }
}
