//! Types that `#[derive(Form)]` accepts.

use std::collections::{BTreeSet, HashSet};

use outlive::{
    Form,
    server::forms::{Choice, Form as IsForm, FormField},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize, JsonSchema, Form, PartialEq)]
struct Approval {
    /// Whether to go on.
    yes: bool,
    #[schemars(title = "Why?", length(max = 200))]
    reason: Option<String>,
    size: Size,
    colours: Vec<Colour>,
    others: BTreeSet<Colour>,
    others_again: Option<HashSet<Colour>>,
    #[serde(default, rename = "howOften")]
    how_often: u8,
    ratio: f64,
    #[serde(flatten)]
    place: Place,
    #[schemars(with = "Option<String>")]
    #[serde(default, deserialize_with = "letters")]
    letters: Letters,
    #[schemars(schema_with = "text")]
    #[serde(default, deserialize_with = "letters")]
    more_letters: Letters,
    #[serde(skip)]
    private: Letters,
}

#[derive(Debug, Deserialize, JsonSchema, Form, PartialEq)]
struct Place {
    city: String,
}

#[derive(Debug, Deserialize, JsonSchema, Form, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema, Form, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Colour {
    /// Like roses
    Red,
    #[schemars(title = "Like violets")]
    Blue,
}

#[derive(Debug, Deserialize, JsonSchema, Form, PartialEq)]
struct Nothing {}

/// Not a form field without its attributes.
#[derive(Debug, Default, PartialEq)]
struct Letters(Vec<char>);

fn letters<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Letters, D::Error> {
    Ok(Letters(String::deserialize(deserializer)?.chars().collect()))
}

fn text(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    String::json_schema(generator)
}

fn is_form<T: IsForm>() {}

fn is_choice<T: Choice>() {}

fn is_field<T: FormField>() {}

#[test]
fn derived_struct_is_form_and_derived_enum_is_choice() {
    is_form::<Approval>();
    is_form::<Place>();
    is_form::<Nothing>();
    is_choice::<Size>();
    is_field::<Size>();
    is_field::<Option<Vec<Colour>>>();
}

#[test]
fn derived_form_deserializes_from_json() {
    let answer = json!({
        "yes": true,
        "size": "large",
        "colours": ["Red"],
        "others": [],
        "ratio": 0.5,
        "city": "Rome",
        "letters": "ab",
    });
    let approval: Approval = serde_json::from_value(answer).unwrap();
    assert_eq!(approval.size, Size::Large);
    assert_eq!(approval.colours, [Colour::Red]);
    assert_eq!(approval.place, Place { city: "Rome".into() });
    assert_eq!(approval.letters, Letters(vec!['a', 'b']));
}
