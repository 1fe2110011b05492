//! Validation of tool arguments before they are sent.

use outlive_wire::Tool;
use serde_json::{Map, Value, value::to_raw_value};

use outlive_schema::Schema;

/// Largest schema in bytes that the client checks. The server checks larger ones.
const MAX_SCHEMA: usize = 256 * 1024;

/// Checks arguments against the input schema of a tool.
///
/// Accepts all arguments if the schema is too large, has an unknown dialect or refers to another
/// document. The server decides then.
///
/// # Errors
///
/// Returns the reason, which starts with the JSON pointer of the invalid value.
pub fn check_arguments(tool: &Tool, arguments: &Map<String, Value>) -> Result<(), String> {
    let Ok(text) = to_raw_value(&tool.input_schema) else { return Ok(()) };
    if text.get().len() > MAX_SCHEMA {
        return Ok(());
    }
    let Ok(schema) = Schema::input_from_json(&text) else { return Ok(()) };
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    schema.check(&arguments).map_err(|violation| violation.to_string())
}

#[cfg(test)]
mod tests {
    use outlive_wire::Tool;
    use serde_json::{Value, json};

    use super::check_arguments;

    fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
        let tool: Tool =
            serde_json::from_value(json!({"name": "tool", "inputSchema": schema})).unwrap();
        check_arguments(&tool, arguments.as_object().unwrap())
    }

    #[test]
    fn argument_outside_schema_returns_reason_with_json_pointer() {
        let schema = json!({"type": "object", "properties": {
            "from": {"type": "integer", "minimum": 1},
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        }});
        assert_eq!(check(&schema, &json!({"from": 1, "name": "abc"})), Ok(()));
        let reason = check(&schema, &json!({"from": 0})).unwrap_err();
        assert!(reason.starts_with("`/from` "), "{reason}");
        assert!(check(&schema, &json!({"name": "a/b"})).is_err());
        assert!(check(&schema, &json!({"name": "abcd"})).is_err());
    }

    #[test]
    fn self_referencing_schema_check_terminates() {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        for schema in [
            json!({"type": "object", "$ref": "#"}),
            json!({"type": "object", "allOf": [{"$ref": "#"}]}),
            json!({"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "not": {"$ref": "#/not"}}),
            json!({"type": "object", "allOf": [{"$ref": "#/$defs/a"}],
                "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"oneOf": [{"$ref": "#/$defs/a"}]}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}}),
            json!({"type": "object", "$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
            json!({"type": "object", "if": {"$ref": "#"}, "then": {"$ref": "#"}, "else": {"$ref": "#"}}),
        ] {
            // The test passes if `check` returns, whatever the result.
            let _ = check(&schema, &json!({"a": deep}));
            let _ = check(&schema, &json!({}));
        }
    }

    #[test]
    fn schema_with_external_reference_accepts_all_arguments() {
        let schema = json!({"type": "object", "$ref": "https://example.com/schema"});
        assert_eq!(check(&schema, &json!({"a": 1})), Ok(()));
    }
}
