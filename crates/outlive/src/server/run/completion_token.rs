//! Completion tokens, which authorize the delivery of an external event.

use outlive_protocol::{Call, CompletionOutcome, Seal};
use outlive_tasks::store::{InputSource, TaskId};
use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use crate::server::{
    env::environment::Env,
    error::{Error, Result},
    run::state::RunState,
};

/// Content of a completion token.
#[derive(Serialize, Deserialize)]
pub(crate) struct CompletionToken {
    #[serde(rename = "t")]
    task: String,
    #[serde(rename = "p")]
    principal: String,
    #[serde(rename = "k")]
    key: String,
}

/// Context that tokens are sealed with, so that no other sealed data opens as a token.
const CONTEXT: [&str; 1] = [Seal::COMPLETION_TOKEN];

impl CompletionToken {
    /// Returns a token for a journal key of a task.
    pub(crate) fn seal(env: &Env, call: &Call, run: &RunState, key: &str) -> Result<String> {
        let task = run.task_id().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let principal = call.principal().key().to_owned();
        let content = serde_json::to_vec(&Self { task, principal, key: key.to_owned() })?;
        let sealed = env.profile.seal.seal(&content, &CONTEXT);
        sealed.ok_or_else(|| Error::new("no random bytes for a token"))
    }

    /// Opens a token.
    pub(crate) fn open(env: &Env, token: &str) -> Option<Self> {
        let content = env.profile.seal.open(token, &CONTEXT)?;
        serde_json::from_slice(&content).ok()
    }

    /// Delivers a value to the task that waits for it.
    pub(crate) async fn deliver(self, env: &Env, value: RawJson) -> CompletionOutcome {
        let Ok(tasks) = env.tasks() else { return CompletionOutcome::Unknown };
        let Self { task, principal, key } = self;
        let id = TaskId::new(task);
        let values = vec![(key, value)];
        let max_bytes = tasks.allowance(&principal).max_bytes;
        let store = tasks.engine().store();
        let taken = store.respond(&principal, &id, InputSource::External, values, max_bytes).await;
        let (what, outcome) = match taken {
            Ok(Some(1..)) => ("completed-outside", CompletionOutcome::Taken),
            Ok(_) => ("completed-outside-too-late", CompletionOutcome::TooLate),
            Err(error) => return CompletionOutcome::Unavailable(error.to_string()),
        };
        tasks.audit(&principal, &id, what, None);
        outcome
    }
}
