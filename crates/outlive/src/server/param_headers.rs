//! `Mcp-Param-*` headers, which must repeat the arguments that a tool's schema names.

use http::{HeaderMap, HeaderName};
use outlive_protocol::{ProtocolError, era};
use outlive_schema::HeaderParam;
use serde_json::Value;

/// Compares the headers of a call with its arguments. Has no cost for tools without such headers.
pub(super) fn check(
    params: &[HeaderParam],
    arguments: &str,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    if params.is_empty() {
        return Ok(());
    }
    // Arguments are parsed only for tools with such headers.
    let arguments: Value = serde_json::from_str(arguments)
        .map_err(|error| ProtocolError::invalid_params(format!("`params.arguments`: {error}")))?;
    params.iter().try_for_each(|param| check_one(param, &arguments, headers))
}

fn check_one(
    param: &HeaderParam,
    arguments: &Value,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    let name = HeaderName::try_from(format!("mcp-param-{}", param.header))
        .map_err(ProtocolError::internal)?;
    let shown = format!("Mcp-Param-{}", param.header);
    let value = param.argument(arguments);
    let header = era::mirrored_header(headers, &name)?;
    let (Some(value), Some(header)) = (value, &header) else {
        return match (value, header) {
            (None, None) => Ok(()),
            (Some(_), _) => {
                Err(ProtocolError::HeaderMismatch(format!("the {shown} header is missing").into()))
            }
            (None, Some(_)) => Err(ProtocolError::HeaderMismatch(
                format!("the {shown} header has no matching argument").into(),
            )),
        };
    };
    match param.is_repeated(value, header) {
        true => Ok(()),
        false => Err(ProtocolError::HeaderMismatch(
            format!("the {shown} header differs from its argument").into(),
        )),
    }
}
