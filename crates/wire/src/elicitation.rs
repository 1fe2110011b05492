//! Asking the user, by a form or by sending them to a URL.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::{Meta, RawJson, RequestedSchema, Str};

/// The parameters of `elicitation/create`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitRequestParams {
    /// A form.
    Form(ElicitRequestFormParams),
    /// A URL.
    Url(ElicitRequestURLParams),
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(borrow)]
            mode: Option<Str<'a>>,
        }

        let raw = RawJson::deserialize(deserializer)?;
        let tag: Tag<'_> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        match tag.mode.as_deref() {
            // Revisions before 2025-11-25 have forms only and no word for them.
            None | Some("form") => serde_json::from_str(raw.get()).map(Self::Form),
            Some("url") => serde_json::from_str(raw.get()).map(Self::Url),
            Some(mode) => return Err(D::Error::unknown_variant(mode, &["form", "url"])),
        }
        .map_err(D::Error::custom)
    }
}

/// Asks by a form.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestFormParams {
    /// Absent means the same; 2025-06-18 does not know the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// What to ask, and why.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: RequestedSchema,
    /// Asks the client for a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Beside the subject; legacy revisions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The `mode` of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a form has the mode of a form and no other")]
pub enum FormMode {
    /// `form`
    Form,
}

/// Asks by sending the user to a URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename = "url", rename_all = "camelCase")]
pub struct ElicitRequestURLParams {
    /// What to ask, and why.
    pub message: String,
    /// Where the user goes.
    pub url: String,
    /// What `notifications/elicitation/complete` will name; 2025-11-25 only, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks the client for a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Beside the subject; legacy revisions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// What the user filled in: an object, after accepting a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
    /// Beside the subject; legacy revisions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Answered it.
    Accept,
    /// Said no.
    Decline,
    /// Closed it without a word.
    Cancel,
}

/// The parameters of `notifications/elicitation/complete`; 2025-11-25 only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteNotificationParams {
    /// The id that the question had.
    pub elicitation_id: String,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
