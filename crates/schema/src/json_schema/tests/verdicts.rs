//! Verdicts that are easy to get wrong.

use serde_json::{Value, json};

use super::oracle::{oracle, registered};

/// Checks the verdict on each text, and that the oracle agrees.
#[track_caller]
fn check(document: &Value, fit: &[&str], unfit: &[&str]) {
    let oracle = oracle(document).unwrap();
    let Some(schema) = registered(document) else { return };
    for (texts, expected) in [(fit, true), (unfit, false)] {
        for text in texts {
            assert_eq!(schema.check(text).is_ok(), expected, "{text} for {document}");
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(oracle.is_valid(&value), expected, "the oracle on {text} for {document}");
        }
    }
}

#[test]
fn numbers_are_compared_exactly() {
    check(
        &json!({ "maximum": 9_007_199_254_740_992.0 }),
        &["9007199254740992", "9007199254740992.0", "-1e300", "\"text\""],
        &["9007199254740993", "1e300", "18446744073709551615"],
    );
    check(
        &json!({ "exclusiveMinimum": 9_007_199_254_740_992_i64, "type": "integer" }),
        &["9007199254740993", "9007199254740994.0", "18446744073709551615", "1e20"],
        &["9007199254740992", "9007199254740992.0", "0.5"],
    );
    check(&json!({ "multipleOf": 3 }), &["0", "-9", "9.0", "null"], &["1", "0.5", "9.5"]);
    check(&json!({ "multipleOf": 0.1 }), &["1", "0.3", "4.35e1"], &["0.35"]);
    check(&json!({ "type": "integer" }), &["1", "1.0", "-0", "1e3", "1e300"], &["1.5", "\"1\""]);
    check(
        &json!({ "enum": [1, "a", [2], { "b": 3 }, null, false] }),
        &["1", "1.0", "\"a\"", "[2]", "[2.0]", "{\"b\":3}", "null", "false"],
        &["2", "\"b\"", "[3]", "{}", "true"],
    );
}

#[test]
fn string_length_counts_code_points() {
    check(
        &json!({ "minLength": 2, "maxLength": 3 }),
        &["\"éé\"", "\"☃☃☃\"", "\"\\u0061b\"", "7"],
        &["\"é\"", "\"aaaa\"", "\"\\ud83d\\ude00\""],
    );
}

#[test]
fn alternatives_accept_values_of_allowed_branches_only() {
    check(&json!({ "oneOf": [{ "const": "a" }, { "const": "a" }] }), &[], &["\"a\"", "\"b\""]);
    let variant = |name: &str, open: bool| {
        json!({
            "type": "object", "properties": { name: { "type": "integer" } },
            "required": [name], "additionalProperties": open,
        })
    };
    check(
        &json!({ "oneOf": [variant("a", false), variant("b", false), { "enum": ["c"] }] }),
        &["{\"a\":1}", "{\"b\":1}", "\"c\"", "{\"a\":\"x\",\"a\":1}"],
        &["{\"a\":1,\"b\":1}", "{}", "{\"c\":1}", "\"a\"", "{\"a\":1,\"a\":\"x\"}"],
    );
    check(
        &json!({ "oneOf": [variant("a", true), variant("b", true)] }),
        &["{\"a\":1,\"c\":1}", "{\"b\":1}"],
        &["{\"a\":1,\"b\":1}", "{}"],
    );
    let two = json!({
        "type": "object", "properties": { "a": {}, "b": {} },
        "required": ["a", "b"], "additionalProperties": false,
    });
    check(
        &json!({ "anyOf": [two, { "type": "null" }] }),
        &["{\"a\":1,\"b\":1}", "null"],
        &["{\"a\":1}"],
    );
    check(
        &json!({ "anyOf": [{ "type": "integer" }, { "type": "number", "maximum": 1 }] }),
        &["7", "0.5", "7.0"],
        &["7.5", "\"7\""],
    );
    check(
        &json!({ "type": ["object", "null"], "oneOf": [{ "type": "string" }, { "type": "null" }] }),
        &["null"],
        &["\"a\"", "{}"],
    );
}

#[test]
fn references_keep_their_base() {
    check(
        &json!({
            "$ref": "#/$defs/inner/properties/v",
            "$defs": {
                "inner": {
                    "$id": "http://example.com/inner",
                    "$defs": { "t": { "type": "string" } },
                    "properties": { "v": { "$ref": "#/$defs/t" } },
                },
                "t": { "type": "integer" },
            },
        }),
        &["\"a\""],
        &["1"],
    );
    check(
        &json!({ "$ref": "#/$defs/a%25b", "$defs": { "a%b": { "type": "null" }, "a%25b": true } }),
        &["null"],
        &["1"],
    );
    check(
        &json!({ "$ref": "#name", "$defs": { "a": { "$anchor": "name", "type": "null" } } }),
        &["null"],
        &["1"],
    );
}

#[test]
fn more_than_64_required_members_are_checked() {
    let names: Vec<String> = (0..70).map(|n| format!("m{n}")).collect();
    let whole: Value = names.iter().map(|name| (name.clone(), Value::Null)).collect();
    let mut part = whole.clone();
    part.as_object_mut().unwrap().remove("m69");
    for count in [64, 70] {
        let document = json!({ "required": names[70 - count..] });
        check(&document, &[&whole.to_string()], &[&part.to_string(), "{}"]);
    }
}
