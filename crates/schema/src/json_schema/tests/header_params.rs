//! `x-mcp-header` annotations: accepted and rejected ones.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{HeaderKind, HeaderParam, Schema, header_params};

#[track_caller]
fn refused(schema: &Value, said: &[&str]) {
    let error = header_params(schema).unwrap_err().to_string();
    for part in said {
        assert!(error.contains(part), "{error}");
    }
}

fn on_property(property: &Value) -> Value {
    json!({ "type": "object", "properties": { "p": property } })
}

#[test]
fn annotated_properties_are_found_at_any_depth() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "plain": { "type": "string" },
        "options": { "type": "object", "properties": {
            "limit": { "type": "integer", "x-mcp-header": "Method" },
            "x-mcp-header": { "type": "boolean", "x-mcp-header": "d!#$%&'*+.^_`|~ry" },
        } },
    } });
    let found = |header: &str, path: &[&str], kind| HeaderParam {
        header: header.to_owned(),
        path: path.iter().map(|&name| name.to_owned()).collect(),
        kind,
    };
    // In document order, or alphabetical if `serde_json` does not preserve it.
    let mut params = header_params(&schema).unwrap();
    params.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(
        params,
        [
            found("Method", &["options", "limit"], HeaderKind::Integer),
            found("d!#$%&'*+.^_`|~ry", &["options", "x-mcp-header"], HeaderKind::Boolean),
            found("Region", &["region"], HeaderKind::String),
        ]
    );
}

#[test]
fn header_name_that_is_not_a_token_is_rejected() {
    for name in ["", "a b", "a:b", "naïve", "a\r\nb", "a\tb", "(a)", "a\u{7f}", "a/b"] {
        refused(
            &on_property(&json!({ "type": "string", "x-mcp-header": name })),
            &["#/properties/p"],
        );
    }
    for name in [json!(null), json!(7), json!(["a"])] {
        refused(
            &on_property(&json!({ "type": "string", "x-mcp-header": name })),
            &["must be a string", "#/properties/p"],
        );
    }
}

#[test]
fn header_on_unsupported_type_is_rejected() {
    for kind in [
        json!("number"),
        json!("array"),
        json!("object"),
        json!("null"),
        json!(["string", "null"]),
        json!(["string"]),
    ] {
        refused(
            &on_property(&json!({ "type": kind, "x-mcp-header": "A" })),
            &["`A`", "needs the type", &kind.to_string(), "#/properties/p"],
        );
    }
    refused(&on_property(&json!({ "x-mcp-header": "A" })), &["the type is missing"]);
    refused(
        &on_property(&json!({ "$ref": "#/$defs/a", "x-mcp-header": "A" })),
        &["the type is missing"],
    );
}

#[test]
fn duplicate_header_name_in_other_case_is_rejected() {
    let schema = json!({ "properties": {
        "a": { "type": "string", "x-mcp-header": "Region" },
        "b": { "properties": { "c": { "type": "string", "x-mcp-header": "REGION" } } },
    } });
    refused(&schema, &["`REGION`", "`a` already has", "#/properties/b/properties/c"]);
}

#[test]
fn header_not_reached_through_properties_is_rejected() {
    let annotated = json!({ "type": "string", "x-mcp-header": "A" });
    for keyword in [
        "items",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
        "additionalItems",
    ] {
        refused(&on_property(&json!({ keyword: annotated })), &["properties` alone", keyword]);
        let inner = json!({ "properties": { "q": annotated } });
        refused(&on_property(&json!({ keyword: inner })), &["properties` alone", keyword]);
    }
    for keyword in ["allOf", "anyOf", "oneOf", "prefixItems", "items"] {
        refused(&json!({ keyword: [{ "properties": { "q": annotated } }] }), &[keyword, "`A`"]);
    }
    for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
        refused(&json!({ keyword: { "q": annotated } }), &[keyword, "`A`"]);
    }
    refused(&annotated, &["`#`", "`A`"]);
    refused(&on_property(&json!({ "x-mine": { "deep": [annotated] } })), &["x-mine", "remove it"]);
}

#[test]
fn header_annotation_inside_data_is_ignored() {
    let data = json!({ "x-mcp-header": "A" });
    for keyword in ["const", "default"] {
        assert_eq!(header_params(&on_property(&json!({ keyword: data }))).unwrap(), []);
    }
    for keyword in ["enum", "examples"] {
        assert_eq!(header_params(&on_property(&json!({ keyword: [data] }))).unwrap(), []);
    }
}

#[test]
fn type_with_invalid_header_is_rejected_at_registration() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Good {
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: String,
        #[schemars(with = "String", extend("x-mcp-header" = "Zone"))]
        #[serde(default)]
        zone: Option<String>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Bad {
        #[schemars(extend("x-mcp-header" = "Zone"))]
        zone: Option<String>,
    }
    assert_eq!(Schema::of_input::<Good>().unwrap().headers().len(), 2);
    let error = Schema::of_input::<Bad>().unwrap_err().to_string();
    assert!(error.contains("#/properties/zone") && error.contains("schemars(with"), "{error}");
    Schema::of_output::<Bad>().unwrap();
}
