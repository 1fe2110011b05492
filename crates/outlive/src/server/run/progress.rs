//! How far a task is: for the client of 2025-11-25 that gave a token with the call that made it, as
//! progress; for all others in words, as what the task is doing, and beside the task for those who
//! declare our extension (`docs/extensions/task-partials.md`).
//!
//! It is kept with the task, so that whoever waits for its result hears of it, on any replica, and
//! so that it never goes back when the task is begun again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use outlive_protocol::{Call, Notify, Progress, Session};
use outlive_tasks::store::TaskId;
use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::run::state::RunState;

/// What is kept.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskProgress {
    /// The token of the call that made the task, if its client can hear of progress by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<RawJson>,
    progress: Progress,
}

impl TaskProgress {
    /// Keeps how far a task is. Where its client does not hear of that as progress, it is also kept in
    /// words, as what the task is doing.
    pub(crate) fn note(call: &Call, run: &RunState, mut progress: Progress) {
        if !progress.done.is_finite() {
            return;
        }
        progress.total = progress.total.filter(|total| total.is_finite());
        let token = call.progress_token().filter(|_| call.rules().task_progress);
        let token = token.and_then(|token| RawValue::from_string(token.to_owned()).ok());
        let (done, words) = (progress.done, token.is_none().then(|| in_words(&progress)));
        let Ok(note) = to_raw_value(&Self { token, progress }) else { return };
        run.journal().progress(done, words, note);
    }

    /// Keeps how far a call is that is no task yet.
    pub(crate) fn keep(run: &RunState, progress: &Progress) {
        let total = progress.total.filter(|total| total.is_finite());
        let progress = Progress { total, ..progress.clone() };
        if progress.done.is_finite()
            && let Ok(note) = to_raw_value(&Self { token: None, progress })
        {
            run.journal().keep_progress(note);
        }
    }

    /// What was kept.
    pub(crate) fn read(kept: &RawJson) -> Option<Self> {
        serde_json::from_str(kept.get()).ok()
    }

    pub(crate) fn done(&self) -> f64 {
        self.progress.done
    }

    /// How far that is.
    pub(crate) fn into_progress(self) -> Progress {
        self.progress
    }

    /// What the client is told, unless its session has been told as much.
    pub(crate) fn news(self, session: &Session, task: &TaskId) -> Option<Notify> {
        let token = self.token?;
        let told = session.state(Told::default);
        let mut told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = told.entry(task.clone()).or_insert(f64::NEG_INFINITY);
        if self.progress.done <= *last {
            return None;
        }
        *last = self.progress.done;
        Some(Notify::TaskProgress { token, progress: self.progress })
    }

    /// A task is over: nothing more is told of it.
    pub(crate) fn forget(session: &Session, task: &TaskId) {
        let told = session.state(Told::default);
        told.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }
}

/// `packing (3 of 10)`, `3 of 10`, `packing (3)`.
fn in_words(progress: &Progress) -> String {
    let Progress { done, total, message } = progress;
    let far = match total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    match message {
        Some(message) => format!("{message} ({far})"),
        None => far,
    }
}

/// How far the tasks were that a session has been told of.
#[derive(Default)]
struct Told(Mutex<HashMap<TaskId, f64>>);
