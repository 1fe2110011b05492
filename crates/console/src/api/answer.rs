//! `POST inputs/TASK/KEY/answer`.

use http::StatusCode;
use outlive::people::{Answer, AnswerReceipt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{call::ApiCall, error::ApiError, inbox::InputJson};
use crate::http::{Reply, json};

#[derive(Deserialize)]
struct Body {
    digest: String,
    action: Action,
    content: Option<Value>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
}

#[derive(Serialize)]
struct Receipt {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    approvals: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needed: Option<u32>,
}

/// Records the answer of a person to an input request.
pub(crate) async fn answer(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let Body { digest, action, content, reason } = call.body()?;
    let answer = Answer { digest, accepts: matches!(action, Action::Accept), content, reason };
    let (task, key) = (call.task(), call.param(1));
    let receipt = call.people().answer(call.visitor(), &task, key, answer).await?;
    let (status, error, remedy) = match receipt {
        AnswerReceipt::Settled => {
            let settled = Receipt { state: "settled", approvals: None, needed: None };
            return Ok(json(StatusCode::OK, &settled));
        }
        AnswerReceipt::Counted { approvals, needed } => {
            let (approvals, needed) = (Some(approvals), Some(needed));
            return Ok(json(StatusCode::OK, &Receipt { state: "counted", approvals, needed }));
        }
        AnswerReceipt::AlreadyVoted => {
            (StatusCode::CONFLICT, "you have voted before", "wait for the votes of other people")
        }
        AnswerReceipt::AlreadySettled => {
            (StatusCode::CONFLICT, "the request was settled before", "read `current`")
        }
        AnswerReceipt::DigestDiffers => {
            let remedy = "read `current`, and answer with its digest";
            (StatusCode::CONFLICT, "the request is not the one that you saw", remedy)
        }
        AnswerReceipt::Withdrawn => {
            (StatusCode::GONE, "the request was withdrawn, or its task has ended", "read `current`")
        }
        AnswerReceipt::Expired => (StatusCode::GONE, "the request has expired", "read `current`"),
        _ => (StatusCode::CONFLICT, "the answer was not recorded", "read `current`"),
    };
    let current = call.people().input_request(call.visitor(), &task, key).await?;
    let current = serde_json::to_value(InputJson::new(&current)).unwrap_or_default();
    Err(ApiError::new(status, error, remedy).with("current", current))
}
