//! Texts about approvals for the model, with their state in `_meta`.
//!
//! No text contains the name of an approver; the audit log has them.

use outlive_protocol::{rfc3339, text};
use outlive_tasks::store::{Audience, InboxItem, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock, Meta};
use serde_json::{Map, Value};

use crate::server::{
    exec::gate::binding::NextStep,
    hosts::reserved::{TASK_CANCEL, TASK_RESULT},
    tasks::pending_result::{minute, words},
};

/// Status message of a task that waits for its approval.
pub(crate) const WAITS: &str = "waits for approval";

/// Status message of an approved task that waits until its caller returns.
pub(crate) const WAITS_FOR_CALLER: &str = "approved; starts when it is called again";

/// Status message of an approved task whose handler starts.
pub(crate) const APPROVED: &str = "approved";

/// Member of `_meta` with the state of an approval.
const META: &str = "dev.outlive/approval";

/// Characters of a reason in a text.
const MAX_REASON: usize = 1_000;

/// Interval after which a client asks again about an undecided call, in milliseconds.
const RETRY_MILLIS: u64 = 10_000;

/// State of an approval in `_meta`.
struct Approval {
    state: &'static str,
    /// End of the state, in milliseconds since 1970.
    until: Option<u64>,
    retry_after: Option<u64>,
}

impl Approval {
    fn insert(self, result: &mut CallToolResult) {
        let Self { state, until, retry_after } = self;
        let mut shown = Map::new();
        shown.insert("state".to_owned(), state.into());
        if let Some(until) = until {
            shown.insert("until".to_owned(), rfc3339(until).into());
        }
        if let Some(millis) = retry_after {
            shown.insert("retryAfterMs".to_owned(), millis.into());
        }
        let meta = result.meta.get_or_insert_with(Meta::default);
        meta.insert(META.to_owned(), Value::Object(shown));
    }
}

/// Returns whether a task waits for its approval. Its record has no requests to people, so its
/// status message tells.
pub(crate) fn is_undecided(record: &TaskRecord) -> bool {
    record.outcome.is_none() && record.status_message.as_deref() == Some(WAITS)
}

/// Changes the pending result of an undecided call: its text, and the state in `_meta`.
pub(crate) fn pending(
    mut result: CallToolResult,
    record: &TaskRecord,
    approval: Option<&InboxItem>,
    next: NextStep,
) -> CallToolResult {
    let (tool, id) = (&record.tool, record.id.as_str());
    let due = approval.and_then(|approval| approval.due);
    let until = due.map(|due| format!(", open until {}", minute(due)));
    let asked = match approval.map(|approval| &approval.audience) {
        Some(Audience::Caller) => " The user decides: have them run `outlive inbox`.",
        _ => "",
    };
    let next = match next {
        NextStep::Task | NextStep::Pending => format!(
            "It runs when it is approved. Call {TASK_RESULT} with {{\"task\":\"{id}\"}} to wait for \
             it, {TASK_CANCEL} to withdraw it. Other arguments need another approval."
        ),
        NextStep::CallAgain => {
            result.structured_content = None;
            "Call it again with the same arguments to continue; other arguments need another \
             approval."
                .to_owned()
        }
    };
    let text = format!(
        "Not run yet: `{tool}` waits for approval (requested {}{}).{asked} {next}",
        minute(approval.map_or(record.created_at, |approval| approval.opened_at)),
        until.unwrap_or_default()
    );
    result.content = vec![ContentBlock::text(text)];
    let retry_after = Some(RETRY_MILLIS);
    Approval { state: "pending", until: due, retry_after }.insert(&mut result);
    result
}

/// Returns the result of a denied call. The denial stands until `until`.
pub(crate) fn denied(reason: &str, until: u64, now: u64) -> CallToolResult {
    let reason: String = text::line(reason).chars().take(MAX_REASON).collect();
    let mut result = CallToolResult::error(format!(
        "Denied: \"{reason}\". Nothing was run. Do not repeat it; these arguments stay denied until \
         {}.",
        minute(until)
    ));
    let retry_after = Some(until.saturating_sub(now));
    Approval { state: "denied", until: Some(until), retry_after }.insert(&mut result);
    result
}

/// Returns the result of a call about which people did not decide in time.
pub(crate) fn expired(decision_millis: u64) -> CallToolResult {
    let time = words(decision_millis / 1_000);
    ended("expired", format!("No decision within {time}. Nothing was run."))
}

/// Returns the result of an approved call whose caller did not return in time.
pub(crate) fn lapsed(start_millis: u64) -> CallToolResult {
    let time = words(start_millis / 1_000);
    ended("lapsed", format!("Approved, but not called again within {time}. Nothing was run."))
}

/// Returns the result of a call that was cancelled before a decision.
pub(crate) fn withdrawn() -> CallToolResult {
    ended("withdrawn", "Withdrawn before a decision. Nothing was run.".to_owned())
}

/// Returns the result of an undecided call that its anonymous caller cannot continue.
pub(crate) fn cannot_continue(tool: &str) -> CallToolResult {
    ended(
        "withdrawn",
        format!(
            "`{tool}` was not approved while the call waited, and an anonymous caller cannot \
             continue it. The request is withdrawn, and nothing was run. Call it with a credential."
        ),
    )
}

fn ended(state: &'static str, text: String) -> CallToolResult {
    let mut result = CallToolResult::error(text);
    Approval { state, until: None, retry_after: None }.insert(&mut result);
    result
}

/// Returns the default reason of a denial. Without a reason, models call again.
pub(crate) fn default_reason(audience: Option<&Audience>) -> &'static str {
    match audience {
        Some(Audience::Caller) => "the user declined",
        _ => "no reason was given",
    }
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::{Phase, TaskId, TaskOutcome, TaskRecord};
    use outlive_wire::CallToolResult;
    use serde_json::json;

    use super::{NextStep, denied, expired, is_undecided, lapsed, pending, withdrawn};

    /// 2026-11-18 10:12 UTC.
    const REQUESTED: u64 = 1_794_996_720_000;

    fn record() -> TaskRecord {
        let id = TaskId::new("5f1d");
        TaskRecord::new(id, "deploy", "", Phase::Parked, REQUESTED)
            .status_message(Some(super::WAITS.to_owned()))
    }

    fn text(result: &CallToolResult) -> &str {
        result.texts().next().unwrap()
    }

    #[test]
    fn pending_text_names_the_next_step_of_the_client() {
        let record = record();
        let with_tools = pending(CallToolResult::default(), &record, None, NextStep::Pending);
        assert_eq!(
            text(&with_tools),
            "Not run yet: `deploy` waits for approval (requested 2026-11-18 10:12 UTC). It runs when \
             it is approved. Call task_result with {\"task\":\"5f1d\"} to wait for it, task_cancel to \
             withdraw it. Other arguments need another approval."
        );
        let without = pending(CallToolResult::default(), &record, None, NextStep::CallAgain);
        assert_eq!(
            text(&without),
            "Not run yet: `deploy` waits for approval (requested 2026-11-18 10:12 UTC). Call it \
             again with the same arguments to continue; other arguments need another approval."
        );
        let meta = json!(without.meta.unwrap()["dev.outlive/approval"]);
        assert_eq!((without.is_error, &meta["state"]), (None, &json!("pending")));
        assert!(meta["retryAfterMs"].is_u64(), "{meta}");
    }

    #[test]
    fn final_texts_are_errors_with_state() {
        let denial = denied("not before\nthe freeze", REQUESTED + 600_000, REQUESTED);
        assert_eq!(
            text(&denial),
            "Denied: \"not before the freeze\". Nothing was run. Do not repeat it; these arguments \
             stay denied until 2026-11-18 10:22 UTC."
        );
        assert_eq!(denial.meta.as_ref().unwrap()["dev.outlive/approval"]["retryAfterMs"], 600_000);
        let results = [
            (denial, "denied", "Nothing was run."),
            (expired(8 * 3_600_000), "expired", "No decision within 8 h. Nothing was run."),
            (
                lapsed(600_000),
                "lapsed",
                "Approved, but not called again within 10 min. Nothing was run.",
            ),
            (withdrawn(), "withdrawn", "Withdrawn before a decision. Nothing was run."),
        ];
        for (result, state, says) in results {
            assert!(text(&result).contains(says), "{result:?}");
            assert_eq!(result.is_error, Some(true));
            assert_eq!(result.meta.unwrap()["dev.outlive/approval"]["state"], state);
        }
    }

    #[test]
    fn task_with_another_status_is_decided() {
        let waits = record();
        assert!(is_undecided(&waits));
        for message in [super::APPROVED, super::WAITS_FOR_CALLER, "frame 1 of 2"] {
            let record = waits.clone().status_message(Some(message.to_owned()));
            assert!(!is_undecided(&record), "{message}");
        }
        assert!(!is_undecided(&waits.outcome(Some(TaskOutcome::Cancelled))));
    }
}
