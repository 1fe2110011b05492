//! Parts of a request that HTTP headers repeat.

use http::HeaderValue;
use outlive_wire::{Method, Str};
use serde::Deserialize;

use crate::era::headers;

/// Encodes a text as a header value: unchanged if a header can hold it, otherwise as
/// `=?base64?…?=`.
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

/// Returns the name, URI or task ID in the parameters that the `Mcp-Name` header repeats. `None` if
/// the method has no such header.
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
