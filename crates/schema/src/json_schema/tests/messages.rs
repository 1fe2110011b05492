//! Messages of violations: the location, the expectation and the value.

use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::to_raw_value};

use super::{super::Schema, types};

#[track_caller]
pub(super) fn check(schema: &Value, text: &str, expected: &str) {
    let schema = Schema::output_from_json(&to_raw_value(schema).unwrap()).unwrap();
    assert_eq!(schema.check(text).unwrap_err().to_string(), expected);
}

/// Checks the message that the caller of a tool sees, from the schema or from serde.
#[track_caller]
fn typed<T: schemars::JsonSchema + DeserializeOwned>(text: &str, expected: &str) {
    let schema = Schema::of_input::<T>().unwrap();
    let violation = match serde_json::from_str::<T>(text) {
        Ok(_) => schema.check_typed(text).unwrap_err(),
        Err(error) => schema.explain(text, &error),
    };
    assert_eq!(violation.to_string(), expected);
}

#[test]
fn violation_in_typed_arguments_names_location_and_expectation() {
    typed::<types::Plain>("[]", "`arguments` must be an object, not []");
    typed::<types::Plain>(
        "{}",
        "`arguments` lacks the required properties `count`, `small`, `name`",
    );
    typed::<types::Plain>(
        r#"{"count":1,"small":1}"#,
        "`arguments` lacks the required property `name`",
    );
    typed::<types::Plain>(
        r#"{"count":"1","small":1,"name":""}"#,
        r#"`/count` must be an integer, not "1""#,
    );
    typed::<types::Plain>(
        r#"{"count":1,"small":300,"name":""}"#,
        "`/small` must be at most 255, not 300",
    );
    typed::<types::Plain>(
        r#"{"count":1.0,"small":3,"name":""}"#,
        "`/count` is not accepted: invalid type: floating point `1.0`, expected i64",
    );
    typed::<types::Plain>(
        r#"{"count":1,"count":2,"small":3,"name":""}"#,
        "`/count` is not accepted: duplicate field `count`",
    );
    typed::<types::Plain>(
        r#"{"count":1,"small":3,"name":"","flag":"yes"}"#,
        r#"`/flag` must be null or a boolean, not "yes""#,
    );
    typed::<types::Bounded>(
        r#"{"pageSize":1,"shortName":"abcd","digits":[1]}"#,
        r#"`/shortName` must have at most 3 characters, but has 4: "abcd""#,
    );
    typed::<types::Bounded>(
        r#"{"pageSize":1,"shortName":"a","digits":[1,77]}"#,
        "`/digits/1` must be at most 9, not 77",
    );
    typed::<types::Recursive>(
        r#"{"name":"a","children":[{"name":"b","next":{"name":"ccc"}}]}"#,
        r#"`/children/0/next/name` must have at most 2 characters, but has 3: "ccc""#,
    );
}

#[test]
fn violation_of_alternatives_names_the_intended_one() {
    let choices = |shape: &str, event: &str, topic: &str| {
        format!(
            r#"{{"mode":"Fast","topic":{topic},"shape":{shape},"loose":"a","event":{event},"by_mode":{{}},"by_number":{{}}}}"#
        )
    };
    let (start, topic) = (r#"{"kind":"start"}"#, r#""one-thing""#);
    typed::<types::Choices>(
        &choices("null", start, r#""nothing""#),
        r#"`/topic` must be one of "one-thing", "other-thing", not "nothing""#,
    );
    typed::<types::Choices>(
        &choices(r#"{"Circle":"wide"}"#, start, topic),
        r#"`/shape/Circle` must be an integer, not "wide""#,
    );
    typed::<types::Choices>(
        &choices("null", r#"{"kind":"stop","reason":7}"#, topic),
        "`/event/reason` must be a string, not 7",
    );
    typed::<types::Choices>(
        &choices("null", r#"{"kind":"stop"}"#, topic),
        "`/event` lacks the required property `reason`",
    );
    typed::<types::Choices>(
        &choices("null", r#"{"kind":"halt"}"#, topic),
        r#"`/event/kind` must be one of "start", "move", "stop", not "halt""#,
    );
    typed::<types::Choices>(
        &choices("null", "{}", topic),
        "`/event` lacks the required property `kind`",
    );
    typed::<types::Choices>(
        &choices(r#""Square""#, start, topic),
        r#"`/shape` must be one of "Nothing", or an object, not "Square""#,
    );
    typed::<types::Choices>(
        &choices(r#"{"Square":1}"#, start, topic),
        r#"`/shape` must have one of `Circle`, `Rectangle`, `Line`, but is {"Square":1}"#,
    );
    typed::<types::Choices>(
        &choices("7", start, topic),
        r#"`/shape` must be a string or an object, not 7"#,
    );
}

#[test]
fn violation_of_each_keyword_names_expectation() {
    check(&json!({ "const": 1 }), "2", "`structuredContent` must be 1, not 2");
    check(&json!({ "exclusiveMinimum": 1 }), "1", "`structuredContent` must be more than 1, not 1");
    check(&json!({ "exclusiveMaximum": 1 }), "1", "`structuredContent` must be less than 1, not 1");
    check(&json!({ "minimum": 1 }), "0", "`structuredContent` must be at least 1, not 0");
    check(&json!({ "multipleOf": 2 }), "3", "`structuredContent` must be a multiple of 2, not 3");
    let closed = json!({ "properties": { "size": {} }, "additionalProperties": false });
    check(
        &json!({ "items": { "$ref": "#/$defs/closed" }, "$defs": { "closed": closed } }),
        r#"[{"sice":1}]"#,
        "`/0` must not have `sice`; it may have `size`",
    );
    check(
        &json!({ "minItems": 1 }),
        "[]",
        "`structuredContent` must have at least 1 item, but has 0: []",
    );
    check(
        &json!({ "maxProperties": 0 }),
        r#"{"a":1}"#,
        r#"`structuredContent` must have at most 0 members, but has 1: {"a":1}"#,
    );
    check(
        &json!({ "uniqueItems": true }),
        "[1,1]",
        "`structuredContent` must not have the same item twice, but is [1,1]",
    );
    check(&json!({ "properties": { "a": false } }), r#"{"a":1}"#, "`/a` must be absent, but is 1");
    check(
        &json!({ "not": { "type": "null" } }),
        "null",
        "`structuredContent` is a value that the schema excludes: null",
    );
    check(
        &json!({ "oneOf": [true, {}] }),
        "1",
        "`structuredContent` matches more than one of its alternatives, but must match only one: 1",
    );
    check(
        &json!({ "anyOf": [{ "minimum": 5 }, { "maximum": 1 }] }),
        "3",
        "`structuredContent` matches none of its 2 alternatives: must be at least 5, not 3; or must be at \
         most 1, not 3",
    );
}

#[test]
fn long_value_is_shortened() {
    let schema = Schema::output_from_json(&to_raw_value(&json!({ "type": "null" })).unwrap());
    let long = format!("\"{}\"", "é".repeat(1000));
    let violation = schema.unwrap().check(&long).unwrap_err();
    assert_eq!(violation.path, "");
    assert_eq!(violation.message, format!("must be null, not \"{}…", "é".repeat(79)));
}

#[test]
fn very_long_text_is_rejected_without_location() {
    let text = format!("[{}]", vec!["\"x\""; 100_000].join(","));
    check(
        &json!({ "anyOf": [{ "items": { "type": "integer" } }, { "type": "null" }] }),
        &text,
        "`structuredContent` violates its schema; with 400001 bytes it is too long to find the place",
    );
    typed::<types::Recursive>(
        &format!(r#"{{"name":"a","children":{text}}}"#),
        "`/children/0` is not accepted: invalid type: string \"x\", expected struct Recursive",
    );
}

#[test]
fn invalid_json_is_a_violation() {
    let schema = Schema::of_input::<types::Bounded>().unwrap();
    for text in ["", "{", "{}x", &"[".repeat(1000), r#"{"pageSize":1e999}"#] {
        schema.check(text).unwrap_err();
        schema.check_typed(text).unwrap_err();
    }
}
