//! How a call ends, for those who count and log calls.
//!
//! The floor above names a watcher while it starts a call; the [`Run`](crate::Run) tells it once how the
//! call has ended. Calls without a watcher cost one check.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use crate::{Call, Outcome, ProtocolError};

/// Sees how calls end.
pub trait CallWatcher: Send + Sync + 'static {
    /// Called once when the call is answered or cancelled, and once when a task of it has ended.
    fn ended(&self, call: &Call, how: CallEnd<'_>, took: Duration);
}

/// How a call has ended.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "watchers must know them all")]
pub enum CallEnd<'a> {
    /// It was answered.
    Answered(&'a Result<Outcome, ProtocolError>),
    /// Its caller has cancelled it, or left.
    Cancelled,
    /// It was answered with a task before, and the work of the task has ended.
    Task(&'a Result<Outcome, ProtocolError>),
    /// It was answered with a task before, and the handler has stopped because the task was cancelled.
    TaskCancelled,
}

/// Who watches a call, and since when.
pub(crate) struct Watch {
    watcher: Arc<dyn CallWatcher>,
    began: Instant,
    exit_code: OnceLock<i32>,
}

impl Call {
    /// Has a watcher told how the call ends. The first one counts.
    pub fn watch(&self, watcher: Arc<dyn CallWatcher>, began: Instant) {
        let _ = self.watch.set(Watch { watcher, began, exit_code: OnceLock::new() });
    }

    /// Tells the watcher, if there is one, how the call has ended.
    pub fn report(&self, how: CallEnd<'_>, now: impl FnOnce() -> Instant) {
        if let Some(watch) = self.watch.get() {
            let took = now().saturating_duration_since(watch.began);
            watch.watcher.ended(self, how, took);
        }
    }

    /// Remembers the exit code of the command that the call has run, for its watcher.
    pub fn set_exit_code(&self, code: i32) {
        if let Some(watch) = self.watch.get() {
            let _ = watch.exit_code.set(code);
        }
    }

    /// Returns the exit code of the command that the call has run.
    pub fn exit_code(&self) -> Option<i32> {
        self.watch.get()?.exit_code.get().copied()
    }
}
