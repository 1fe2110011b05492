//! Parts of a request that its headers repeat.

use http::HeaderValue;
use outlive_wire::{Method, Str};
use serde::Deserialize;

use crate::era::headers;

/// The value that a header has for a text: the text itself where it can stand in a header, and
/// `=?base64?…?=` otherwise.
///
/// ```
/// use outlive_protocol::era::client::mirrored_value;
///
/// assert_eq!(mirrored_value("us west 1"), "us west 1");
/// assert_eq!(mirrored_value(" edge"), "=?base64?IGVkZ2U=?=");
/// assert_eq!(mirrored_value("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
/// ```
pub fn mirrored_value(text: &str) -> HeaderValue {
    headers::encode(text)
}

/// What a request is about, where its method has a header for that: the name, URI or task in its
/// parameters.
pub fn name_in(method: Method, params: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named<'a> {
        #[serde(borrow)]
        name: Option<Str<'a>>,
        #[serde(borrow)]
        uri: Option<Str<'a>>,
        #[serde(borrow)]
        task_id: Option<Str<'a>>,
    }
    let member = headers::named_by(method)?;
    let named: Named<'_> = serde_json::from_str(params).ok()?;
    let value = match member {
        "uri" => named.uri,
        "taskId" => named.task_id,
        _ => named.name,
    };
    value.map(|value| value.0.into_owned())
}
