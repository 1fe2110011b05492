//! Documents that need the feature `json-schema`, with the feature.

use serde_json::json;

use super::{
    super::{Schema, limits::MAX_DEPTH},
    messages,
    registration::{refused, register},
    types,
};

#[test]
fn pattern_is_checked_and_reported() {
    messages::check(
        &json!({ "pattern": "^a$" }),
        "\"b\"",
        "`structuredContent` must match the pattern `^a$`, not \"b\"",
    );
    refused(&json!({ "properties": { "a": { "pattern": "(" } } }), &["("]);
    let schema = Schema::of_input::<types::Patterned>().unwrap();
    schema.check_typed(r#"{"only_a":"aa","name":"a"}"#).unwrap();
    schema.check_typed(r#"{"only_a":"b","name":"a"}"#).unwrap_err();
}

#[test]
fn known_dialects_are_applied_and_others_rejected() {
    for dialect in [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema = register(&json!({ "$schema": dialect, "type": "string" })).unwrap();
        schema.check("\"a\"").unwrap();
        schema.check("1").unwrap_err();
    }
    refused(&json!({ "$schema": "http://json-schema.org/draft-04/schema#" }), &["draft-04"]);
    refused(&json!({ "$schema": 7 }), &["unknown dialect `7`"]);
    refused(&json!({ "not": { "$schema": "urn:mine" } }), &["urn:mine", "#/not"]);
    // In draft-07 the siblings of a reference are ignored; in 2020-12 they count.
    let mut document = json!({
        "$ref": "#/definitions/any", "type": "string", "definitions": { "any": true },
    });
    register(&document).unwrap().check("1").unwrap_err();
    document["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    register(&document).unwrap().check("1").unwrap();
}

#[test]
fn schema_nested_too_deep_is_rejected() {
    let nested = |depth| (1..depth).fold(json!(true), |inner, _| json!({ "not": inner }));
    register(&nested(MAX_DEPTH)).unwrap();
    refused(&nested(MAX_DEPTH + 1), &["64 levels", "$defs"]);
}

#[test]
fn cyclic_references_are_accepted() {
    let circle = json!({ "$defs": {
        "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "null" }] },
    }, "$ref": "#/$defs/a" });
    register(&circle).unwrap().check("null").unwrap();
    let chain: serde_json::Map<_, _> = (0..3000)
        .map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) })))
        .chain([("d3000".to_owned(), json!({ "type": "string" }))])
        .collect();
    let chain = register(&json!({ "$defs": chain, "$ref": "#/$defs/d0" })).unwrap();
    chain.check("\"a\"").unwrap();
    chain.check("1").unwrap_err();
}

#[test]
fn format_is_an_annotation() {
    for dialect in
        ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
    {
        let document = json!({ "$schema": dialect, "format": "email", "minLength": 1 });
        register(&document).unwrap().check("\"no address\"").unwrap();
    }
}
