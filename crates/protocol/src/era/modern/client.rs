//! The client side of 2026-07-28: every request names the client, and every result has a type.
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

/// Start of `_meta`, before the version.
const VERSION_MEMBER: &str = r#""io.modelcontextprotocol/protocolVersion":""#;

/// Returns whether only modern servers send this error code. If so, a legacy handshake is
/// pointless.
pub fn is_modern_error(code: i32) -> bool {
    matches!(code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
}

/// Client-side codec of the modern era.
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
            // The name is valid: it was checked with the tool's schema.
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
            serde_json::from_str(result).map_err(|error| format!("invalid result: {error}"))?;
        match (stamp.result_type.as_deref(), asked.method) {
            // Older servers send no `resultType`; their results are complete.
            (None | Some("complete"), _) => Ok(ResultKind::Complete),
            // The examples of the tasks extension send `task` as the type of `tasks/get`.
            (Some("task"), Some(Method::TasksGet)) => Ok(ResultKind::Complete),
            (
                Some("input_required"),
                Some(Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead),
            ) => {
                let required: outlive_wire::InputRequiredResult = serde_json::from_str(result)
                    .map_err(|error| format!("invalid `input_required` result: {error}"))?;
                let asks = required.input_requests.as_ref().is_some_and(|asked| !asked.is_empty());
                match asks || required.request_state.is_some() {
                    true => Ok(ResultKind::InputRequired(Box::new(required))),
                    false => Err("`input_required` has neither `inputRequests` nor `requestState`"
                        .to_owned()),
                }
            }
            (Some("task"), Some(Method::ToolsCall)) if asked.holds_tasks => {
                read_task(result).map(|task| ResultKind::Task(Box::new(task)))
            }
            (Some(other), _) => Err(format!(
                "`resultType` `{}` is not valid for this method",
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
        // Modern servers send no requests, so clients send no responses.
    }

    fn capabilities(&self, _rules: &VersionRules, me: &Declared) -> ClientCapabilities {
        me.capabilities.clone()
    }
}
