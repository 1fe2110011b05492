//! HTTP headers that repeat parts of the body, so that proxies can route without parsing it. The
//! server rejects requests whose headers are missing, malformed or different from the body.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_wire::Method;

use crate::ProtocolError;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The member of `params` that names the task.
const TASK_ID: &str = "taskId";

/// Returns the trimmed value of a header, or `None` if it is absent.
///
/// Duplicate headers are an error, because a proxy and the server could use different values.
pub(crate) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h [u8]>, ProtocolError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.as_bytes().trim_ascii());
    match values.next() {
        None => Ok(first),
        Some(_) => Err(ProtocolError::HeaderMismatch(
            format!("the {} header occurs more than once; send it once", shown(name)).into(),
        )),
    }
}

/// Checks that `Mcp-Method` equals the method in the body.
pub(in crate::era) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), ProtocolError> {
    match single(headers, &METHOD)? {
        Some(value) if value == method.as_bytes() => Ok(()),
        Some(_) => Err(ProtocolError::HeaderMismatch(
            "the Mcp-Method header differs from the body's `method`".into(),
        )),
        None => Err(ProtocolError::HeaderMismatch(
            "the Mcp-Method header is missing; it repeats the body's `method`".into(),
        )),
    }
}

/// Checks that `Mcp-Name` equals the name or URI in the body.
///
/// Requests about tasks may omit the header: the core specification does not require it for them,
/// and some clients omit it.
pub(in crate::era) fn check_name(
    headers: &HeaderMap,
    member: &'static str,
    expected: Option<&str>,
) -> Result<(), ProtocolError> {
    // The check of the parameters rejects a body without the member.
    let Some(expected) = expected else { return Ok(()) };
    let Some(value) = single(headers, &NAME)? else {
        if member == TASK_ID {
            return Ok(());
        }
        return Err(ProtocolError::HeaderMismatch(
            format!("the Mcp-Name header is missing; it repeats `params.{member}`").into(),
        ));
    };
    match *decode(value, &NAME)? == *expected.as_bytes() {
        true => Ok(()),
        false => Err(ProtocolError::HeaderMismatch(
            format!("the Mcp-Name header differs from `params.{member}`").into(),
        )),
    }
}

/// Returns the member of `params` that the `Mcp-Name` header repeats for a method.
pub(in crate::era) fn named_by(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead => Some("uri"),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some(TASK_ID),
        _ => None,
    }
}

/// Decodes a header value: `=?base64?…?=` is Base64, any other value is literal.
pub(crate) fn decode<'v>(
    value: &'v [u8],
    name: &HeaderName,
) -> Result<Cow<'v, [u8]>, ProtocolError> {
    let Some(encoded) = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="))
    else {
        // Non-ASCII values are rejected, because proxies may decode them differently.
        return match value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            true => Ok(Cow::Borrowed(value)),
            false => Err(ProtocolError::HeaderMismatch(
                format!("the {} header has characters that are not printable ASCII; encode it as Base64", shown(name)).into(),
            )),
        };
    };
    STANDARD.decode(encoded).map(Cow::Owned).map_err(|_| {
        ProtocolError::HeaderMismatch(
            format!("the {} header is not valid Base64", shown(name)).into(),
        )
    })
}

/// Encodes a text as a header value. [`decode`] is the inverse.
pub(in crate::era) fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_ascii().len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match HeaderValue::from_str(text) {
        Ok(value) if plain => value,
        _ => HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text)))
            .expect("Base64 is a valid header value"),
    }
}

/// Returns the value of a header that repeats an argument, decoded; `None` if it is absent.
///
/// # Errors
///
/// If the header is present twice, or its value is not valid Base64 or not UTF-8.
pub fn mirrored_header(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<String>, ProtocolError> {
    let Some(value) = single(headers, name)? else { return Ok(None) };
    let decoded = decode(value, name)?;
    match String::from_utf8(decoded.into_owned()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(ProtocolError::HeaderMismatch(
            format!("the {name} header is not UTF-8 text").into(),
        )),
    }
}

/// Returns a header name in its usual spelling; [`HeaderName`] is lower case.
fn shown(name: &HeaderName) -> String {
    let mut upper = true;
    let capital = |letter: char| {
        let shown = if upper { letter.to_ascii_uppercase() } else { letter };
        upper = letter == '-';
        shown
    };
    name.as_str().chars().map(capital).collect()
}
