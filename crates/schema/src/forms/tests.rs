//! Tests of the conversion of types to forms, and of the validation of responses.

use std::collections::BTreeSet;

use outlive_wire::RequestedSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FormError, check, convert};
use crate::field_order::declared_fields;

#[track_caller]
fn check_form<T: JsonSchema>(expected: &Value) {
    let form = convert::form::<T>(&[]).unwrap();
    assert_eq!(serde_json::to_value(&form).unwrap(), *expected);
}

#[track_caller]
fn check_refused<T: JsonSchema>(expected: &str) {
    assert_eq!(convert::form::<T>(&[]).unwrap_err(), FormError(expected.to_owned()));
}

// ELIC-04, ELIC-05, ELIC-06
#[test]
fn strings_numbers_and_booleans_keep_their_keywords() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Plain {
        /// Where to write.
        #[schemars(email, title = "E-mail")]
        contact: String,
        #[schemars(length(min = 2, max = 5))]
        code: Option<String>,
        #[schemars(range(min = 1, max = 9))]
        count: i32,
        #[schemars(range(min = 0.5))]
        share: f64,
        #[serde(default = "yes")]
        sure: bool,
        #[schemars(url)]
        page: Option<String>,
        tiny: u8,
    }
    fn yes() -> bool {
        true
    }
    check_form::<Plain>(&json!({
        "type": "object",
        "properties": {
            "contact": {
                "type": "string", "title": "E-mail", "description": "Where to write.", "format": "email",
            },
            "code": {"type": "string", "minLength": 2, "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "share": {"type": "number", "minimum": 0.5},
            "sure": {"type": "boolean", "default": true},
            "page": {"type": "string", "format": "uri"},
            "tiny": {"type": "integer", "minimum": 0, "maximum": 255},
        },
        "required": ["contact", "count", "share", "tiny"],
    }));
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Size {
    Small,
    Large,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    /// Like the sky
    Blue,
    #[schemars(title = "Like grass")]
    Green,
    Grey,
}

// ELIC-07, ELIC-08, ELIC-10
#[test]
fn enums_become_single_and_multi_selects_with_and_without_titles() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Choices {
        size: Size,
        #[serde(default = "large")]
        size_or_not: Option<Size>,
        colour: Colour,
        #[schemars(length(min = 1, max = 2))]
        sizes: Vec<Size>,
        colours: BTreeSet<Colour>,
        #[serde(default = "grey")]
        favourites: Vec<Colour>,
    }
    fn large() -> Option<Size> {
        Some(Size::Large)
    }
    fn grey() -> Vec<Colour> {
        vec![Colour::Grey]
    }
    let titled = json!([
        {"const": "blue", "title": "Like the sky"},
        {"const": "green", "title": "Like grass"},
        {"const": "grey", "title": "grey"},
    ]);
    let form =
        serde_json::to_value(convert::form::<Choices>(declared_fields::<Choices>()).unwrap())
            .unwrap();
    let fields = &form["properties"];
    assert_eq!(fields["size"], json!({"type": "string", "enum": ["Small", "Large"]}));
    assert_eq!(
        fields["size_or_not"],
        json!({"type": "string", "enum": ["Small", "Large"], "default": "Large"})
    );
    assert_eq!(sorted(&fields["colour"]["oneOf"]), sorted(&titled));
    assert_eq!(
        fields["sizes"],
        json!({
            "type": "array", "minItems": 1, "maxItems": 2,
            "items": {"type": "string", "enum": ["Small", "Large"]},
        })
    );
    assert_eq!(sorted(&fields["colours"]["items"]["anyOf"]), sorted(&titled));
    assert_eq!(fields["favourites"]["default"], json!(["grey"]));
    assert_eq!(form["required"], json!(["size", "colour", "sizes", "colours"]));
}

fn sorted(options: &Value) -> Vec<String> {
    let mut options: Vec<String> =
        options.as_array().unwrap().iter().map(Value::to_string).collect();
    options.sort();
    options
}

#[test]
fn unsupported_field_is_rejected_with_its_name() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Address {
        street: String,
    }
    macro_rules! refused {
        ($type:ty, $message:expr) => {{
            refused!(
                #[schemars()]
                $type,
                $message
            )
        }};
        (#[$attribute:meta] $type:ty, $message:expr) => {{
            #[derive(Deserialize, JsonSchema)]
            #[expect(dead_code, reason = "only its schema is used")]
            struct Bad {
                #[$attribute]
                field: $type,
            }
            check_refused::<Bad>($message);
        }};
    }
    refused!(Address, "the field `field` is an object; a form is flat, so make its members fields");
    refused!(Vec<String>, "the field `field` is a list without choices; use a list of an enum");
    refused!(Value, "the field `field` accepts any value; give it a type");
    refused!(
        #[schemars(regex(pattern = "a+"))]
        String,
        "the field `field` has a `pattern`, which forms do not support; remove it and check the value in the handler"
    );
    refused!(
        #[schemars(extend("format" = "hostname"))]
        String,
        "the field `field` has the format `hostname`; forms support email, uri, date and date-time"
    );
    refused!(
        #[schemars(extend("exclusiveMinimum" = 0.5))]
        f64,
        "the field `field` has an `exclusiveMinimum`; use `minimum`"
    );
    refused!(
        #[schemars(extend("minLength" = -1))]
        String,
        "the field `field` has an invalid `minLength`: invalid value: integer `-1`, expected u64"
    );
    refused!(
        #[schemars(extend("enum" = ["a"], "default" = "b"))]
        String,
        "the field `field` has an invalid default; it must be one of a"
    );
    refused!(
        #[schemars(length(min = 1), extend("default" = ""))]
        String,
        "the field `field` has an invalid default; it must have at least 1 characters"
    );
    refused!(
        #[schemars(extend("items" = {"type": "string", "enum": ["a"], "pattern": "a"}))]
        Vec<Size>,
        "the field `field` has a `pattern`, which forms do not support; remove it and check the value in the handler"
    );
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Internal {
        #[serde(skip)]
        Hidden,
    }
    let nothing = "the field `field` has no choices; give its type a variant that clients can send";
    refused!(Internal, nothing);
    refused!(Vec<Internal>, nothing);
    check_refused::<String>(
        "`string` is not a struct with fields; only such a struct can be a form",
    );
}

#[test]
fn unsupported_keyword_of_form_is_rejected() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(extend("minProperties" = 1))]
    #[expect(dead_code, reason = "only its schema is used")]
    struct AtLeastOne {
        text: Option<String>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Contact {
        Phone(String),
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Flattened {
        #[serde(flatten)]
        contact: Contact,
    }
    let expected = |name: &str, keyword: &str| {
        format!(
            "`{name}` has a `{keyword}`, which forms do not support; remove it and check the value in the handler"
        )
    };
    check_refused::<AtLeastOne>(&expected("AtLeastOne", "minProperties"));
    check_refused::<Flattened>(&expected("Flattened", "oneOf"));
}

#[test]
fn exclusive_bound_of_integer_becomes_inclusive() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Bounded {
        #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 10))]
        count: i64,
        // The bound of the type is tighter.
        #[schemars(extend("exclusiveMinimum" = -3))]
        small: u8,
    }
    check_form::<Bounded>(&json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "small": {"type": "integer", "minimum": 0, "maximum": 255},
        },
        "required": ["count", "small"],
    }));
}

#[test]
fn description_of_enum_applies_to_multi_select() {
    /// Size of the item.
    #[derive(Deserialize, JsonSchema)]
    enum Documented {
        Small,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Several {
        sizes: Vec<Documented>,
        #[schemars(extend("x-mine" = 1))]
        remarked: bool,
    }
    check_form::<Several>(&json!({
        "type": "object",
        "properties": {
            "sizes": {
                "type": "array", "description": "Size of the item.",
                "items": {"type": "string", "enum": ["Small"]},
            },
            "remarked": {"type": "boolean"},
        },
        "required": ["sizes", "remarked"],
    }));
}

/// Validates a response.
fn checked(schema: &RequestedSchema, content: &str) -> Result<(), String> {
    check(schema, content).map(drop)
}

// ELIC-22
#[test]
fn response_is_validated_against_form() {
    let schema = |field: Value| {
        let form = json!({"type": "object", "properties": {"x": field}, "required": ["x"]});
        serde_json::from_value(form).unwrap()
    };
    let fits =
        |field: Value, answer: Value| checked(&schema(field), &json!({"x": answer}).to_string());
    let text = |extra: Value| {
        let mut field = json!({"type": "string"});
        field.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        field
    };
    let wrong = |why: &str| Err(format!("`x` {why}"));

    assert_eq!(
        checked(&schema(text(json!({}))), "[]"),
        Err("the content must be an object".to_owned())
    );
    assert_eq!(checked(&schema(text(json!({}))), "{}"), Err("`x` is missing".to_owned()));
    assert_eq!(checked(&schema(text(json!({}))), r#"{"x":"a","y":1}"#), Ok(()));
    assert_eq!(fits(text(json!({})), json!(1)), wrong("must be a string"));
    assert_eq!(
        fits(text(json!({"minLength": 2})), json!("é")),
        wrong("must have at least 2 characters")
    );
    assert_eq!(fits(text(json!({"maxLength": 2})), json!("éé")), Ok(()));
    assert_eq!(
        fits(text(json!({"maxLength": 2})), json!("ééé")),
        wrong("must have at most 2 characters")
    );

    let format =
        |format: &str, answer: &str| fits(text(json!({"format": format})), json!(answer)).is_ok();
    for (kind, good, bad) in [
        ("email", vec!["a@b", "a.b@c.d"], vec!["a", "@b", "a@", "a b@c", "a@b@c", "a\u{0}@b", ""]),
        ("uri", vec!["https://a.b/c", "urn:x"], vec!["a", "1:x", "a:", "https://a b", ":x"]),
        (
            "date",
            vec!["2026-07-28", "2024-02-29", "2000-02-29"],
            vec![
                "2026-7-28",
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-00-10",
                "2026-04-31",
                "x",
            ],
        ),
        (
            "date-time",
            vec![
                "2026-07-28T12:00:00Z",
                "2026-07-28t23:59:60.123+05:30",
                "2026-07-28 00:00:00-00:00",
            ],
            vec![
                "2026-07-28",
                "2026-07-28T24:00:00Z",
                "2026-07-28T12:00Z",
                "2026-07-28T12:00:00",
                "2026-07-28T12:00:00.Z",
                "2026-07-28T12:00:00+5",
            ],
        ),
    ] {
        good.iter().for_each(|good| assert!(format(kind, good), "{kind} {good}"));
        bad.iter().for_each(|bad| assert!(!format(kind, bad), "{kind} {bad}"));
    }

    let integer = json!({"type": "integer", "minimum": 1, "maximum": 3});
    assert_eq!(fits(integer.clone(), json!(3)), Ok(()));
    assert_eq!(fits(integer.clone(), json!(0)), wrong("must be at least 1"));
    assert_eq!(fits(integer.clone(), json!(4)), wrong("must be at most 3"));
    assert_eq!(fits(integer.clone(), json!(2.0)), Ok(()));
    assert_eq!(fits(integer.clone(), json!(2.5)), wrong("must be a whole number"));
    assert_eq!(fits(integer, json!("2")), wrong("must be a number"));
    // Equal if compared as floats.
    let large = json!({"type": "integer", "maximum": 9_007_199_254_740_992_u64});
    assert_eq!(
        fits(large, json!(9_007_199_254_740_993_u64)),
        wrong("must be at most 9007199254740992")
    );
    assert_eq!(fits(json!({"type": "number"}), json!(2.5)), Ok(()));
    assert_eq!(fits(json!({"type": "boolean"}), json!("true")), wrong("must be true or false"));

    let single = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(fits(single.clone(), json!("b")), Ok(()));
    assert_eq!(fits(single, json!("c")), wrong("must be one of a, b"));
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
    assert_eq!(fits(titled, json!("A")), wrong("must be one of a"));
    let named = json!({"type": "string", "enum": ["a"], "enumNames": ["A"]});
    assert_eq!(fits(named, json!("a")), Ok(()));
    let several = json!({"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "string", "enum": ["a", "b"]}});
    assert_eq!(fits(several.clone(), json!(["a"])), Ok(()));
    assert_eq!(fits(several.clone(), json!([])), wrong("must have at least 1 choices"));
    assert_eq!(fits(several.clone(), json!(["a", "b"])), wrong("must have at most 1 choices"));
    assert_eq!(fits(several.clone(), json!(["c"])), wrong("must be one of a, b"));
    assert_eq!(fits(several, json!("a")), wrong("must be a list"));
    let titled = json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}});
    assert_eq!(fits(titled, json!(["b"])), wrong("must be one of a"));
}

#[test]
fn form_fields_have_declaration_order() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Order {
        zebra: String,
        apple: Option<u8>,
        mango: bool,
    }
    let form = convert::form::<Order>(declared_fields::<Order>()).unwrap();
    let names: Vec<&str> = form.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["zebra", "apple", "mango"]);
}
