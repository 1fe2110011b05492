//! Documents that need the feature `json-schema`, without the feature: rejected, with the remedy.

use serde_json::json;

use super::{super::Schema, registration::refused, types};

#[test]
fn unsupported_keyword_is_rejected_with_location() {
    let error = Schema::of_input::<types::Patterned>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "input schema uses `pattern` at `#/properties/only_a`; enable the feature `json-schema`"
    );
    for (document, what, at) in [
        (json!({ "properties": { "a": { "if": {} } } }), "`if`", "#/properties/a"),
        (json!({ "items": { "contains": {} } }), "`contains`", "#/items"),
        (json!({ "propertyNames": {} }), "`propertyNames`", "#"),
        (json!({ "dependentRequired": {} }), "`dependentRequired`", "#"),
        (json!({ "unevaluatedItems": false }), "`unevaluatedItems`", "#"),
        (json!({ "multipleOf": 0.5 }), "`multipleOf`", "#"),
        (json!({ "patternProperties": { "^a": {} } }), "`patternProperties`", "#"),
        (json!({ "$id": "http://example.com/a" }), "`$id`", "#"),
        (json!({ "$anchor": "a" }), "`$anchor`", "#"),
        (json!({ "$dynamicRef": "#a" }), "`$dynamicRef`", "#"),
        (json!({ "unheard-of": 1 }), "`unheard-of`", "#"),
    ] {
        refused(&document, &[&format!("output schema uses {what} at `{at}`"), "json-schema"]);
    }
}

#[test]
fn unsupported_dialect_is_rejected() {
    let draft = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
    refused(&draft, &["uses the dialect draft-07 at `#`", "json-schema"]);
    let inner = json!({ "items": { "$schema": "http://json-schema.org/draft-07/schema#" } });
    refused(&inner, &["uses `$schema` at `#/items`"]);
}

#[test]
fn cycle_of_references_is_rejected() {
    let circle = json!({ "$defs": {
        "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "null" }] },
    }, "$ref": "#/$defs/a" });
    refused(&circle, &["a cycle or a long chain of `$ref`"]);
}

#[test]
fn reference_to_data_is_rejected() {
    refused(&json!({ "default": {}, "items": { "$ref": "#/default" } }), &["#/items/$ref"]);
}
