//! Input requests that a server returns instead of a result; 2026-07-28.
//!
//! Input responses stay raw, because the input request determines their type.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::value::RawValue;

use crate::{
    CreateMessageRequestParams, ElicitRequestParams, Meta, Method, OrderedMap, RawJson, Str,
};

/// Input requests by key.
pub type InputRequests = OrderedMap<InputRequest>;

/// The result of a call that requires input. At least one of its two members is present.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// The input requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The request state, which the client returns unchanged with the input responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// An input request.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum InputRequest {
    /// Elicitation, for the user.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitRequestParams),
    /// Sampling, for the model.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(Box<CreateMessageRequestParams>),
    /// Roots, for the client.
    #[serde(rename = "roots/list")]
    ListRoots,
    /// An input request of an unknown method, as JSON text.
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
