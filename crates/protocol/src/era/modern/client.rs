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
            ClientCodec, Declared, Outgoing, RelayedKind, ResultContext, ResultKind, read_task,
            version_header, write,
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
        let rest = match request.class {
            Some(class) => me.class_meta(class, request.holds_tasks),
            None => me.modern_meta(request.holds_tasks),
        };
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
        Ok(match kind_of(asked, result)? {
            Kind::Complete => ResultKind::Complete,
            Kind::Task => ResultKind::Task(Box::new(read_task(result)?)),
            Kind::InputRequired => {
                let required: outlive_wire::InputRequiredResult = serde_json::from_str(result)
                    .map_err(|error| format!("invalid `input_required` result: {error}"))?;
                let asks = required.input_requests.as_ref().is_some_and(|asked| !asked.is_empty());
                if !asks && required.request_state.is_none() {
                    return Err(NOTHING_REQUIRED.to_owned());
                }
                ResultKind::InputRequired(Box::new(required))
            }
        })
    }

    fn read_relayed<'a>(
        &self,
        asked: &ResultContext,
        result: &'a str,
    ) -> Result<RelayedKind<'a>, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Required<'a> {
            #[serde(borrow)]
            input_requests: Option<&'a RawValue>,
            request_state: Option<String>,
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        Ok(match kind_of(asked, result)? {
            Kind::Complete => RelayedKind::Complete,
            Kind::Task => RelayedKind::Task(Box::new(read_task(result)?)),
            Kind::InputRequired => {
                let required: Required<'a> = serde_json::from_str(result)
                    .map_err(|error| format!("invalid `input_required` result: {error}"))?;
                let Required { input_requests: requests, request_state: state, meta } = required;
                let asks = requests.is_some_and(|requests| requests.get() != "{}");
                if !asks && state.is_none() {
                    return Err(NOTHING_REQUIRED.to_owned());
                }
                RelayedKind::InputRequired { requests, state, meta }
            }
        })
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

const NOTHING_REQUIRED: &str = "`input_required` has neither `inputRequests` nor `requestState`";

/// The kind of a result, by its stamp.
enum Kind {
    Complete,
    InputRequired,
    Task,
}

fn kind_of(asked: &ResultContext, result: &str) -> Result<Kind, String> {
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
        (None | Some("complete"), _) => Ok(Kind::Complete),
        // The examples of the tasks extension send `task` as the type of `tasks/get`.
        (Some("task"), Some(Method::TasksGet)) => Ok(Kind::Complete),
        (
            Some("input_required"),
            Some(Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead),
        ) => Ok(Kind::InputRequired),
        (Some("task"), Some(Method::ToolsCall)) if asked.holds_tasks => Ok(Kind::Task),
        (Some(other), _) => Err(format!(
            "`resultType` `{}` is not valid for this method",
            crate::error::short(other)
        )),
    }
}
