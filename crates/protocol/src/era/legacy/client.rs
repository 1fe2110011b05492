//! 2024-11-05 to 2025-11-25 from the client's side: a handshake, then requests without ceremony.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>

use http::{HeaderMap, HeaderValue};
use outlive_wire::{ClientCapabilities, JsonObject, Meta, Method, RequestId, Version};
use serde_json::{Map, Value, json, value::RawValue};

use super::{Legacy, headers, methods, task};
use crate::era::{
    Era,
    client::{
        ClientCodec, Declared, Outgoing, ResultContext, ResultKind, TaskDialect, read_nested,
    },
    error::put,
};

impl ClientCodec for Legacy {
    fn version(&self) -> Version {
        Era::version(self)
    }

    fn has(&self, method: Method) -> bool {
        Era::has(self, method) || methods::NOTIFIED.contains(&method)
    }

    fn has_sessions(&self) -> bool {
        true
    }

    fn closing_cancels(&self) -> bool {
        false
    }

    fn resumes(&self) -> bool {
        self.since(Version::V2025_03_26)
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn tasks(&self) -> TaskDialect {
        match self.since(Version::V2025_11_25) {
            true => TaskDialect::Requested,
            false => TaskDialect::None,
        }
    }

    fn takes_batches(&self) -> bool {
        Era::takes_batches(self)
    }

    fn write(&self, request: &Outgoing<'_>, _: &Declared, out: &mut Vec<u8>) {
        super::super::client::write(request, "", out);
    }

    fn headers(&self, request: &Outgoing<'_>, headers: &mut HeaderMap) {
        // What the two will speak is not agreed on before the handshake.
        if Method::parse(request.method) != Some(Method::Initialize) {
            self.plain_headers(headers);
        }
    }

    fn plain_headers(&self, headers: &mut HeaderMap) {
        if self.since(Version::V2025_06_18) {
            headers.insert(headers::VERSION, HeaderValue::from_static(self.version.as_str()));
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

    fn write_answer(
        &self,
        id: &RequestId,
        result: &RawValue,
        task: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let shaped = self.shaped(result, task);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.as_raw().get().as_bytes());
        out.extend_from_slice(br#","result":"#);
        match shaped {
            Some(shaped) => put(&shaped, out),
            None => out.extend_from_slice(result.get().as_bytes()),
        }
        out.push(b'}');
    }

    fn capabilities(&self, me: &Declared) -> ClientCapabilities {
        let mut said = me.capabilities.clone();
        said.extensions = None;
        if let Some(roots) = &mut said.roots {
            roots.list_changed = Some(true);
        }
        if let Some(elicitation) = &mut said.elicitation {
            if !self.since(Version::V2025_06_18) {
                said.elicitation = None;
            } else if !self.since(Version::V2025_11_25) {
                (elicitation.form, elicitation.url) = (None, None);
            }
        }
        if let Some(sampling) = &mut said.sampling
            && !self.since(Version::V2025_11_25)
        {
            (sampling.context, sampling.tools) = (None, None);
        }
        said.tasks = (me.hosts_tasks && self.since(Version::V2025_11_25))
            .then(|| hosted(&said))
            .filter(|hosted| hosted["requests"].as_object().is_some_and(|it| !it.is_empty()));
        if me.streams && self.since(Version::V2025_11_25) {
            let tasks = said.tasks.get_or_insert_with(|| json!({}));
            tasks["responses"] = json!({"modes": ["task", "immediate", "streaming"]});
        }
        said
    }
}

impl Legacy {
    /// A result as this revision has it, with the task that it belongs to; `None` if it is so already.
    fn shaped(&self, result: &RawValue, task: Option<&str>) -> Option<Map<String, Value>> {
        let several = !self.since(Version::V2025_11_25);
        if task.is_none() && !several {
            return None;
        }
        let mut result: Map<String, Value> = serde_json::from_str(result.get()).ok()?;
        if several && result.contains_key("model") {
            // A message is one block here; what says most is said first.
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
}

/// What the handshake says of tasks that the client runs.
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
