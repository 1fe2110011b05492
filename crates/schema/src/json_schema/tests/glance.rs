//! What is valid at a glance is valid.

use jsonschema::Draft;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    super::{Schema, glance::is_valid_at_a_glance, options::options},
    random::Random,
    types,
};

fn is_valid(document: &Value) -> bool {
    options(Draft::Draft202012).build(document).is_ok()
}

#[test]
fn what_is_valid_at_a_glance_is_valid_to_the_oracle() {
    let mut random = Random::new(11);
    let (mut glances, mut invalid) = (0, 0);
    for _ in 0..2_000 {
        let mut document = json!({
            "$defs": { "a": random.schema(1), "b": random.schema(1), "c": { "type": "integer" } },
            "properties": { "x": random.schema(2) },
        });
        if random.percent(60) {
            random.spoil(&mut document);
        }
        let glance = is_valid_at_a_glance(&document);
        if glance || random.percent(20) {
            let valid = is_valid(&document);
            assert!(valid || !glance, "{document}");
            invalid += usize::from(!valid);
        }
        glances += usize::from(glance);
    }
    assert!(glances > 400 && invalid > 50, "one-sided: {glances} at a glance, {invalid} invalid");
}

#[test]
fn keywords_that_are_used_wrongly_are_seen() {
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
        assert!(!is_valid_at_a_glance(&wrong), "{wrong}");
        assert!(!is_valid(&wrong), "{wrong}");
    }
}

#[track_caller]
fn is_seen<T: JsonSchema + DeserializeOwned>() {
    let schema = Schema::of_input::<T>().unwrap();
    let document = serde_json::from_str(schema.text().get()).unwrap();
    assert!(is_valid_at_a_glance(&document), "{document}");
}

#[test]
fn usual_types_are_valid_at_a_glance() {
    is_seen::<types::Plain>();
    is_seen::<types::Nested>();
    is_seen::<types::Recursive>();
    is_seen::<types::Expression>();
}
