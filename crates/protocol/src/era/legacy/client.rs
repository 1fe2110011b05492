//! The client side of 2024-11-05 to 2025-11-25: a handshake, then requests without `_meta`.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>

use http::HeaderMap;
use outlive_wire::{ClientCapabilities, JsonObject, Meta, Method, RequestId, Version};
use serde_json::{Map, Value, json, value::RawValue};

use super::task;
use crate::{
    TaskDialect, VersionRules,
    era::{
        client::{
            ClientCodec, Declared, Outgoing, RelayedKind, ResultContext, ResultKind, read_nested,
            version_header, write,
        },
        error::put,
    },
};

/// Client-side codec of the legacy era.
#[derive(Debug)]
pub(in crate::era) struct LegacyClientCodec;

impl ClientCodec for LegacyClientCodec {
    fn write(
        &self,
        _rules: &VersionRules,
        request: &Outgoing<'_>,
        _me: &Declared,
        out: &mut Vec<u8>,
    ) {
        write(request, &[], out);
    }

    fn headers(&self, rules: &VersionRules, request: &Outgoing<'_>, headers: &mut HeaderMap) {
        // The version is negotiated by the handshake, so `initialize` has no version header.
        if Method::parse(request.method) != Some(Method::Initialize) {
            version_header(rules, headers);
        }
    }

    fn read(&self, asked: &ResultContext, result: &str) -> Result<ResultKind, String> {
        if asked.holds_tasks
            && asked.method == Some(Method::ToolsCall)
            && let Some(task) = read_nested(result)?
        {
            return Ok(ResultKind::Task(Box::new(task)));
        }
        match result.starts_with('{') {
            true => Ok(ResultKind::Complete),
            false => Err("a result must be an object".to_owned()),
        }
    }

    fn read_relayed<'a>(
        &self,
        asked: &ResultContext,
        result: &'a str,
    ) -> Result<RelayedKind<'a>, String> {
        Ok(match self.read(asked, result)? {
            ResultKind::Task(task) => RelayedKind::Task(task),
            // Legacy results have no other kind.
            ResultKind::Complete | ResultKind::InputRequired(_) => RelayedKind::Complete,
        })
    }

    fn write_response(
        &self,
        rules: &VersionRules,
        id: &RequestId,
        result: &RawValue,
        task: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let shaped = shaped(rules, result, task);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.as_raw().get().as_bytes());
        out.extend_from_slice(br#","result":"#);
        match shaped {
            Some(shaped) => put(&shaped, out),
            None => out.extend_from_slice(result.get().as_bytes()),
        }
        out.push(b'}');
    }

    fn capabilities(&self, rules: &VersionRules, me: &Declared) -> ClientCapabilities {
        let mut said = me.capabilities.clone();
        // Servers of the older versions may reject members that they do not know.
        if !rules.since(Version::V2025_11_25) {
            said.extensions = None;
        }
        if let Some(roots) = &mut said.roots {
            roots.list_changed = Some(true);
        }
        if let Some(elicitation) = &mut said.elicitation {
            if !rules.since(Version::V2025_06_18) {
                said.elicitation = None;
            } else if !rules.since(Version::V2025_11_25) {
                (elicitation.form, elicitation.url) = (None, None);
            }
        }
        if let Some(sampling) = &mut said.sampling
            && !rules.since(Version::V2025_11_25)
        {
            (sampling.context, sampling.tools) = (None, None);
        }
        said.tasks = (me.hosts_tasks && rules.hosted_tasks)
            .then(|| hosted(&said))
            .filter(|hosted| hosted["requests"].as_object().is_some_and(|it| !it.is_empty()));
        if me.streams && rules.tasks == TaskDialect::Requested {
            let tasks = said.tasks.get_or_insert_with(|| json!({}));
            tasks["responses"] = json!({"modes": ["task", "immediate", "streaming"]});
        }
        said
    }
}

/// Converts a result to the format of the version and adds the related task. Returns `None` if
/// nothing changes.
fn shaped(
    rules: &VersionRules,
    result: &RawValue,
    task: Option<&str>,
) -> Option<Map<String, Value>> {
    let several = !rules.since(Version::V2025_11_25);
    if task.is_none() && !several {
        return None;
    }
    let mut result: Map<String, Value> = serde_json::from_str(result.get()).ok()?;
    if several && result.contains_key("model") {
        // Before 2025-11-25 a message has one content block; keep the first.
        if let Some(Value::Array(blocks)) = result.get_mut("content") {
            let first = blocks.drain(..).next().unwrap_or(Value::Null);
            result.insert("content".to_owned(), first);
        }
    }
    if let Some(id) = task {
        let meta = result.entry("_meta").or_insert_with(|| Value::Object(JsonObject::new()));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(Meta::RELATED_TASK.to_owned(), task::related(id));
        }
    }
    Some(result)
}

/// Returns the `tasks` capability of a client that runs input requests as tasks.
fn hosted(said: &ClientCapabilities) -> Value {
    let mut requests = Map::new();
    if said.sampling.is_some() {
        requests.insert("sampling".to_owned(), json!({"createMessage": {}}));
    }
    if said.elicitation.is_some() {
        requests.insert("elicitation".to_owned(), json!({"create": {}}));
    }
    json!({"list": {}, "cancel": {}, "requests": requests})
}
