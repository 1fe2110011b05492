//! Compares verdicts with `jsonschema`, the oracle, on generated values and schemas.

use jsonschema::{Draft, Validator};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::to_raw_value};

use super::{
    super::{
        Schema, SchemaError, compile::compile, dialect::Dialect, evidence, subschemas::survey, walk,
    },
    random::Random,
    types,
};

/// Number of each verdict.
#[derive(Debug, Default)]
struct Tally {
    accepted: usize,
    refused: usize,
}

impl Tally {
    fn count(&mut self, accepted: bool) {
        *(if accepted { &mut self.accepted } else { &mut self.refused }) += 1;
    }

    #[track_caller]
    fn assert_balanced(&self) {
        let least = self.accepted.min(self.refused);
        assert!(least * 5 > self.accepted + self.refused, "one-sided: {self:?}");
    }
}

fn document(schema: &Schema) -> Value {
    serde_json::from_str(schema.text().get()).unwrap()
}

/// Compiles a document with `jsonschema`. Returns an error if the document is not a valid schema.
pub(super) fn oracle(document: &Value) -> Result<Validator, String> {
    let draft = match Dialect::of("", document) {
        Ok(Dialect::V2020_12) => Draft::Draft202012,
        Ok(Dialect::V2019_09) => Draft::Draft201909,
        Ok(Dialect::Draft7) => Draft::Draft7,
        Err(error) => return Err(error.to_string()),
    };
    let options = jsonschema::options().with_draft(draft).should_validate_formats(false);
    options.build(document).map_err(|error| error.to_string())
}

/// Returns a schema, or `None` if it needs the disabled feature `json-schema`.
#[track_caller]
pub(super) fn registered(document: &Value) -> Option<Schema> {
    match Schema::output_from_json(&to_raw_value(document).unwrap()) {
        Ok(schema) => Some(schema),
        Err(SchemaError::Unsupported { .. }) if !cfg!(feature = "json-schema") => None,
        Err(error) => panic!("{error}: {document}"),
    }
}

/// Compares the verdicts on generated arguments of one type.
fn compare<T: JsonSchema + DeserializeOwned>(cases: usize, tally: &mut Tally) {
    let schema = Schema::of_input::<T>().unwrap();
    let document = document(&schema);
    let oracle = oracle(&document).unwrap();
    let mut random = Random::new(T::schema_name().len() as u64);
    for _ in 0..cases {
        let mut value = random.fitting(&document, &document, 3);
        if random.percent(55) {
            random.spoil(&mut value);
        }
        let mut text = String::new();
        random.write(&value, &mut text);

        let allowed = oracle.is_valid(&serde_json::from_str(&text).unwrap());
        let deserialised = serde_json::from_str::<T>(&text).is_ok();
        assert_eq!(schema.check(&text).is_ok(), allowed, "check of {text} for {document}");
        let ours = deserialised && schema.check_typed(&text).is_ok();
        assert_eq!(ours, deserialised && allowed, "check_typed of {text} for {document}");
        tally.count(ours);
    }
}

#[test]
fn verdicts_on_ten_thousand_arguments_equal_oracle() {
    let mut tally = Tally::default();
    compare::<types::Plain>(1500, &mut tally);
    compare::<types::Bounded>(2000, &mut tally);
    compare::<types::Nested>(1500, &mut tally);
    compare::<types::Choices>(1500, &mut tally);
    compare::<types::Recursive>(1000, &mut tally);
    compare::<types::Expression>(1000, &mut tally);
    compare::<types::Flattened>(500, &mut tally);
    compare::<types::Treacherous>(1000, &mut tally);
    compare::<types::Strict>(1000, &mut tally);
    compare::<types::Detail>(1000, &mut tally);
    tally.assert_balanced();
}

#[test]
fn verdicts_on_random_schemas_equal_oracle() {
    let mut random = Random::new(7);
    let (mut tally, mut registrations) = (Tally::default(), 0);
    for _ in 0..1000 {
        let document = json!({
            "$defs": { "a": random.schema(2), "b": random.schema(2), "c": { "type": "integer" } },
            "properties": { "x": random.schema(3), "a": random.schema(2) },
            "items": random.schema(2),
            "title": "x",
        });
        let Some(schema) = registered(&document) else { continue };
        registrations += 1;
        let oracle = oracle(&document).unwrap();
        for _ in 0..15 {
            let mut value = random.fitting(
                &json!({ "type": "object", "properties": document["properties"] }),
                &document,
                3,
            );
            if random.percent(40) {
                random.spoil(&mut value);
            }
            let mut text = String::new();
            random.write(&value, &mut text);
            let allowed = oracle.is_valid(&serde_json::from_str(&text).unwrap());
            assert_eq!(schema.check(&text).is_ok(), allowed, "check of {text} for {document}");
            tally.count(allowed);
        }
    }
    assert!(registrations > 250, "{registrations} documents");
    tally.assert_balanced();
}

/// Returns whether the tree walk alone accepts a text.
#[track_caller]
fn walked<T: JsonSchema + DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<T>(text).unwrap();
    let document = document(&Schema::of_input::<T>().unwrap());
    walk::fits(&compile(&document, survey(&document).unwrap()), text)
}

#[test]
fn usual_arguments_are_decided_by_tree_walk() {
    assert!(walked::<types::Plain>(r#"{"count":1,"small":2,"name":"a","flag":null}"#));
    assert!(walked::<types::Bounded>(
        r#"{"pageSize":5,"factor":0.5,"shortName":"é☃","digits":[1,2],"even":4}"#
    ));
    assert!(walked::<types::Recursive>(
        r#"{"name":"a","children":[{"name":"b","next":null}],"next":{"name":"c"}}"#
    ));
    assert!(walked::<types::Expression>(r#"{"root":{"Sum":["Zero",{"Negated":{"Number":1}}]}}"#));
    assert!(walked::<types::Nested>(
        r#"{"first":{"count":1,"small":2,"name":"a"},"rest":[{"x":1}],"maybe":{"x":1,"y":null},
            "by_name":{"a":{"x":1}},"pair":[1,"a"],"three":[1,2,3],"anything":[{}],"unit":null,
            "letter":"é"}"#
    ));
}

#[test]
fn doubt_is_settled_by_validator() {
    // The tree does not cover tagged enums and maps with integer keys.
    let text = r#"{"mode":"Fast","topic":"one-thing","shape":{"Line":[1,2]},"loose":[1],
        "event":{"kind":"move","x":1},"by_mode":{"Slow":1},"by_number":{"7":true}}"#;
    assert!(!walked::<types::Choices>(text));
    Schema::of_input::<types::Choices>().unwrap().check_typed(text).unwrap();
    // The last of duplicate members counts, and `1.0` is an integer.
    for text in [r#"{"x":"no","x":1}"#, r#"{"x":1.0}"#] {
        Schema::of_input::<types::Point>().unwrap().check(text).unwrap();
    }
}

#[track_caller]
fn suffices<T: JsonSchema + DeserializeOwned>() -> bool {
    evidence::deserialising_suffices::<T>(&document(&Schema::of_input::<T>().unwrap()))
}

#[test]
fn flat_type_needs_only_deserialization() {
    assert!(suffices::<types::Plain>());
    assert!(suffices::<types::Point>());
    let schema = Schema::of_input::<types::Point>().unwrap();
    // Checks the first byte only.
    schema.check_typed(" { nonsense").unwrap();
    assert!(serde_json::from_str::<types::Point>("[1,null]").is_ok());
    schema.check_typed("[1,null]").unwrap_err();
}

#[test]
fn type_that_deserializes_unlike_its_schema_is_checked() {
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Alias {
        #[serde(alias = "nick")]
        name: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Required {
        #[schemars(required)]
        name: Option<String>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[schemars(extend("required" = ["name"]))]
    #[expect(dead_code, reason = "only its shape matters")]
    struct RequiredDefault {
        #[serde(default)]
        name: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Borrowed {
        #[schemars(with = "u8")]
        number: i64,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct NeverNull {
        #[schemars(with = "String")]
        #[serde(default)]
        name: Option<String>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[schemars(extend("additionalProperties" = false))]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Closed {
        name: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Lenient {
        #[serde(deserialize_with = "rounded")]
        number: i64,
    }
    fn rounded<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        struct Rounding;
        impl serde::de::Visitor<'_> for Rounding {
            type Value = i64;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_f64<E>(self, value: f64) -> Result<i64, E> {
                Ok(value as i64)
            }
            fn visit_u64<E>(self, value: u64) -> Result<i64, E> {
                Ok(value as i64)
            }
        }
        deserializer.deserialize_i64(Rounding)
    }
    assert!(!suffices::<Alias>());
    assert!(!suffices::<Required>());
    assert!(!suffices::<RequiredDefault>());
    assert!(!suffices::<Borrowed>());
    assert!(!suffices::<NeverNull>());
    assert!(!suffices::<Closed>());
    assert!(!suffices::<Lenient>());
    assert!(!suffices::<types::Treacherous>());
    assert!(!suffices::<types::Bounded>());
    assert!(!suffices::<types::Nested>());
}
