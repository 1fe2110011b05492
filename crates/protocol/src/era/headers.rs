//! The headers of a request must repeat parts of its body, so that proxies can route without
//! reading it. A header that differs, is missing or is malformed refuses the request.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_wire::Method;

use crate::ProtocolError;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What requests about tasks name them by.
const TASK_ID: &str = "taskId";

/// A header's value without the space around it; `None` if it is absent. Two of them are a fault:
/// two readers could each believe another one.
pub(crate) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h [u8]>, ProtocolError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.as_bytes().trim_ascii());
    match values.next() {
        None => Ok(first),
        Some(_) => Err(ProtocolError::HeaderMismatch(
            format!("the {} header is there more than once", shown(name)).into(),
        )),
    }
}

/// `Mcp-Method` must equal the body's method, letter for letter.
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

/// `Mcp-Name` must equal the name or URI that the request is about, if its method has one. Requests
/// about tasks may leave it out: the core specification does not list them, and clients exist that do.
pub(in crate::era) fn check_name(
    headers: &HeaderMap,
    member: &'static str,
    expected: Option<&str>,
) -> Result<(), ProtocolError> {
    // A body without the member is refused later, by its own rule.
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

/// Which member of `params` the `Mcp-Name` header repeats, for methods that have it.
pub(in crate::era) fn named_by(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead => Some("uri"),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some(TASK_ID),
        _ => None,
    }
}

/// The value that a header stands for: `=?base64?…?=` is decoded, anything else is literal.
pub(crate) fn decode<'v>(
    value: &'v [u8],
    name: &HeaderName,
) -> Result<Cow<'v, [u8]>, ProtocolError> {
    let Some(encoded) = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="))
    else {
        // Anything else two readers may take for different text.
        return match value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            true => Ok(Cow::Borrowed(value)),
            false => Err(ProtocolError::HeaderMismatch(
                format!("the {} header has characters that need Base64", shown(name)).into(),
            )),
        };
    };
    STANDARD.decode(encoded).map(Cow::Owned).map_err(|_| {
        ProtocolError::HeaderMismatch(
            format!("the {} header is not valid Base64", shown(name)).into(),
        )
    })
}

/// The value that stands for a text: [`decode`] gives the text back.
pub(in crate::era) fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_ascii().len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match HeaderValue::from_str(text) {
        Ok(value) if plain => value,
        _ => HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text)))
            .expect("Base64 is plain text"),
    }
}

/// Returns the value of a header that repeats an argument, decoded; `None` if it is absent.
///
/// # Errors
///
/// If the request has it twice, or it is not valid Base64 or not text.
pub fn mirrored_header(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<String>, ProtocolError> {
    let Some(value) = single(headers, name)? else { return Ok(None) };
    let decoded = decode(value, name)?;
    match String::from_utf8(decoded.into_owned()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => {
            Err(ProtocolError::HeaderMismatch(format!("the {name} header is not text").into()))
        }
    }
}

/// Header names are lower case inside; people know them otherwise.
fn shown(name: &HeaderName) -> String {
    let mut upper = true;
    let capital = |letter: char| {
        let shown = if upper { letter.to_ascii_uppercase() } else { letter };
        upper = letter == '-';
        shown
    };
    name.as_str().chars().map(capital).collect()
}
