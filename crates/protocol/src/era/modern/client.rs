//! 2026-07-28 from the client's side: every request says who asks, and every result what it is.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic>

use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_wire::{ClientCapabilities, Method, RequestId, Str, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    VersionRules,
    era::{
        client::{
            ClientCodec, Declared, Outgoing, ResultContext, ResultKind, read_task, version_header,
            write,
        },
        headers,
    },
};

/// What `_meta` begins with; the version follows.
const VERSION_MEMBER: &str = r#""io.modelcontextprotocol/protocolVersion":""#;

/// Returns whether only a modern server sends an error code, so that a handshake would be wasted on
/// the server.
pub fn is_modern_error(code: i32) -> bool {
    matches!(code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
}

/// Writes requests of, and reads results for, modern clients.
#[derive(Debug)]
pub(in crate::era) struct ModernClientCodec;

impl ClientCodec for ModernClientCodec {
    fn write(
        &self,
        rules: &VersionRules,
        request: &Outgoing<'_>,
        me: &Declared,
        out: &mut Vec<u8>,
    ) {
        let rest = me.modern_meta(request.holds_tasks);
        write(request, &[VERSION_MEMBER, rules.version.as_str(), "\",", rest], out);
    }

    fn headers(&self, rules: &VersionRules, request: &Outgoing<'_>, headers: &mut HeaderMap) {
        version_header(rules, headers);
        if let Ok(method) = HeaderValue::from_str(request.method) {
            headers.insert(headers::METHOD, method);
        }
        if let Some(name) = request.name {
            headers.insert(headers::NAME, headers::encode(name));
        }
        for (name, value) in request.repeated {
            // The name was checked with the tool's schema.
            if let Ok(name) = HeaderName::try_from(format!("mcp-param-{name}")) {
                headers.insert(name, headers::encode(value));
            }
        }
    }

    fn read(&self, asked: &ResultContext, result: &str) -> Result<ResultKind, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stamp<'a> {
            #[serde(borrow, default)]
            result_type: Option<Str<'a>>,
        }
        let stamp: Stamp<'_> =
            serde_json::from_str(result).map_err(|error| format!("no result: {error}"))?;
        match (stamp.result_type.as_deref(), asked.method) {
            // A result without a stamp comes from an older server, and is complete.
            (None | Some("complete"), _) => Ok(ResultKind::Complete),
            // So the extension's own examples have it.
            (Some("task"), Some(Method::TasksGet)) => Ok(ResultKind::Complete),
            (
                Some("input_required"),
                Some(Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead),
            ) => {
                let required: outlive_wire::InputRequiredResult = serde_json::from_str(result)
                    .map_err(|error| format!("questions that cannot be read: {error}"))?;
                let asks = required.input_requests.as_ref().is_some_and(|asked| !asked.is_empty());
                match asks || required.request_state.is_some() {
                    true => Ok(ResultKind::InputRequired(Box::new(required))),
                    false => Err("`input_required` without questions and without state".to_owned()),
                }
            }
            (Some("task"), Some(Method::ToolsCall)) if asked.holds_tasks => {
                read_task(result).map(|task| ResultKind::Task(Box::new(task)))
            }
            (Some(other), _) => Err(format!(
                "`resultType` `{}` cannot answer this request",
                crate::error::short(other)
            )),
        }
    }

    fn write_response(
        &self,
        _rules: &VersionRules,
        _id: &RequestId,
        _result: &RawValue,
        _task: Option<&str>,
        _out: &mut Vec<u8>,
    ) {
        // Modern servers send no requests, and clients no responses.
    }

    fn capabilities(&self, _rules: &VersionRules, me: &Declared) -> ClientCapabilities {
        me.capabilities.clone()
    }
}
