//! Forms in each protocol version, and validation of their content.

use std::collections::BTreeSet;

use outlive::{
    Form,
    server::{Durable, Result, Server, Tool, durable::DurableError},
    wire::{LegacyTitledEnumSchema, RequestedSchema, StringFormat, StringSchema},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Talk, accept, refusal_of, server, text_of},
    support::pipe::MODERN,
};

/// Every kind of field that all versions have.
#[derive(Deserialize, Serialize, JsonSchema, Form)]
struct Order {
    /// Where to send it.
    #[schemars(email, title = "E-mail")]
    contact: String,
    #[schemars(range(min = 1, max = 9))]
    #[serde(default = "one")]
    count: u8,
    share: Option<f64>,
    #[serde(default)]
    gift: bool,
    size: Size,
    #[serde(default = "cheese")]
    topping: Topping,
}

fn one() -> u8 {
    1
}

fn cheese() -> Topping {
    Topping::Cheese
}

#[derive(Deserialize, Serialize, JsonSchema, Form)]
enum Size {
    Small,
    Large,
}

#[derive(Deserialize, Serialize, JsonSchema, Form, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Topping {
    /// Extra cheese
    Cheese,
    /// Sun-dried tomatoes
    Tomatoes,
}

/// Multiple choice, which was introduced with 2025-11-25.
#[derive(Deserialize, Serialize, JsonSchema, Form)]
struct Several {
    #[schemars(length(min = 1))]
    sizes: Vec<Size>,
    toppings: BTreeSet<Topping>,
}

async fn order(cx: Durable) -> Result<String> {
    let order: Order = cx.elicit("order", "What?").await?;
    Ok(serde_json::to_string(&order)?)
}

async fn several(cx: Durable) -> Result<String> {
    let several: Several = cx.elicit("several", "What?").await?;
    Ok(serde_json::to_string(&several)?)
}

/// Elicits with a schema that is built by hand.
async fn by_hand(cx: Durable) -> Result<String> {
    let date = StringSchema { format: Some(StringFormat::Date), ..Default::default() };
    let named = LegacyTitledEnumSchema {
        values: vec!["a".into(), "b".into()],
        enum_names: Some(vec!["Anna".into(), "Bert".into()]),
        ..Default::default()
    };
    let schema = RequestedSchema::default().with_required("day", date).with_optional("who", named);
    let answer: Value = cx.elicit_with("by_hand", "When?", schema).await?;
    Ok(answer.to_string())
}

/// Returns the error for a type that is not a valid form.
async fn no_form(cx: Durable) -> Result<String> {
    #[derive(Deserialize, JsonSchema, Form)]
    struct Pattern {
        #[schemars(regex(pattern = "^[a-z]+$"))]
        #[expect(dead_code, reason = "the field is never read")]
        name: String,
    }
    let Err(error) = cx.elicit::<Pattern>("who", "Who?").await else { return Ok("asked".into()) };
    match error.durable_error() {
        Some(DurableError::InvalidInputRequest { key, reason }) => Ok(format!("{key}: {reason}")),
        _ => Err(error),
    }
}

fn asking() -> Server {
    server([
        Tool::new("order", order),
        Tool::new("several", several),
        Tool::new("by_hand", by_hand),
        Tool::new("no_form", no_form),
    ])
}

/// Returns the parameters of a tool's input request and the text of its result.
async fn asked(version: &str, tool: &str, content: Value) -> (Value, String) {
    let mut talk = Talk::open(&asking(), version).await;
    let mut played = talk.call(tool, |_| accept(content.clone())).await;
    assert_eq!(played.messages(), [played.messages()[0]], "one input request");
    let text = played.text().to_owned();
    (played.asked.remove(0)["params"].take(), text)
}

// ELIC-03, ELIC-04, ELIC-05, ELIC-06, ELIC-07, ELIC-10
#[tokio::test(start_paused = true)]
async fn form_has_fields_of_its_type() {
    let content = json!({"contact": "a@b.c", "size": "Large", "count": 2, "topping": "tomatoes"});
    let filled_in = json!({
        "contact": "a@b.c",
        "count": 2,
        "share": null,
        "gift": false,
        "size": "Large",
        "topping": "tomatoes",
    });
    for version in ["2025-11-25", MODERN] {
        let (params, text) = asked(version, "order", content.clone()).await;
        assert_eq!(text, filled_in.to_string(), "{version}");
        assert_eq!(
            params,
            json!({"mode": "form", "message": "What?", "requestedSchema": {
                "type": "object",
                "properties": {
                    "contact": {"type": "string", "title": "E-mail", "description": "Where to send it.", "format": "email"},
                    "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
                    "share": {"type": "number"},
                    "gift": {"type": "boolean", "default": false},
                    "size": {"type": "string", "enum": ["Small", "Large"]},
                    "topping": {"type": "string", "default": "cheese", "oneOf": [
                        {"const": "cheese", "title": "Extra cheese"},
                        {"const": "tomatoes", "title": "Sun-dried tomatoes"},
                    ]},
                },
                "required": ["contact", "size"],
            }}),
            "{version}"
        );
    }
}

// ELIC-09, ELIC-10, ELIC-24
#[tokio::test(start_paused = true)]
async fn form_of_2025_06_18_has_no_mode_and_legacy_enum_names() {
    let content = json!({"contact": "a@b.c", "size": "Small"});
    let (params, text) = asked("2025-06-18", "order", content).await;
    let defaults = r#""count":1,"share":null,"gift":false,"size":"Small","topping":"cheese""#;
    assert!(text.contains(defaults), "{text}");
    assert_eq!(
        params,
        json!({"message": "What?", "requestedSchema": {
            "type": "object",
            "properties": {
                "contact": {"type": "string", "title": "E-mail", "description": "Where to send it.", "format": "email"},
                "count": {"type": "integer", "minimum": 1, "maximum": 9},
                "share": {"type": "number"},
                "gift": {"type": "boolean", "default": false},
                "size": {"type": "string", "enum": ["Small", "Large"]},
                "topping": {
                    "type": "string",
                    "enum": ["cheese", "tomatoes"],
                    "enumNames": ["Extra cheese", "Sun-dried tomatoes"],
                },
            },
            "required": ["contact", "size"],
        }})
    );
}

// ELIC-08, ELIC-11
#[tokio::test(start_paused = true)]
async fn multiple_choice_is_available_from_2025_11_25() {
    let content = json!({"sizes": ["Large", "Small"], "toppings": ["tomatoes"]});
    for version in ["2025-11-25", MODERN] {
        let (params, text) = asked(version, "several", content.clone()).await;
        assert_eq!(text, content.to_string(), "{version}");
        let fields = &params["requestedSchema"]["properties"];
        let sizes = json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["Small", "Large"]}});
        assert_eq!(fields["sizes"], sizes, "{version}");
        assert_eq!(
            fields["toppings"],
            json!({"type": "array", "items": {"anyOf": [
                {"const": "cheese", "title": "Extra cheese"},
                {"const": "tomatoes", "title": "Sun-dried tomatoes"},
            ]}}),
            "{version}"
        );
    }
    let mut talk = Talk::open(&asking(), "2025-06-18").await;
    assert_eq!(refusal_of(&talk.call_quietly("several").await).0, -32602);
}

// ELIC-04, ELIC-05, ELIC-09
#[tokio::test(start_paused = true)]
async fn form_with_explicit_schema_is_sent_as_written() {
    for version in ["2025-06-18", "2025-11-25", MODERN] {
        let content = json!({"day": "2026-07-28", "who": "b"});
        let (params, text) = asked(version, "by_hand", content.clone()).await;
        assert_eq!(text, content.to_string(), "{version}");
        let day = &params["requestedSchema"]["properties"]["day"];
        assert_eq!(day, &json!({"type": "string", "format": "date"}), "{version}");
    }
}

// ELIC-22
#[tokio::test(start_paused = true)]
async fn invalid_form_field_is_requested_again_with_reason() {
    for version in ["2025-06-18", "2025-11-25", MODERN] {
        for (tool, wrong, why) in [
            ("by_hand", json!({"day": "2026-02-30"}), "`day` must be a date, as in 2026-07-28"),
            ("by_hand", json!({"day": "2026-07-28", "who": "Anna"}), "`who` must be one of a, b"),
            (
                "order",
                json!({"contact": "nobody", "size": "Small"}),
                "`contact` must be an e-mail address",
            ),
            (
                "order",
                json!({"contact": "a@b.c", "size": "Small", "gift": 1}),
                "`gift` must be true or false",
            ),
        ] {
            let right = match tool {
                "order" => json!({"contact": "a@b.c", "size": "Small"}),
                _ => json!({"day": "2026-07-28"}),
            };
            let mut talk = Talk::open(&asking(), version).await;
            let mut answers = vec![accept(right), accept(wrong)];
            let played = talk.call(tool, |_| answers.pop().unwrap()).await;
            assert!(played.messages()[1].contains(why), "{version}: {:?}", played.messages());
            assert_eq!(played.answer["result"].get("isError"), None);
        }
    }
}

// ELIC-05: forms do not support `pattern`
#[tokio::test(start_paused = true)]
async fn type_unsupported_by_forms_fails_with_field_name() {
    for version in ["2025-11-25", MODERN] {
        let mut talk = Talk::open(&asking(), version).await;
        let answer = talk.call_quietly("no_form").await;
        let text = text_of(&answer);
        assert!(text.starts_with("who: the field `name` has a `pattern`"), "{text}");
    }
}

// ELIC-06, ELIC-22: in JSON Schema `2.0` is an integer
#[tokio::test(start_paused = true)]
async fn integer_written_with_decimal_point_is_accepted() {
    for version in ["2025-11-25", MODERN] {
        let content = json!({"contact": "a@b.c", "size": "Large", "count": 2.0});
        let (_, text) = asked(version, "order", content).await;
        assert!(text.contains(r#""count":2,"#), "{version}: {text}");
    }
}
