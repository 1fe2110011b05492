//! Validation of every server message against the official schema of its version.
//!
//! `OUTLIVE_SPEC_DIR` names a folder with one `<version>/schema.json` each. Without the variable
//! nothing is validated, so the tests need only this repository.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Panics if `message` violates the schema of `version`.
///
/// `request_method` is the method of the request that a response belongs to.
#[track_caller]
pub(crate) fn check(version: &str, request_method: Option<&str>, message: &Value) {
    if let Some(schemas) = Schemas::get() {
        check_with(schemas, version, request_method, message);
    }
}

#[track_caller]
fn check_with(schemas: &Schemas, version: &str, request_method: Option<&str>, message: &Value) {
    for (definition, part) in expectations(version, request_method, message) {
        let validator = schemas.validator(version, definition);
        let errors: Vec<String> = validator
            .iter_errors(&part)
            .map(|error| format!("  at `{}`: {error}", error.instance_path()))
            .collect();
        assert!(
            errors.is_empty(),
            "not a {definition} of {version}:\n{}\n{message:#}",
            errors.join("\n")
        );
    }
}

/// Returns the schema definitions for a message, with the part that each validates.
fn expectations(
    version: &str,
    request_method: Option<&str>,
    message: &Value,
) -> Vec<(&'static str, Value)> {
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        return match message.get("id") {
            Some(_) => vec![(request(method), message.clone())],
            None => vec![(notification(method), message.clone())],
        };
    }
    let old = matches!(version, "2024-11-05" | "2025-03-26" | "2025-06-18");
    if let Some(error) = message.get("error") {
        let mut message = message.clone();
        // The older schemas have no error without an ID, but JSON-RPC and the newer schemas do.
        if message.get("id").is_none() {
            message["id"] = json!(0);
        }
        let envelope = if old { "JSONRPCError" } else { "JSONRPCErrorResponse" };
        let mut parts = vec![(envelope, message.clone())];
        if version == "2026-07-28" {
            parts.extend(named_error(error, &message));
        }
        return parts;
    }
    let envelope = if old { "JSONRPCResponse" } else { "JSONRPCResultResponse" };
    let mut parts = vec![(envelope, message.clone())];
    if message["result"]["resultType"] == "input_required" {
        parts.push(("InputRequiredResult", message["result"].clone()));
    } else if message["result"]["resultType"] == "task" {
        // The task extension has its own schema.
    } else if version == "2025-11-25" && message["result"].get("partial-content").is_some() {
        // A streaming response: each block is a content block with a sequence number.
        for block in message["result"]["partial-content"].as_array().into_iter().flatten() {
            let mut block = block.clone();
            block.as_object_mut().map(|block| block.remove("seqNr"));
            parts.push(("ContentBlock", block));
        }
    } else if version == "2025-11-25" && message["result"].get("task").is_some() {
        parts.push(("CreateTaskResult", message["result"].clone()));
    } else if let Some(result) = request_method.and_then(result_of) {
        parts.push((result, message["result"].clone()));
    }
    parts
}

fn request(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        _ => "JSONRPCRequest",
    }
}

fn notification(method: &str) -> &'static str {
    match method {
        "notifications/cancelled" => "CancelledNotification",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        _ => "JSONRPCNotification",
    }
}

fn result_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/call" => "CallToolResult",
        "tools/list" => "ListToolsResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            "EmptyResult"
        }
        _ => return None,
    })
}

/// Returns the definition for an error of 2026-07-28. Standard JSON-RPC errors are defined as error
/// objects, the others as whole responses.
fn named_error(error: &Value, message: &Value) -> Option<(&'static str, Value)> {
    let (name, part) = match error["code"].as_i64()? {
        -32700 => ("ParseError", error),
        -32600 => ("InvalidRequestError", error),
        -32601 => ("MethodNotFoundError", error),
        -32602 => ("InvalidParamsError", error),
        -32603 => ("InternalError", error),
        -32020 => ("HeaderMismatchError", message),
        -32021 => ("MissingRequiredClientCapabilityError", message),
        -32022 => ("UnsupportedProtocolVersionError", message),
        _ => return None,
    };
    Some((name, part.clone()))
}

/// The schemas of all versions. Each definition is compiled at first use.
struct Schemas {
    folder: PathBuf,
    files: Mutex<HashMap<String, Arc<Value>>>,
    compiled: Mutex<HashMap<(String, &'static str), Arc<Validator>>>,
}

impl Schemas {
    fn get() -> Option<&'static Self> {
        static SCHEMAS: OnceLock<Option<Schemas>> = OnceLock::new();
        let folder = || std::env::var_os("OUTLIVE_SPEC_DIR").map(PathBuf::from);
        SCHEMAS.get_or_init(|| folder().map(Schemas::of)).as_ref()
    }

    fn of(folder: PathBuf) -> Self {
        Self { folder, files: Mutex::default(), compiled: Mutex::default() }
    }

    fn validator(&self, version: &str, definition: &'static str) -> Arc<Validator> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let compile = || Arc::new(self.compile(version, definition));
        Arc::clone(compiled.entry((version.to_owned(), definition)).or_insert_with(compile))
    }

    fn compile(&self, version: &str, definition: &str) -> Validator {
        let file = self.file(version);
        let place = if file.get("$defs").is_some() { "$defs" } else { "definitions" };
        assert!(
            file[place].get(definition).is_some(),
            "the schema of {version} has no {definition}"
        );
        jsonschema::validator_for(&excerpt(&file, place, definition))
            .expect("the official schema is valid")
    }

    fn file(&self, version: &str) -> Arc<Value> {
        let read = || {
            let path = self.folder.join(version).join("schema.json");
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("could not read {}: {error}", path.display()));
            Arc::new(serde_json::from_str(&text).expect("the official schema is JSON"))
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(files.entry(version.to_owned()).or_insert_with(read))
    }
}

/// Returns a definition with its references. Compiling the whole file takes longer than most tests.
fn excerpt(file: &Value, place: &str, definition: &str) -> Value {
    let mut found = Map::new();
    let mut wanted = vec![definition];
    while let Some(name) = wanted.pop() {
        if !found.contains_key(name) {
            let part = &file[place][name];
            references(part, &mut wanted);
            found.insert(name.to_owned(), part.clone());
        }
    }
    let mut schema = json!({place: found, "allOf": [{"$ref": format!("#/{place}/{definition}")}]});
    if let Some(dialect) = file.get("$schema") {
        schema["$schema"] = dialect.clone();
    }
    schema
}

/// Collects the names of the definitions that a schema refers to.
fn references<'a>(part: &'a Value, names: &mut Vec<&'a str>) {
    match part {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            names.extend(name.and_then(|name| name.rsplit('/').next()));
            members.values().for_each(|member| references(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Schemas, check_with};

    /// The validation itself can fail, so a passing test has a meaning.
    #[test]
    fn message_violating_schema_panics() {
        let folder = std::env::temp_dir().join(format!("outlive-schema-{}", std::process::id()));
        let schema = json!({"$defs": {
            "JSONRPCResultResponse": {"required": ["jsonrpc", "id", "result"]},
            "JSONRPCErrorResponse": {"required": ["jsonrpc", "error"]},
            "CallToolResult": {
                "properties": {"content": {"$ref": "#/$defs/Content"}},
                "required": ["content", "resultType"]
            },
            "Content": {"type": "array"},
            "ProgressNotification": {"required": ["params"]},
            "UnsupportedProtocolVersionError": {
                "properties": {"error": {"required": ["data"]}}
            },
        }});
        std::fs::create_dir_all(folder.join("2026-07-28")).unwrap();
        std::fs::write(folder.join("2026-07-28/schema.json"), schema.to_string()).unwrap();
        let schemas = Schemas::of(folder.clone());
        let cases = [
            (true, json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": ""}})),
            (false, json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})),
            (false, json!({"jsonrpc": "2.0", "id": 1, "result": {"content": 1, "resultType": ""}})),
            (true, json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})),
            (false, json!({"jsonrpc": "2.0", "method": "notifications/progress"})),
            (true, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "data": {}}})),
            (false, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022}})),
        ];
        for (fits, message) in cases {
            let check = || check_with(&schemas, "2026-07-28", Some("tools/call"), &message);
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
            assert_eq!(checked.is_ok(), fits, "{message}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
