//! Questions that a server puts to a client in place of a result; 2026-07-28.
//!
//! The answers stay raw: what was asked decides what an answer is.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::value::RawValue;

use crate::{
    CreateMessageRequestParams, ElicitRequestParams, Meta, Method, OrderedMap, RawJson, Str,
};

/// Questions by their key.
pub type InputRequests = OrderedMap<InputRequest>;

/// Says that a request needs answers first. At least one of its two members is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// What the server needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the client gives back with the answers, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One question.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum InputRequest {
    /// For the user.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitRequestParams),
    /// For a model.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(Box<CreateMessageRequestParams>),
    /// For the client itself: where may the server work?
    #[serde(rename = "roots/list")]
    ListRoots,
    /// A question of another kind, verbatim.
    #[serde(untagged)]
    Unknown(RawJson),
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Question<'a> {
            #[serde(borrow)]
            method: Str<'a>,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }

        let raw = RawJson::deserialize(deserializer)?;
        let question: Question<'_> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let params =
            || question.params.map(RawValue::get).ok_or_else(|| D::Error::missing_field("params"));
        match Method::parse(&question.method) {
            Some(Method::Elicit) => {
                serde_json::from_str(params()?).map(Self::Elicit).map_err(D::Error::custom)
            }
            Some(Method::CreateMessage) => {
                serde_json::from_str(params()?).map(Self::CreateMessage).map_err(D::Error::custom)
            }
            Some(Method::RootsList) => Ok(Self::ListRoots),
            _ => Ok(Self::Unknown(raw)),
        }
    }
}
