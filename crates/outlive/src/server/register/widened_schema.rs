//! Output schemas that also allow a pending result.
//!
//! Official clients reject a result whose structured content does not match the output schema that
//! the server lists. For clients without tasks, a slow tool is therefore listed with a schema that
//! allows its own results and pending results.

use std::sync::Arc;

use outlive_wire::Schema;
use serde_json::{Map, Value, json, value::to_raw_value};

/// Members that references point into, and that must stay at the root of the schema.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Returns a schema that allows what `schema` allows, and pending results. Returns `None` if the
/// schema does not describe an object, or its references would not survive.
pub(crate) fn widened(schema: &Schema) -> Option<Schema> {
    let Value::Object(mut own) = serde_json::from_str(schema.get()).ok()? else { return None };
    if own.get("type") != Some(&json!("object")) {
        return None;
    }
    let mut wide = Map::new();
    if let Some(dialect) = own.remove("$schema") {
        wide.insert("$schema".to_owned(), dialect);
    }
    wide.insert("type".to_owned(), json!("object"));
    let own_definitions: Vec<_> =
        DEFINITIONS.iter().filter_map(|name| Some((*name, own.remove(*name)?))).collect();
    let is_movable = own_definitions.iter().all(|(_, definitions)| has_movable_refs(definitions))
        && own.iter().all(|(name, value)| is_movable_member(name, value));
    if !is_movable {
        return None;
    }
    let pending = json!({"required": ["task"], "properties": {"task": {"type": "object"}}});
    wide.insert("anyOf".to_owned(), Value::Array(vec![Value::Object(own), pending]));
    wide.extend(own_definitions.into_iter().map(|(name, value)| (name.to_owned(), value)));
    to_raw_value(&wide).ok().map(Arc::from)
}

/// Returns whether every reference in a schema points to a definition at the root.
fn has_movable_refs(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().all(|(name, value)| is_movable_member(name, value))
        }
        Value::Array(items) => items.iter().all(has_movable_refs),
        _ => true,
    }
}

fn is_movable_member(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("$ref", Value::String(target)) => {
            DEFINITIONS.iter().any(|root| target.starts_with(&format!("#/{root}/")))
        }
        ("$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor", Value::String(_)) => false,
        (_, value) => has_movable_refs(value),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlive_wire::Schema;
    use serde_json::{Value, json, value::to_raw_value};

    fn widened(schema: &Value) -> Option<Value> {
        let schema: Schema = Arc::from(to_raw_value(schema).unwrap());
        super::widened(&schema).map(|wide| serde_json::from_str(wide.get()).unwrap())
    }

    #[test]
    fn widened_schema_allows_own_and_pending_results() {
        let own = json!({"type": "object", "required": ["frames"], "properties": {"frames": {"type": "integer"}}});
        let wide = widened(&own).unwrap();
        let pending = json!({"required": ["task"], "properties": {"task": {"type": "object"}}});
        assert_eq!(wide, json!({"type": "object", "anyOf": [own, pending]}));
    }

    #[test]
    fn widened_schema_keeps_definitions_at_root() {
        let own = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"frame": {"$ref": "#/$defs/Frame"}},
            "$defs": {"Frame": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Frame"}}}},
        });
        let wide = widened(&own).unwrap();
        assert_eq!(wide["$defs"], own["$defs"]);
        assert_eq!(wide["$schema"], own["$schema"]);
        assert_eq!(wide["anyOf"][0], json!({"type": "object", "properties": own["properties"]}));
    }

    #[test]
    fn schema_with_other_references_is_not_widened() {
        for own in [
            json!({"type": "array"}),
            json!({"type": "object", "properties": {"self": {"$ref": "#"}}}),
            json!({"type": "object", "properties": {"a": {}, "b": {"$ref": "#/properties/a"}}}),
            json!({"type": "object", "$id": "https://example.com/own"}),
            json!({"type": "object", "$defs": {"A": {"$anchor": "a"}}}),
        ] {
            assert_eq!(widened(&own), None, "{own}");
        }
    }
}
