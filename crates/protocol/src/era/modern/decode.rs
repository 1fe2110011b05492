//! Turns a 2026-07-28 request into a [`Call`].
//!
//! Runs after [`select`](crate::era::select) and before the router. The order of the checks is part
//! of the contract: checks that depend on the version follow the check of the version.

use std::sync::{Arc, OnceLock};

use bytestring::ByteString;
use http::{HeaderValue, request::Parts};
use outlive_wire::{LoggingLevel, Method, Version};

use crate::{
    Call, MessageContext, Outbox, ProtocolError, VersionRules,
    call::{ParamSpans, Span},
    era::{
        headers,
        params::{MetaKeys, Request, plain_string},
    },
};

/// Maximum size of messages that share their read buffer with other messages.
const SHARED_BUFFER: usize = 4 << 10;

/// Validates a request and builds a call. `is_custom` returns whether the application handles a
/// custom method.
pub(super) fn call(
    rules: &'static VersionRules,
    request: &Request<'_>,
    arrival: MessageContext<'_>,
    is_custom: &dyn Fn(&str) -> bool,
) -> Result<Arc<Call>, ProtocolError> {
    let http_headers = arrival.http.as_ref().map(|parts| &parts.headers);
    let meta = check_meta(rules, request, http_headers)?;
    let method = Method::parse(&request.method);
    if let Some(headers) = http_headers {
        headers::check_method(headers, &request.method)?;
    }
    let custom_method = match method {
        Some(method) if rules.methods.contains(&method) => None,
        _ if is_custom(&request.method) => Some(Box::from(&*request.method)),
        _ => return Err(ProtocolError::MethodNotFound { name: (*request.method).to_owned() }),
    };
    if let (Some(headers), Some(member)) = (http_headers, method.and_then(headers::named_by)) {
        let json = match member {
            "uri" => request.head.uri,
            "taskId" => request.head.task_id,
            _ => request.head.name,
        };
        check_name(headers, member, json)?;
    }
    let message = request.message;
    let (kept, http) = match method {
        // A small request is copied: its subscription may last for days and keep the read buffer
        // alive. A larger message has its own buffer, which the transport counts.
        Some(Method::Listen) if message.len() <= SHARED_BUFFER => {
            (ByteString::from(&**message), arrival.http.map(detached))
        }
        Some(Method::Listen) => (message.clone(), arrival.http.map(detached)),
        _ => (message.clone(), arrival.http),
    };
    Ok(Arc::new(Call {
        rules,
        id: Span::of(message, request.id),
        method: method.filter(|_| custom_method.is_none()),
        custom_method,
        // In the modern era the server decides which calls become tasks.
        parts: ParamSpans { task: None, ..request.head.spans(message)? },
        log_level: log_level(meta)?,
        principal: arrival.principal,
        session: None,
        peer: arrival.peer,
        http,
        params: request.params_span(),
        port: Outbox::default(),
        watch: OnceLock::new(),
        rerun_of: None,
        message: kept,
    }))
}
/// Copies the HTTP head, so that it does not keep the read buffer alive.
fn detached(mut parts: Box<Parts>) -> Box<Parts> {
    for value in parts.headers.values_mut() {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            *value = copy;
        }
    }
    if let Ok(copy) = parts.uri.to_string().parse() {
        parts.uri = copy;
    }
    parts
}

/// Checks the version and the capabilities, in the order that the specification requires.
fn check_meta<'r>(
    rules: &VersionRules,
    request: &'r Request<'_>,
    headers: Option<&http::HeaderMap>,
) -> Result<&'r MetaKeys<'r>, ProtocolError> {
    let header = match headers {
        Some(headers) => match headers::single(headers, &headers::VERSION)? {
            Some(version) => Some(version),
            None => {
                return Err(ProtocolError::HeaderMismatch(
                    "the MCP-Protocol-Version header is missing".into(),
                ));
            }
        },
        None => None,
    };
    let missing = |key: &str| {
        ProtocolError::invalid_params(format!(
            "`params._meta` lacks `io.modelcontextprotocol/{key}`"
        ))
    };
    let meta = request.head.meta.as_ref().ok_or_else(|| missing("protocolVersion"))?;
    let version = request.head.version().ok_or_else(|| missing("protocolVersion"))?;
    if header.is_some_and(|header| header != version.as_bytes()) {
        let key = "io.modelcontextprotocol/protocolVersion";
        return Err(ProtocolError::HeaderMismatch(
            format!("the MCP-Protocol-Version header differs from `_meta` `{key}`").into(),
        ));
    }
    if version != rules.version.as_str() {
        let needs_handshake = Version::parse(version).is_some();
        return Err(ProtocolError::UnsupportedProtocolVersion {
            requested: version.to_owned(),
            needs_handshake,
        });
    }
    match meta.capabilities {
        Some(capabilities) if capabilities.starts_with('{') => Ok(meta),
        Some(_) => Err(ProtocolError::invalid_params(
            "`_meta` `io.modelcontextprotocol/clientCapabilities` must be an object",
        )),
        None => Err(missing("clientCapabilities")),
    }
}

fn check_name(
    headers: &http::HeaderMap,
    member: &'static str,
    json: Option<&str>,
) -> Result<(), ProtocolError> {
    match json {
        // The name is decoded only if it has escapes, which is rare.
        Some(text) if text.starts_with('"') && text.contains('\\') => {
            let name: String = serde_json::from_str(text)
                .map_err(|error| ProtocolError::invalid_params(error.to_string()))?;
            headers::check_name(headers, member, Some(&name))
        }
        Some(text) => headers::check_name(
            headers,
            member,
            text.strip_prefix('"').and_then(|text| text.strip_suffix('"')),
        ),
        None => Ok(()),
    }
}

fn log_level(meta: &MetaKeys<'_>) -> Result<Option<LoggingLevel>, ProtocolError> {
    let Some(raw) = meta.log_level else { return Ok(None) };
    match plain_string(raw).and_then(level_named) {
        Some(level) => Ok(Some(level)),
        None => Err(ProtocolError::invalid_params(
            "`_meta` `io.modelcontextprotocol/logLevel` is not a log level",
        )),
    }
}

fn level_named(name: &str) -> Option<LoggingLevel> {
    LoggingLevel::ALL.into_iter().find(|level| level.as_str() == name)
}
