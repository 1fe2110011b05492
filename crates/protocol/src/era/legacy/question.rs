//! Questions to the client as requests: which of them a revision knows, and how it writes them.

use outlive_wire::{
    CancelledNotificationParams, ElicitRequestParams, ElicitationCompleteNotificationParams,
    InputRequest, Method, Version,
};

use super::Legacy;
use crate::era::{error::put, notify};

/// Elicitation came with 2025-06-18, and URLs with 2025-11-25.
pub(super) fn has_words_for(era: &Legacy, request: &InputRequest) -> bool {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(_)) => era.since(Version::V2025_06_18),
        InputRequest::Elicit(_) => era.since(Version::V2025_11_25),
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => true,
        _ => false,
    }
}

/// Writes a question as a request.
pub(super) fn request(_era: &Legacy, id: u64, request: &InputRequest, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    let at = out.len();
    put(request, out);
    // Method and parameters are members of the request: the opening brace becomes a comma. They
    // come before the id, as in a notification: answers are told apart by beginning with one.
    out[at] = b',';
    out.pop();
    out.extend_from_slice(format!(r#","id":{id}}}"#).as_bytes());
}

pub(super) fn withdraw(id: u64, reason: &str, out: &mut Vec<u8>) {
    let params = CancelledNotificationParams {
        request_id: Some((id as i64).into()),
        reason: Some(reason.to_owned()),
        meta: None,
    };
    notify::notification(Method::Cancelled.as_str(), &params, out);
}

/// `false` where the revision has no word for it.
pub(super) fn url_done(era: &Legacy, elicitation_id: String, out: &mut Vec<u8>) -> bool {
    let known = era.since(Version::V2025_11_25);
    if known {
        let params = ElicitationCompleteNotificationParams { elicitation_id, meta: None };
        notify::notification(Method::ElicitationComplete.as_str(), &params, out);
    }
    known
}
