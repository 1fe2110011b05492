//! Elicitation: requests for input from the user, with a form or a URL.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::{Meta, RawJson, RequestedSchema, Str};

/// The parameters of `elicitation/create`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitRequestParams {
    /// Form elicitation.
    Form(ElicitRequestFormParams),
    /// URL elicitation.
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
            // Versions before 2025-11-25 have forms only and no `mode`.
            None | Some("form") => serde_json::from_str(raw.get()).map(Self::Form),
            Some("url") => serde_json::from_str(raw.get()).map(Self::Url),
            Some(mode) => return Err(D::Error::unknown_variant(mode, &["form", "url"])),
        }
        .map_err(D::Error::custom)
    }
}

/// Parameters of a form elicitation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestFormParams {
    /// Mode of the elicitation. Absent means a form; 2025-06-18 does not have the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// Message for the user: what the server requests, and why.
    pub message: String,
    /// Fields of the form.
    pub requested_schema: RequestedSchema,
    /// Request to run the elicitation or sampling as a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Metadata (`_meta`); legacy versions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The `mode` of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the mode of a form is always `form`")]
pub enum FormMode {
    /// `form`
    Form,
}

/// Parameters of a URL elicitation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename = "url", rename_all = "camelCase")]
pub struct ElicitRequestURLParams {
    /// Message for the user: what the server requests, and why.
    pub message: String,
    /// URL that the user visits.
    pub url: String,
    /// ID that `notifications/elicitation/complete` repeats; 2025-11-25 only, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Request to run the elicitation or sampling as a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Metadata (`_meta`); legacy versions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitResult {
    /// Action of the user.
    pub action: ElicitAction,
    /// Values of the form fields: an object, only after `accept` of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
    /// Metadata (`_meta`); legacy versions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The user's action on an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// The user submitted the form or agreed to visit the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the request without a choice.
    Cancel,
}

/// The parameters of `notifications/elicitation/complete`; 2025-11-25 only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteNotificationParams {
    /// ID of the elicitation.
    pub elicitation_id: String,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
