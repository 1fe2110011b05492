//! Documents that the built-in validator covers.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    super::{Schema, subschemas::survey, supported},
    oracle::oracle,
    random::Random,
    types,
};

fn is_valid(document: &Value) -> bool {
    oracle(document).is_ok()
}

fn is_supported(document: &Value) -> bool {
    survey(document).is_ok_and(|survey| supported::check(document, survey).is_ok())
}

#[test]
fn supported_document_is_valid_for_oracle() {
    let mut random = Random::new(11);
    let (mut supported, mut invalid) = (0, 0);
    for _ in 0..2_000 {
        let mut document = json!({
            "$defs": { "a": random.schema(1), "b": random.schema(1), "c": { "type": "integer" } },
            "properties": { "x": random.schema(2) },
        });
        if random.percent(60) {
            random.spoil(&mut document);
        }
        let supports = is_supported(&document);
        if supports || random.percent(20) {
            let valid = is_valid(&document);
            assert!(valid || !supports, "{document}");
            invalid += usize::from(!valid);
        }
        supported += usize::from(supports);
    }
    assert!(supported > 400 && invalid > 50, "one-sided: {supported} supported, {invalid} invalid");
}

#[test]
fn keyword_with_invalid_value_is_not_supported() {
    for wrong in [
        json!(1),
        json!({ "type": "text" }),
        json!({ "type": [] }),
        json!({ "type": ["string", "string"] }),
        json!({ "required": ["a", "a"] }),
        json!({ "required": [1] }),
        json!({ "title": 1 }),
        json!({ "minLength": -1 }),
        json!({ "minimum": "1" }),
        json!({ "anyOf": [] }),
        json!({ "anyOf": [1] }),
        json!({ "items": [true] }),
        json!({ "properties": { "a": 1 } }),
        json!({ "properties": { "a": [] } }),
        json!({ "$defs": { "a": [] } }),
        json!({ "prefixItems": [[]] }),
        json!({ "additionalProperties": [] }),
        json!({ "items": { "type": "text" } }),
        json!({ "properties": [] }),
        json!({ "enum": 1 }),
        json!({ "uniqueItems": 1 }),
        json!({ "pattern": "(" }),
        json!({ "$ref": "#/$defs/a" }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": 1 } }),
    ] {
        assert!(!is_supported(&wrong), "{wrong}");
        assert!(!is_valid(&wrong), "{wrong}");
    }
}

#[track_caller]
fn is_seen<T: JsonSchema + DeserializeOwned>() {
    let schema = Schema::of_input::<T>().unwrap();
    let document = serde_json::from_str(schema.text().get()).unwrap();
    assert!(is_supported(&document), "{document}");
}

#[test]
fn generated_schema_is_supported() {
    is_seen::<types::Plain>();
    is_seen::<types::Nested>();
    is_seen::<types::Recursive>();
    is_seen::<types::Expression>();
    is_seen::<types::Bounded>();
    is_seen::<types::Choices>();
    is_seen::<types::Flattened>();
    is_seen::<types::Strict>();
    is_seen::<types::Detail>();
    is_seen::<types::Treacherous>();
}
