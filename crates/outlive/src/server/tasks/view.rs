//! Converts a stored task into the form that clients see.

use outlive_protocol::{TaskState, TaskView};
use outlive_tasks::store::{TaskOutcome, TaskRecord};
use outlive_wire::{OrderedMap, RawJson};

use crate::server::{
    env::{task_backend::TaskBackend, task_error::internal},
    run::progress::TaskProgress,
    time::millis,
};

impl TaskBackend {
    /// Converts a task record into the view that codecs encode. A large result that is not loaded
    /// is shown without its bodies; only lists, which show no result, do not load it.
    pub(crate) fn show(&self, view: TaskRecord) -> TaskView {
        let state = match view.outcome {
            None if view.input_requests.is_empty() => TaskState::Working,
            None => {
                let requests = view.input_requests.into_iter();
                let requests = requests.map(|input| (input.name, input.request)).collect();
                TaskState::InputRequired(OrderedMap(requests))
            }
            Some(TaskOutcome::Result(raw)) => result_state(&raw),
            Some(TaskOutcome::LargeResult(large)) => result_state(&large.head),
            Some(TaskOutcome::Error(error)) => TaskState::Error(error),
            Some(TaskOutcome::Cancelled) => TaskState::Cancelled,
            Some(TaskOutcome::Expired) => TaskState::Expired,
        };
        let is_terminal = state.is_terminal();
        let kept = view.progress.filter(|_| self.config.partials && !is_terminal);
        TaskView {
            id: view.id.as_str().to_owned(),
            created: view.created_at,
            updated: view.updated_at,
            ttl: view.ttl,
            poll: millis(self.config.poll),
            message: view.status_message,
            progress: kept.and_then(|kept| Some(TaskProgress::read(&kept)?.into_progress())),
            immediate: None,
            fell_back: false,
            state,
        }
    }
}

fn result_state(raw: &RawJson) -> TaskState {
    match serde_json::from_str(raw.get()) {
        Ok(result) => TaskState::Result(Box::new(result)),
        Err(error) => TaskState::Error(internal(&error.to_string())),
    }
}
