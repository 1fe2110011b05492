//! Steps of a command: the response lines, and the journal entries.

use outlive::{
    server::{
        Durable, Error, Result,
        durable::{DurableError, JournalError},
    },
    wire::RawJson,
};
use outlive_jobs::StepLine;
use serde_json::{json, value::to_raw_value};

/// Records the start or the end of a step. Returns the response line for the command.
///
/// A later run reads the same requests again. A recorded step keeps its value, and the command gets each
/// response once.
pub(super) async fn respond(cx: &Durable, request: &StepLine) -> Result<String> {
    let key = request.key();
    let recorded = cx.get::<RawJson>(key);
    let is_known = !matches!(recorded, Ok(None));
    if is_known {
        // A run may read a request several times.
        let _ = cx.mark_replayed(key);
    }
    match (request, recorded) {
        (StepLine::Start { .. }, Ok(None)) => Ok(json!({"go": key}).to_string()),
        (StepLine::Start { .. }, Ok(Some(value))) => {
            Ok(json!({"recorded": key, "value": value}).to_string())
        }
        (_, Err(error)) => rejected(key, error),
        (StepLine::Done { .. }, Ok(Some(_))) => Ok(json!({"recorded": key}).to_string()),
        (StepLine::Done { value, .. }, Ok(None)) => {
            let value = to_raw_value(value)?;
            match cx.step::<RawJson, _>(key, async || Ok(value)).await {
                Ok(_) => Ok(json!({"recorded": key}).to_string()),
                Err(error) => rejected(key, error),
            }
        }
    }
}

/// Returns the rejection of a step. An error of the run ends the command.
fn rejected(key: &str, error: Error) -> Result<String> {
    let kind = match error.durable_error() {
        Some(DurableError::Journal(JournalError::TooLarge { .. })) => "too_large",
        Some(DurableError::Journal(JournalError::BytesExceeded { .. })) => "bytes_exceeded",
        Some(DurableError::Journal(JournalError::DuplicateKey(_))) => "duplicate_key",
        Some(DurableError::Journal(JournalError::KindMismatch(_))) => "kind_mismatch",
        _ => return Err(error),
    };
    Ok(json!({"rejected": key, "kind": kind, "message": error.to_string()}).to_string())
}
