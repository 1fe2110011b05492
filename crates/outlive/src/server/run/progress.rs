//! Progress of a task.
//!
//! A client of 2025-11-25 that sent a progress token receives progress notifications. For other
//! clients the progress becomes the status message, and clients that declare the extension in
//! `docs/extensions/task-partials.md` also read it with the task.
//!
//! The progress is stored with the task, so clients on any replica see it, and it never decreases
//! when the task resumes.

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

/// Stored progress of a task.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskProgress {
    /// Progress token of the call that created the task, if its client can receive progress for a
    /// task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<RawJson>,
    progress: Progress,
}

impl TaskProgress {
    /// Stores the progress of a task. If the client cannot receive progress notifications, the
    /// progress also becomes the status message.
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

    /// Stores the progress of an inline call that may be promoted later.
    pub(crate) fn keep(run: &RunState, progress: &Progress) {
        let total = progress.total.filter(|total| total.is_finite());
        let progress = Progress { total, ..progress.clone() };
        if progress.done.is_finite()
            && let Ok(note) = to_raw_value(&Self { token: None, progress })
        {
            run.journal().keep_progress(note);
        }
    }

    /// Decodes stored progress.
    pub(crate) fn read(kept: &RawJson) -> Option<Self> {
        serde_json::from_str(kept.get()).ok()
    }

    pub(crate) fn done(&self) -> f64 {
        self.progress.done
    }

    /// Returns the progress without its token.
    pub(crate) fn into_progress(self) -> Progress {
        self.progress
    }

    /// Returns the notification for the client, unless its session has already received this
    /// progress.
    pub(crate) fn news(self, session: &Session, task: &TaskId) -> Option<Notify> {
        let token = self.token?;
        let reported = session.state(ReportedProgress::default);
        let mut reported = reported.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = reported.entry(task.clone()).or_insert(f64::NEG_INFINITY);
        if self.progress.done <= *last {
            return None;
        }
        *last = self.progress.done;
        Some(Notify::TaskProgress { token, progress: self.progress })
    }

    /// Removes an ended task from the record of the session.
    pub(crate) fn forget(session: &Session, task: &TaskId) {
        let reported = session.state(ReportedProgress::default);
        reported.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }
}

/// Formats progress: `packing (3 of 10)`, `3 of 10`, `packing (3)`.
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

/// Last progress that a session received, by task.
#[derive(Default)]
struct ReportedProgress(Mutex<HashMap<TaskId, f64>>);
