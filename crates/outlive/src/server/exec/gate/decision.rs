//! The decision about a gated call: the response to its approval request.

use outlive_tasks::store::Audience;
use serde::Deserialize;

use crate::server::exec::gate::text::default_reason;

/// Response to an approval request: of people, or of a client.
#[derive(Deserialize)]
pub(crate) struct Decision {
    action: String,
    #[serde(default)]
    reason: Option<String>,
    /// People who voted, for the audit log.
    #[serde(default)]
    pub(crate) by: Option<String>,
}

impl Decision {
    /// Returns whether the call may run.
    pub(crate) fn is_approval(&self) -> bool {
        self.action == "accept"
    }

    /// Returns the reason of a denial. A denial always has one.
    pub(crate) fn reason(&self, audience: Option<&Audience>) -> String {
        let reason = self.reason.as_deref().filter(|reason| !reason.trim().is_empty());
        reason.unwrap_or_else(|| default_reason(audience)).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::Audience;

    use super::Decision;

    #[test]
    fn denial_without_a_reason_has_the_default() {
        let read = |json: &str| serde_json::from_str::<Decision>(json).unwrap();
        let spoken = read(r#"{"action":"decline","reason":"not now","by":"ben"}"#);
        assert_eq!((spoken.is_approval(), spoken.reason(None)), (false, "not now".to_owned()));
        for silent in [r#"{"action":"decline"}"#, r#"{"action":"cancel","reason":" "}"#] {
            assert_eq!(read(silent).reason(Some(&Audience::Caller)), "the user declined");
            assert_eq!(read(silent).reason(None), "no reason was given");
        }
        assert!(read(r#"{"action":"accept"}"#).is_approval());
    }
}
