//! Registration of schemas, and the errors for rejected ones.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    super::{Schema, limits::MAX_SUBSCHEMAS},
    types,
};

pub(super) fn register(document: &Value) -> Result<Schema, String> {
    Schema::output_from_json(&to_raw_value(document).unwrap()).map_err(|error| error.to_string())
}

/// Checks that the error for a document contains each of `said`.
#[track_caller]
pub(super) fn refused(document: &Value, said: &[&str]) {
    let error = register(document).unwrap_err();
    for part in said {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn reference_outside_of_document_is_rejected() {
    for target in ["https://example.com/s.json", "other.json#/a", "/a", "urn:x:y", "file:///etc"] {
        refused(&json!({ "$ref": target }), &[target, "`#`", "$defs"]);
        refused(
            &json!({ "properties": { "a/b": { "items": { "$ref": target } } } }),
            &[target, "#/properties/a~1b/items"],
        );
    }
    refused(&json!({ "allOf": [{ "$dynamicRef": "x#y" }] }), &["x#y", "#/allOf/0"]);
    refused(&json!({ "$ref": "#/$defs/missing" }), &["missing"]);
}

#[test]
fn data_that_looks_like_a_reference_is_accepted() {
    register(&json!({ "properties": { "$ref": { "type": "string" } } })).unwrap();
    register(&json!({ "const": { "$ref": "https://example.com" } })).unwrap();
    register(&json!({ "default": { "$ref": "x" }, "examples": [{ "$ref": "x" }] })).unwrap();
    register(&json!({ "enum": [{ "$schema": "x" }] })).unwrap();
}

#[test]
fn invalid_schema_is_rejected_with_location() {
    refused(&json!({ "type": "strnig" }), &["#/type", "strnig"]);
    refused(&json!({ "properties": { "a": { "minLength": -1 } } }), &["#/properties/a/minLength"]);
    refused(&json!([]), &["invalid"]);
}

#[test]
fn hand_written_text_is_kept_unchanged() {
    let text = "{ \"type\":\"object\",\n \"x-mine\": 1.50 }";
    let raw = serde_json::from_str(text).unwrap();
    assert_eq!(Schema::input_from_json(raw).unwrap().text().get(), text);
}

#[track_caller]
fn input_text<T: JsonSchema + DeserializeOwned>(expected: &Value) {
    let schema = Schema::of_input::<T>().unwrap();
    assert_eq!(serde_json::from_str::<Value>(schema.text().get()).unwrap(), *expected);
}

#[test]
fn input_that_is_not_an_object_is_rejected() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing;
    #[derive(Deserialize, JsonSchema)]
    #[schemars(title = "Chosen", extend("x-mcp" = 1))]
    struct Titled {}

    let nothing = json!({ "type": "object", "additionalProperties": false });
    input_text::<()>(&nothing);
    input_text::<Nothing>(&nothing);
    input_text::<Value>(&json!({ "type": "object" }));
    input_text::<Titled>(&json!({ "type": "object", "title": "Chosen", "x-mcp": 1 }));
    input_text::<HashMap<String, bool>>(
        &json!({ "type": "object", "additionalProperties": { "type": "boolean" } }),
    );
    let event = Schema::of_input::<types::Event>().unwrap();
    event.check_typed(r#"{"kind":"move","x":1}"#).unwrap();
    event.check_typed(r#"{"kind":"move"}"#).unwrap_err();

    for (error, said) in [
        (Schema::of_input::<String>().unwrap_err(), "`string` can be \"string\""),
        (Schema::of_input::<Vec<u8>>().unwrap_err(), "can be \"array\""),
        (Schema::of_input::<types::Shape>().unwrap_err(), "`Shape` can be something else"),
        (Schema::of_input::<Option<types::Point>>().unwrap_err(), "make it a field of a struct"),
        (Schema::input_from_json(&to_raw_value(&json!({})).unwrap()).unwrap_err(), "inputSchema"),
    ] {
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn output_schema_describes_serialization() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Report {
        #[serde(default)]
        always_written: u8,
    }
    let input: Value =
        serde_json::from_str(Schema::of_input::<Report>().unwrap().text().get()).unwrap();
    assert_eq!(input.get("required"), None);
    let output = Schema::of_output::<Report>().unwrap();
    output.check("{}").unwrap_err();
    output.check(&serde_json::to_string(&Report { always_written: 1 }).unwrap()).unwrap();
    Schema::of_output::<Vec<u8>>().unwrap().check("[1]").unwrap();
}

#[test]
fn schema_with_too_many_subschemas_is_rejected() {
    let wide = |count| json!({ "allOf": vec![json!({}); count] });
    register(&wide(MAX_SUBSCHEMAS - 1)).unwrap();
    refused(&wide(MAX_SUBSCHEMAS), &["4096 subschemas"]);
}

#[test]
fn input_properties_have_declaration_order() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Order {
        zebra: String,
        apple: Option<u8>,
        #[serde(rename = "type")]
        kind: Inner,
        mango: bool,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Inner {
        z: u8,
        a: u8,
    }
    let schema = Schema::of_input::<Order>().unwrap();
    let text = schema.text().get();
    let place = |name: &str| text.find(&format!("\"{name}\":{{")).unwrap();
    assert!(["zebra", "apple", "type", "mango"].map(place).is_sorted(), "{text}");
    // In a nested type the order is known only if every field is required.
    assert!(["z", "a"].map(place).is_sorted(), "{text}");
}

#[test]
fn output_properties_have_declaration_order() {
    #[derive(Serialize, JsonSchema)]
    struct Report {
        zebra: String,
        apple: Option<u8>,
    }
    let schema = Schema::of_output::<Report>().unwrap();
    let text = schema.text().get();
    assert!(text.find("\"zebra\":{") < text.find("\"apple\":{"), "{text}");
}
