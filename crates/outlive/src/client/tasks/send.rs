//! Input responses and cancellation of a task, resent until the server acknowledges them.

use std::{sync::Arc, time::Duration};

use outlive_wire::{Method, RawJson};
use serde_json::Value;

use super::watch::{about, gone};
use crate::client::{
    call_store::{Record, SavedInputResponse},
    core::Core,
    error::{Result, ServerError, ServerErrorKind},
    send::{jitter, send},
};

/// Maximum number of resends of a request.
pub(super) const RESENDS: u32 = 8;

/// Saves input responses, then sends them until the server acknowledges them.
pub(crate) async fn give(
    core: &Arc<Core>,
    record: &Record,
    id: &str,
    answers: Vec<(String, RawJson)>,
) -> Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let note = |taken: bool| {
        let answers = answers.clone();
        move |saved: &mut crate::client::saved::SavedCall| {
            for (key, answer) in answers {
                saved.answers.insert(key, SavedInputResponse { answer, acknowledged: taken });
            }
        }
    };
    record.change(note(false)).await?;
    let entries: Vec<String> = answers
        .iter()
        .map(|(key, answer)| format!("{}:{}", Value::from(key.as_str()), answer.get()))
        .collect();
    let more = format!(r#""inputResponses":{{{}}}"#, entries.join(","));
    repeated(core, Method::TasksUpdate, id, &more).await?;
    record.change(note(true)).await
}

/// Cancels a task.
pub(crate) async fn cancel(core: &Arc<Core>, id: &str) -> Result<()> {
    match repeated(core, Method::TasksCancel, id, "").await {
        // The task has already ended or no longer exists.
        Err(error) if error.kind() == Some(ServerErrorKind::TaskGone) => Ok(()),
        other => other,
    }
}

/// Sends an idempotent request until the server acknowledges it.
async fn repeated(core: &Arc<Core>, method: Method, id: &str, more: &str) -> Result<()> {
    let mut lost = 0;
    loop {
        let sent = send(core, &about(core, method, id, more)).await;
        match sent.and_then(|answered| answered.result().map(|_| ())) {
            Ok(()) => return Ok(()),
            Err(error) if error.is_transient() && lost < RESENDS => {
                lost += 1;
                let asked_for = error.server_error().and_then(ServerError::retry_after);
                let wait = asked_for.unwrap_or(Duration::from_millis(100) * (1 << lost));
                tokio::time::sleep(wait + jitter(wait / 4)).await;
            }
            Err(error) => return Err(gone(error)),
        }
    }
}
