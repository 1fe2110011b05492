//! 2026-07-28 from the client's side: every request says who asks, and every result what it is.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic>

use http::{HeaderMap, HeaderName, HeaderValue};
use outlive_wire::{
    ClientCapabilities, Implementation, JsonObject, Meta, Method, RequestId, Str, Version, code,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{Modern, TASKS, headers};
use crate::era::{
    Era,
    client::{ClientCodec, Declared, Outgoing, ResultContext, ResultKind, TaskDialect, read_task},
    error::put,
};

/// The members that every request has in its `_meta`, without braces.
pub(in crate::era) fn client_meta(
    info: Option<&Implementation>,
    capabilities: &ClientCapabilities,
    holds_tasks: bool,
) -> Box<str> {
    let mut capabilities = capabilities.clone();
    // A word of the older generation: whoever says it here has said nothing.
    capabilities.tasks = None;
    if let Some(roots) = &mut capabilities.roots {
        roots.list_changed = None;
    }
    if holds_tasks {
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS.to_owned(), Value::Object(JsonObject::new()));
    }
    let mut out = Vec::new();
    let mut member = |key: &str, value: &dyn erased::Json| {
        if !out.is_empty() {
            out.push(b',');
        }
        put(&key, &mut out);
        out.push(b':');
        value.put(&mut out);
    };
    member(Meta::PROTOCOL_VERSION, &Version::V2026_07_28.as_str());
    if let Some(info) = info {
        member(Meta::CLIENT_INFO, info);
    }
    member(Meta::CLIENT_CAPABILITIES, &capabilities);
    String::from_utf8(out).expect("JSON is text").into()
}

/// Values of several types, each written as JSON.
mod erased {
    use serde::Serialize;

    pub(super) trait Json {
        fn put(&self, out: &mut Vec<u8>);
    }

    impl<T: Serialize> Json for T {
        fn put(&self, out: &mut Vec<u8>) {
            super::put(self, out);
        }
    }
}

/// The codes that this revision has brought. No server of the older generation sends them.
pub(in crate::era) fn is_own_code(refused: i32) -> bool {
    matches!(refused, code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
}

impl ClientCodec for Modern {
    fn version(&self) -> Version {
        Era::version(self)
    }

    fn has(&self, method: Method) -> bool {
        Era::has(self, method)
    }

    fn has_sessions(&self) -> bool {
        false
    }

    fn closing_cancels(&self) -> bool {
        true
    }

    fn resumes(&self) -> bool {
        false
    }

    fn is_asked(&self) -> bool {
        false
    }

    fn tasks(&self) -> TaskDialect {
        TaskDialect::Offered
    }

    fn write(&self, request: &Outgoing<'_>, me: &Declared, out: &mut Vec<u8>) {
        super::super::client::write(request, me.modern_meta(request.holds_tasks), out);
    }

    fn headers(&self, request: &Outgoing<'_>, headers: &mut HeaderMap) {
        self.plain_headers(headers);
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

    fn plain_headers(&self, headers: &mut HeaderMap) {
        headers.insert(headers::VERSION, HeaderValue::from_static(Version::V2026_07_28.as_str()));
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

    fn write_answer(&self, _: &RequestId, _: &RawValue, _: Option<&str>, _: &mut Vec<u8>) {
        // Servers of this revision send no requests, and clients no answers.
    }

    fn capabilities(&self, me: &Declared) -> ClientCapabilities {
        me.capabilities.clone()
    }
}
